"""An application is run, stopped, and explains itself when it cannot run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from types import MappingProxyType

import pytest

from pystreams.cli.commands.run import run_streams
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.threads.progress import Progress
from tests.cli.wordcount_kit import WORDCOUNT, counts


@pytest.fixture
def wordcount(folder, pystreams):
    """The program and its topics."""
    name = f"wordcount_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(WORDCOUNT.format(id="wordcount"), encoding="utf-8")
    pystreams("topics", "create", "lines", "word-counts")
    return name


def test_words_are_counted_until_caught_up(pystreams, wordcount):
    pystreams("produce", "lines", stdin="to be or not to be\n")
    ran = pystreams("run", wordcount, "--until-caught-up")
    assert ran.code == 0
    assert "all is committed" in ran.err
    assert counts(pystreams) == {"to": "2", "be": "2", "or": "1", "not": "1"}


def test_a_second_run_goes_on_where_the_first_ended(pystreams, wordcount):
    for line in ("a b\n", "b c\n"):
        pystreams("produce", "lines", stdin=line)
        assert pystreams("run", wordcount, "--until-caught-up").code == 0
    assert counts(pystreams) == {"a": "1", "b": "2", "c": "1"}


def test_an_empty_topic_is_caught_up_with_at_once(pystreams, wordcount):
    assert pystreams("run", wordcount, "--until-caught-up").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_commits_and_stops(folder, pystreams, wordcount, number):
    pystreams("produce", "lines", stdin="a b a\n")
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "run", wordcount],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        last_resort = Timer(60, running.kill)
        last_resort.start()
        for line in running.stderr:
            if line.startswith("running"):
                break
        running.send_signal(number)
        rest = running.stderr.read()
    last_resort.cancel()
    assert running.returncode == 0, rest
    assert "all is committed" in rest


def test_a_missing_topic_is_answered_with_the_command_that_creates_it(folder, pystreams):
    (folder / "lonely_program.py").write_text(WORDCOUNT.format(id="wordcount"), encoding="utf-8")
    answered = pystreams("run", "lonely_program", "--until-caught-up")
    assert answered.code == 4
    assert "pystreams topics create lines" in answered.err
    assert "Traceback" not in answered.err


@pytest.mark.parametrize("option", [["--embedded-log", "here.db"], ["--embedded-log=here.db"]])
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_the_command_that_creates_it_names_the_same_log(folder, pystreams, option, workers):
    (folder / "elsewhere_program.py").write_text(WORDCOUNT.format(id="wordcount"), encoding="utf-8")
    answered = pystreams("run", "elsewhere_program", *option, *workers)
    command = re.search(r"pystreams (topics create --embedded-log[= ]here.db lines)", answered.err)
    assert command is not None, answered.err
    assert pystreams(*command[1].split()).code == 0
    assert pystreams("topics", "list", "--embedded-log", "here.db").lines[0].startswith("lines")


def test_a_function_that_raises_is_named_with_its_line_and_the_record(folder, pystreams):
    (folder / "raising.py").write_text(
        "from pystreams import App\n"
        "app = App('raising')\n"
        "def half(text):\n"
        "    return str(int(text) / 2)\n"
        "app.stream('in', value=str).map_values(half).to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="4\nfour\n")
    failed = pystreams("run", "raising", "--until-caught-up")
    assert failed.code == 1
    assert "ValueError" in failed.err
    assert "raising.py:3" in failed.err
    assert "raising.py:4" in failed.err
    assert "in-0 offset 1" in failed.err


@pytest.mark.parametrize(
    "arguments,answer",
    [
        (["-s", "comit_interval_ms=5"], "did you mean commit_interval_ms?"),
        (["-s", "commit_interval_ms=soon"], "commit_interval_ms cannot be 'soon'"),
        (["-s", "commit_interval_ms"], "write NAME=VALUE"),
        (["--threads", "0"], "--threads"),
        (["--until-caught-upp"], "--until-caught-up"),
    ],
)
def test_a_wrong_option_is_explained(pystreams, wordcount, arguments, answer):
    refused = pystreams("run", wordcount, *arguments)
    assert refused.code == 2
    assert answer in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]], ids=["alone", "workers"])
def test_variables_of_a_server_do_not_count_where_there_is_none(pystreams, wordcount, monkeypatch, workers):
    for name in ("TOKEN_FILE", "CERT", "CA", "CLIENT_CA"):
        monkeypatch.setenv(f"PYSTREAMS_HTTP_{name}", "exported-for-other-commands")
    monkeypatch.setenv("PYSTREAMS_HTTP_OPEN", "1")
    assert pystreams("run", wordcount, "--until-caught-up", *workers).code == 0
    refused = pystreams("run", wordcount, "--until-caught-up", *workers, "--http-key", "key.pem")
    assert refused.code == 2
    assert "--http-key is for --http" in refused.err


def test_a_misspelt_variable_of_the_environment_is_not_ignored(pystreams, wordcount, monkeypatch):
    monkeypatch.setenv("PYSTREAMS_COMIT_INTERVAL_MS", "5")
    refused = pystreams("run", wordcount, "--until-caught-up")
    assert refused.code == 2
    assert "PYSTREAMS_COMIT_INTERVAL_MS" in refused.err


def test_a_topology_without_a_name_needs_one(folder, pystreams):
    (folder / "nameless.py").write_text(
        "from pystreams import StreamsBuilder\n"
        "builder = StreamsBuilder()\nbuilder.stream('in', value=str).to('out')\n",
        encoding="utf-8",
    )
    refused = pystreams("run", "nameless", "--until-caught-up")
    assert refused.code == 2
    assert "--application-id" in refused.err
    pystreams("topics", "create", "in", "out")
    assert pystreams("run", "nameless", "--until-caught-up", "--application-id", "named").code == 0


def test_old_records_are_refused_before_retention_deletes_the_results(folder, pystreams):
    (folder / "old_records.py").write_text(
        "from pystreams import App\napp = App('old')\napp.stream('in', value=str).to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "-c", "retention.ms=-1")
    pystreams("topics", "create", "out")
    pystreams("produce", "in", "--timestamp", "2013-01-01", stdin="x\n")
    refused = pystreams("run", "old_records", "--until-caught-up")
    assert refused.code == 4
    assert "retention.ms" in refused.err
    assert pystreams("run", "old_records", "--until-caught-up", "--allow-expired").code == 0


def test_an_unwritable_state_directory_is_explained(pystreams, wordcount, folder):
    (folder / "file").write_text("no folder")
    refused = pystreams("run", wordcount, "--until-caught-up", "--state-dir", "file/state")
    assert refused.code == 1
    assert "file/state" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("state,interrupted", [("not_running", False), ("pending_shutdown", True)])
def test_a_second_ctrl_c_after_the_last_commit_interrupts_nothing(state, interrupted, capfd):
    ended_as = ClientState(state)

    class Interrupted:
        state = ended_as
        left_out = MappingProxyType({})
        late_records = joins = ()
        progress = staticmethod(lambda: Progress(0, ()))

        def run(self, **_):
            raise KeyboardInterrupt

    log_to_stderr(LogOptions())
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            run_streams(Interrupted(), until_caught_up=False, logs=LogOptions())
        return
    run_streams(Interrupted(), until_caught_up=False, logs=LogOptions())
    assert "all is committed: 0 records in" in capfd.readouterr().err


def test_one_record_is_one_record(pystreams, wordcount):
    pystreams("topics", "create", "lines", "word-counts")
    pystreams("produce", "lines", stdin="once\n")
    ended = pystreams("run", wordcount, "--until-caught-up")
    assert ended.code == 0
    assert "all is committed: 1 record, and 1 from internal topics, in" in ended.err
    assert not re.search(r"\b1 records", ended.err)


def test_joined_topics_of_different_width_are_the_logs_matter(folder, pystreams):
    (folder / "wide.py").write_text(
        "from pystreams import App\napp = App('wide')\n"
        "table = app.table('customers', key=str, value=str)\n"
        "app.stream('orders', key=str, value=str).join(table, lambda a, b: a, step='enrich').to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "orders", "out", "--partitions", "2", "-c", "retention.ms=-1")
    pystreams("topics", "create", "customers", "--partitions", "3", "-c", "retention.ms=-1")
    refused = pystreams("run", "wide", "--until-caught-up")
    assert refused.code == 4
    assert "application wide, step enrich" in refused.err
