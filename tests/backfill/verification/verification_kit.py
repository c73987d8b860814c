"""Applications that have run on an embedded log, and what verifying them finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.app import App
from pystreams.backfill import EmbeddedSource, Verified, verify
from pystreams.ids import TopicPartition
from tests.backfill.kit import History
from tests.backfill.live import SETTINGS, append, append_lines, create
from tests.backfill.programs import PROGRAMS, history
from tests.live.support import Line, Log, run_to_the_end

NewLog = Callable[[str], Log]

OUTPUTS = ["word-counts", "sums", "regions", "totals", "rests", "out", "totals-out"]


def program(name: str, log: Log, **settings: Any) -> App:
    """One of the programs of the backfill's tests. Their records are of 1970: what time would delete stays."""
    kept = {"window_changelog_retention_ms": -1}
    return PROGRAMS[name](**{**SETTINGS, **kept, "state_dir": log.path / "state", **settings})


def ran(log: Log, name: str, partitions: int, past: History | None = None, **settings: Any) -> App:
    """The program after it has processed a history."""
    past = past or history(name, 5, partitions)
    create(log, past, OUTPUTS)
    append(log, past)
    app = program(name, log, **settings)
    run_to_the_end(log, app)
    return app


def verified(log: Log, app: App, **given: Any) -> Verified:
    source = EmbeddedSource(str(log.path / "log.db"))
    return verify(app, log.broker, **{"sources": source, "wait_ms": 0, **given})


def written(log: Log, changelog: str, lines: list[Line], partition: int = 0) -> None:
    """Write to a changelog as a stray program would."""
    append_lines(log, {TopicPartition(changelog, partition): lines})


def last_lines(log: Log, changelog: str, partition: int = 0) -> dict[bytes, Line]:
    """The last record of each key that was not deleted."""
    last = {line.key or b"": line for line in log.lines(TopicPartition(changelog, partition)).values()}
    return {key: line for key, line in last.items() if line.value is not None}
