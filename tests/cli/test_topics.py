"""Topics are made, looked at, changed and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.wordcount_kit import WORDCOUNT


def test_a_new_topic_is_listed_with_partitions_and_records(pystreams):
    assert pystreams("topics", "create", "lines", "--partitions", "3").code == 0
    pystreams("produce", "lines", stdin="a\nb\n")
    listed = pystreams("topics", "list")
    assert listed.code == 0
    assert listed.lines == ["lines\t3\t2\t7 days"]


def test_listing_hides_internal_topics_and_says_so(pystreams):
    pystreams("topics", "create", "app-counts-changelog")
    hidden = pystreams("topics", "list")
    assert hidden.out == ""
    assert "--internal" in hidden.err
    assert pystreams("topics", "list", "--internal").lines[0].startswith("app-counts-changelog\t1\t0")


def test_describe_shows_offsets_and_settings(pystreams):
    pystreams("topics", "create", "lines", "-c", "retention.ms=-1")
    pystreams("produce", "lines", stdin="a\n")
    described = pystreams("topics", "describe", "lines")
    assert described.lines[0] == "0\t0\t1\t1"
    assert "retention.ms=-1" in described.lines


def test_alter_changes_a_setting(pystreams):
    pystreams("topics", "create", "lines")
    assert pystreams("topics", "alter", "lines", "-c", "retention.ms=-1").code == 0
    assert pystreams("topics", "list").lines == ["lines\t1\t0\tfor ever"]


def test_alter_changes_several_topics_or_none(pystreams):
    pystreams("topics", "create", "lines", "words")
    assert pystreams("topics", "alter", "lines", "other", "-c", "retention.ms=-1").code != 0
    assert pystreams("topics", "list").lines == ["lines\t1\t0\t7 days", "words\t1\t0\t7 days"]
    altered = pystreams("topics", "alter", "lines", "words", "-c", "retention.ms=-1")
    assert "lines, words: retention.ms=-1" in altered.err
    assert pystreams("topics", "list").lines == ["lines\t1\t0\tfor ever", "words\t1\t0\tfor ever"]


@pytest.mark.parametrize("name", ["app-store-changelog", "app-store-repartition"])
def test_nobody_is_told_to_create_the_topics_of_an_application_by_hand(pystreams, name):
    pystreams("topics", "create", "lines")
    altered = pystreams("topics", "alter", name, "-c", "retention.ms=-1")
    assert f"Topic {name} does not exist" in altered.err
    assert "itself when it starts" in " ".join(altered.err.split())
    assert "topics create" not in altered.err


def test_only_topics_that_are_missing_are_created_if_that_is_asked_for(pystreams):
    pystreams("topics", "create", "lines", "-p", "2")
    created = pystreams("topics", "create", "lines", "new", "--if-not-exists", "-c", "retention.ms=-1")
    assert created.code == 0
    assert "Created new with 1 partition." in created.err
    assert "These exist already, and were not changed: lines." in created.err
    assert pystreams("topics", "list").lines == ["lines\t2\t0\t7 days", "new\t1\t0\tfor ever"]


def test_a_topic_with_another_number_of_partitions_is_not_the_one_that_is_asked_for(pystreams):
    pystreams("topics", "create", "lines", "-p", "2")
    refused = pystreams("topics", "create", "new", "lines", "-p", "3", "--if-not-exists")
    assert refused.code == 4
    assert "Topic lines exists with 2 partitions, not 3" in refused.err
    assert pystreams("topics", "list").lines == ["lines\t2\t0\t7 days"]


def test_several_topics_are_deleted_at_once_or_none(pystreams):
    pystreams("topics", "create", "a", "b", "c")
    pystreams("produce", "a", stdin="1\n2\n")
    pystreams("produce", "b", stdin="3\n")
    assert pystreams("topics", "delete", "a", "missing", "--yes").code == 4
    assert [line.split("\t")[0] for line in pystreams("topics", "list").lines] == ["a", "b", "c"]
    deleted = pystreams("topics", "delete", "a", "b", "a", stdin="y\n")
    assert deleted.code == 0
    assert "Delete a, b with 3 records?" in deleted.err
    assert "Deleted a, b." in deleted.err
    assert [line.split("\t")[0] for line in pystreams("topics", "list").lines] == ["c"]


def test_delete_asks_first(pystreams):
    pystreams("topics", "create", "lines")
    refused = pystreams("topics", "delete", "lines", stdin="n\n")
    assert refused.code == 1
    assert pystreams("topics", "list").lines == ["lines\t1\t0\t7 days"]
    assert pystreams("topics", "delete", "lines", "--yes").code == 0
    assert pystreams("topics", "list").out == ""


def test_a_misspelt_topic_is_answered_with_the_nearest(pystreams):
    pystreams("topics", "create", "flights")
    for command in (["topics", "describe"], ["topics", "delete", "-y"], ["consume"], ["produce"]):
        answered = pystreams(*command, "flihgts")
        assert answered.code == 4
        assert "Topic flihgts does not exist" in answered.err
        assert "did you mean flights?" in answered.err


def test_a_missing_topic_is_answered_with_the_command_that_creates_it(pystreams):
    pystreams("topics", "create", "a")
    assert "pystreams topics create zebra" in pystreams("produce", "zebra").err


def test_creating_what_exists_is_an_error(pystreams):
    pystreams("topics", "create", "lines")
    again = pystreams("topics", "create", "lines")
    assert again.code == 4
    assert "already exists" in again.err


def test_several_topics_are_created_at_once_or_none(pystreams):
    assert pystreams("topics", "create", "a", "b", "-p", "2").code == 0
    assert pystreams("topics", "create", "c", "b").code == 4
    assert [line.split("\t")[0] for line in pystreams("topics", "list").lines] == ["a", "b"]


@pytest.mark.parametrize("setting", ["retentionms=1", "retention.ms", "retention.ms=soon"])
def test_a_wrong_topic_setting_is_refused(pystreams, setting):
    refused = pystreams("topics", "create", "lines", "-c", setting)
    assert refused.code == 2
    assert refused.err.startswith("Error: ")
    assert "Traceback" not in refused.err


def test_looking_from_the_wrong_folder_says_so_and_leaves_nothing_behind(pystreams, folder):
    answered = pystreams("topics", "list")
    assert answered.code == 4
    assert "There is no embedded log at .pystreams/log.db" in answered.err
    assert str(folder) in answered.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", [("produce", "lines"), ("doctor", "words.py"), ("topics", "list")])
def test_before_the_first_topic_the_advice_is_to_create_it_and_only_then_to_look_elsewhere(
    pystreams, folder, command
):
    (folder / "words.py").write_text(WORDCOUNT.format(id="words"), encoding="utf-8")
    answered = pystreams(*command, stdin="to be\n")
    # Long lines are broken.
    advice = " ".join((answered.out + answered.err).split())
    assert (
        "create the first topics, and the log with them: `pystreams topics create NAME…`, or `pystreams run MODULE"
        " --create-topics`; if there is a log somewhere else, go to its folder, or name the file" in advice
    )


def test_the_log_can_be_named_by_option_and_by_environment(pystreams, folder, monkeypatch):
    pystreams("topics", "create", "lines", "--embedded-log", "here.db")
    assert pystreams("topics", "list", "--embedded-log", "here.db").lines == ["lines\t1\t0\t7 days"]
    monkeypatch.setenv("PYSTREAMS_EMBEDDED_LOG", "here.db")
    assert pystreams("topics", "list").lines == ["lines\t1\t0\t7 days"]


def test_a_file_that_is_no_log_is_refused(pystreams, folder):
    Path("notes.txt").write_text("not a database, but long enough to look like something" * 20)
    refused = pystreams("topics", "list", "--embedded-log", "notes.txt")
    assert refused.code in (2, 4)
    assert "notes.txt" in refused.err
    assert "Traceback" not in refused.err
