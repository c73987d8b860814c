"""A reset holds for all machines: what another one still has on its disk is not gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams import App
from pystreams.cli.commands.reset import carry_out, plan_reset
from tests.live.support import Log, run_to_the_end


@pytest.fixture(autouse=True)
def topics(log: Log) -> None:
    log.create("in", "out")


def counting(log: Log, state: Path, **store: object) -> App:
    app = log.app("counting", state_dir=state)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts", **store).to_stream().to("out")
    return app


def count(log: Log, state: Path, keys: range, times: int = 1, **store: object) -> None:
    """Write every key so often, and have the application count them with its stores in ``state``."""
    log.write("in", [(f"k{key}", 1, 0) for key in keys for _ in range(times)])
    run_to_the_end(log, counting(log, state, **store))


def reset(log: Log, state: Path) -> None:
    """From the machine that has ``state``: nothing that was written is processed again."""
    carry_out(log.admin, plan_reset(log.admin, log.broker, "counting", ["in"], state, "latest"))


def test_stores_of_before_a_reset_from_another_machine_are_restored(log: Log, tmp_path: Path, caplog):
    count(log, tmp_path / "first", range(10), times=3)
    reset(log, tmp_path / "second")
    # As far as offsets go, the first machine's stores could go on in the new changelog.
    count(log, tmp_path / "second", range(20))
    count(log, tmp_path / "first", range(1))
    assert log.table("out") == {"k0": 2, **{f"k{key}": 1 for key in range(1, 20)}}
    assert "before the application was reset" in caplog.text


def test_a_store_without_a_changelog_is_emptied_by_a_reset_from_another_machine(log: Log, tmp_path: Path):
    count(log, tmp_path / "first", range(2), times=3, logged=False)
    reset(log, tmp_path / "second")
    count(log, tmp_path / "first", range(1), logged=False)
    assert log.table("out") == {"k0": 1, "k1": 3}


def test_what_ran_before_a_reset_from_another_machine_is_not_compared_with(log: Log, tmp_path: Path):
    count(log, tmp_path / "first", range(2))
    reset(log, tmp_path / "second")
    log.write("in", [("k0", 1, 0)])
    app = log.app("counting", state_dir=tmp_path / "first")
    sums = app.stream("in", key=str, value=int).group_by_key().reduce(lambda a, b: a + b, name="sums")
    sums.to_stream().to("out")
    run_to_the_end(log, app)
    assert log.table("out") == {"k0": 1, "k1": 1}


def test_a_restart_without_a_reset_deletes_nothing(log: Log, tmp_path: Path, caplog):
    for _ in range(2):
        count(log, tmp_path / "first", range(2), logged=False)
    assert log.table("out") == {"k0": 2, "k1": 2}
    assert "reset" not in caplog.text
