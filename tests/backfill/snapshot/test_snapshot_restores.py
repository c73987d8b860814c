"""A snapshot is all that a live application needs to go on: without the staging folder, and without its changelogs."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, Stores
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.snapshot import open_snapshot, restore_snapshot, write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.errors import ConfigError, StateCorruptedError, StateError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from tests.backfill.kit import Backfill, History, everything, memory
from tests.backfill.live import SETTINGS, append, create, left_on, random_cut, split
from tests.backfill.programs import PROGRAMS, RunningTotal, history, word_count
from tests.live.support import TIMEOUT_S, Log, caught_up, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]


class InMemoryTotal(RunningTotal):
    """The same, in a store that is kept in memory."""


def in_memory(**settings: Any) -> App:
    app = App("ticks", **settings)
    store = Stores.key_value_store("totals", str, int, persistent=False)
    app.stream("amounts", key=str, value=int).process(InMemoryTotal, stores=[store], key=str, value=int).to(
        "totals"
    )
    return app


def program(name: str, log: Log) -> App:
    make = in_memory if name == "in memory" else PROGRAMS[name]
    return make(**SETTINGS, state_dir=log.path / "state", window_changelog_retention_ms=-1)


def past_of(name: str) -> History:
    return history("punctuated" if name == "in memory" else name, 3, 1 if "repartition" in name else 2)


class Restored:
    """A ``RestoreListener`` that counts records of changelogs: those of global topics are read by whoever starts."""

    def __init__(self) -> None:
        self.records = 0

    def on_restore_start(self, partition: Any, store: str, start_offset: int, end_offset: int) -> None:
        """Only records count."""

    def on_batch_restored(self, partition: Any, store: str, next_offset: int, records: int) -> None:
        if partition.topic.endswith("-changelog"):
            self.records += records

    def on_restore_end(self, partition: Any, store: str, records: int) -> None:
        """Only records count."""


@pytest.mark.parametrize(
    "name",
    [
        "windowed sum",
        "two repartitions",
        "punctuated",
        "in memory",
        "joined streams",
        "joined versions",
        "joined globally",
    ],
)
def test_going_on_from_it_equals_live_with_a_stop(name: str, new_log: NewLog, tmp_path: Path) -> None:
    past = past_of(name)
    prefix, rest = split(past, random_cut(past, random.Random(1)))
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, ["sums", "regions", "totals"])
        append(log, prefix)
    run_to_the_end(live, program(name, live))
    append(live, rest)
    run_to_the_end(live, program(name, live))

    source = EmbeddedSource(str(handed.path / "log.db"))
    result = Backfill(program(name, handed), source, tmp_path / "staging", commit_records=16).run()
    write_snapshot(result, tmp_path / "snapshot")
    shutil.rmtree(tmp_path / "staging")
    restore_snapshot(tmp_path / "snapshot", program(name, handed), handed.broker)
    append(handed, rest)
    listener = Restored()
    streams = handed.start(
        program(name, handed), prepare=lambda client: Streams.set_restore_listener(client, listener)
    )
    caught_up(streams)
    assert streams.close(1000 * TIMEOUT_S)
    assert (listener.records == 0) is (name != "in memory")
    found, expected = (left_on(log, program(name, log), []) for log in (handed, live))
    assert found == expected


def test_it_holds_what_was_computed(tmp_path: Path) -> None:
    past = history("windowed sum", 2, 2)
    result = Backfill(PROGRAMS["windowed sum"](), memory(past), tmp_path / "staging").run()
    manifest = write_snapshot(result, tmp_path / "snapshot")
    opened = open_snapshot(tmp_path / "snapshot", PROGRAMS["windowed sum"]())
    assert opened.manifest == manifest == result.manifest
    assert opened.offsets() == result.offsets()
    for store in result.stores():
        assert opened.changelog(store) == result.changelog(store)


def test_written_again_it_stays_and_another_one_is_refused(tmp_path: Path) -> None:
    past = memory(history("word count", 1, 2))
    result = Backfill(word_count(), past, tmp_path / "one").run()
    write_snapshot(result, tmp_path / "snapshot")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "snapshot").rglob("*")}
    write_snapshot(result, tmp_path / "snapshot")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "snapshot").rglob("*")} == files
    other = Backfill(word_count(), past, tmp_path / "two").run()
    with pytest.raises(StateError, match="holds another snapshot"):
        write_snapshot(other, tmp_path / "snapshot")


def test_what_was_not_finished_is_no_snapshot_and_is_made_anew(tmp_path: Path) -> None:
    result = Backfill(word_count(), memory(history("word count", 1, 2)), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    whole = everything_stored(tmp_path / "snapshot")
    (tmp_path / "snapshot" / "manifest.json").unlink()
    with pytest.raises(StateError, match="no snapshot, or one that was not finished"):
        open_snapshot(tmp_path / "snapshot", word_count())
    write_snapshot(result, tmp_path / "snapshot")
    assert everything_stored(tmp_path / "snapshot") == whole


def test_another_format_is_refused(tmp_path: Path) -> None:
    result = Backfill(word_count(), memory(history("word count", 1, 2)), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    manifest = tmp_path / "snapshot" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 1000}))
    with pytest.raises(StateError) as refused:
        open_snapshot(tmp_path / "snapshot", word_count())
    assert refused.value.what == "the snapshot has format 1000, which this version of pystreams does not read"


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    result = Backfill(word_count(), memory(history("word count", 1, 2)), tmp_path / "staging").run()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    # As an application's state directory has them.
    for task in ("0_0", "0_1", "1_0"):
        (tmp_path / "mine" / task).mkdir()
    with pytest.raises(StateError, match="holds something else"):
        write_snapshot(result, tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text(encoding="utf-8") == "dear"
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"letter.txt", "0_0", "0_1", "1_0"}


def test_another_application_is_refused(tmp_path: Path) -> None:
    result = Backfill(word_count(), memory(history("word count", 1, 2)), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    with pytest.raises(TopologyError, match="planned for"):
        open_snapshot(tmp_path / "snapshot", PROGRAMS["punctuated"]())


def test_a_damaged_one_is_not_handed_over(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    past = history("word count", 1, 2)
    create(log, past, ["word-counts"])
    append(log, past)
    source = EmbeddedSource(str(log.path / "log.db"))
    write_snapshot(Backfill(word_count(), source, tmp_path / "staging").run(), tmp_path / "snapshot")
    path = tmp_path / "snapshot" / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["outcomes"]["1"][0]["stores"]["counts"][1] = "00"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StateCorruptedError, match="snapshot is damaged"):
        hand_over(open_snapshot(tmp_path / "snapshot", word_count()), log.broker)
    assert log.committed("wc") == {}


def everything_stored(folder: Path) -> Any:
    return everything(open_snapshot(folder, word_count()))


@pytest.mark.parametrize("url", ["s3a://key:secret@bucket/tables", "file:///tables"])
def test_a_url_is_refused_because_databases_need_a_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = Backfill(word_count(), memory(history("word count", 1, 2)), tmp_path / "staging").run()
    with pytest.raises(ConfigError, match="cannot be written to") as refused:
        write_snapshot(result, url)
    assert "secret" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["staging"], "no folder of that name was made here"


def test_another_one_is_replaced_where_that_is_said(tmp_path: Path) -> None:
    past = memory(history("word count", 1, 2))
    first = Backfill(word_count(), past, tmp_path / "one").run()
    other = Backfill(word_count(), past, tmp_path / "two", until={TopicPartition("lines", 0): 3}).run()
    write_snapshot(first, tmp_path / "snapshot")
    write_snapshot(other, tmp_path / "snapshot", replace_other=True)
    assert everything_stored(tmp_path / "snapshot")["changelogs"] == everything(other)["changelogs"]
