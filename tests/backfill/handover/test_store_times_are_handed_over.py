"""A store goes on at the time that it has reached in history, even if a deletion was all that has shown this time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import App, Processor, Record, Stores
from pystreams.backfill import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.snapshot import restore_snapshot, write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.ids import TopicPartition
from pystreams.processor import ProcessorContext
from pystreams.serde import INT
from pystreams.state.spec import StoreSpec
from pystreams.windowed import Windowed
from tests.backfill.kit import History, lines
from tests.backfill.live import SETTINGS, append, create, raw, split
from tests.live.support import Log, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]
MINUTE_MS = 60_000
ITEMS = TopicPartition("items", 0)


class Keep(Processor[str, int, str, int]):
    """Sets the window of a record's time, without a value deletes it. Forwards what the store shows of it then."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.store = context.store("kept")

    def process(self, record: Record[str, int]) -> None:
        time = record.timestamp
        if self.store.spec.kind == "session":
            self.store.put(Windowed(record.key, time, time), record.value)
            shown = self.store.fetch_session(record.key, time, time)
        else:
            self.store.put(record.key, record.value, time)
            shown = self.store.fetch(record.key, time)
        self.context.forward(record.with_value(shown))


def store(kind: str, *, persistent: bool) -> StoreSpec[Any]:
    retention = 2 * MINUTE_MS
    if kind == "session":
        return Stores.session_store("kept", str, int, retention=retention, persistent=persistent)
    return Stores.window_store("kept", str, int, size=MINUTE_MS, retention=retention, persistent=persistent)


def keeping(log: Log, spec: StoreSpec[Any]) -> App:
    app = App("keeping", **SETTINGS, window_changelog_retention_ms=-1, state_dir=log.path / "state")
    app.stream("items", key=str, value=int).process(Keep, stores=[spec], key=str, value=int).to("shown")
    return app


#: The first four are history. Its last record deletes what nobody has set, and what comes then is too late.
PAST: History = {
    "items": [
        lines(
            [
                ("a", 1, 0),
                ("b", 2, MINUTE_MS),
                ("b", None, 9 * MINUTE_MS),
                ("c", None, 10 * MINUTE_MS),
                ("d", 3, 2 * MINUTE_MS),
                ("e", 4, 9 * MINUTE_MS),
            ]
        )
    ]
}
CUT = 4


def computed(log: Log, spec: StoreSpec[Any], until: int, folder: str, **given: Any) -> BackfillResult:
    return backfill(
        keeping(log, spec),
        sources=EmbeddedSource(str(log.path / "log.db")),
        staging=log.path / folder,
        until={ITEMS: until},
        **given,
    )


def by_hand_over(log: Log, spec: StoreSpec[Any]) -> None:
    hand_over(computed(log, spec, CUT, "staging"), log.broker)


def by_a_snapshot(log: Log, spec: StoreSpec[Any]) -> None:
    write_snapshot(computed(log, spec, CUT, "staging"), log.path / "snapshot")
    restore_snapshot(log.path / "snapshot", keeping(log, spec), log.broker)


def in_two_backfills(log: Log, spec: StoreSpec[Any]) -> None:
    """The second one has nothing that shows the time again."""
    computed(log, spec, CUT, "first")
    hand_over(computed(log, spec, CUT, "second", previous=log.path / "first"), log.broker)


def values(log: Log) -> list[int | None]:
    lines = raw(log, TopicPartition("shown", 0))
    return [None if line.value is None else INT.deserializer("shown")(line.value) for line in lines]


@pytest.mark.parametrize("how", [by_hand_over, by_a_snapshot, in_two_backfills])
@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
@pytest.mark.parametrize("kind", ["window", "session"])
def test_what_comes_too_late_for_live_comes_too_late_behind_a_hand_over(
    kind: str, persistent: bool, how: Callable[[Log, StoreSpec[Any]], None], new_log: NewLog
) -> None:
    spec = store(kind, persistent=persistent)
    prefix, rest = split(PAST, {ITEMS: CUT})
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, PAST, ["shown"])
        append(log, prefix)
    run_to_the_end(live, keeping(live, spec))
    how(handed, spec)
    for log in (live, handed):
        append(log, rest)
        run_to_the_end(log, keeping(log, spec))
    assert values(handed) == values(live)[CUT:] == [None, 4]


def test_a_hand_over_that_is_done_again_says_the_time_once_more(new_log: NewLog) -> None:
    log, spec = new_log("log"), store("window", persistent=True)
    create(log, PAST, ["shown"])
    append(log, PAST)
    for folder in ("one", "other"):
        done = hand_over(computed(log, spec, CUT, folder), log.broker).stores["kept"]
        assert done.deleted == 1
    run_to_the_end(log, keeping(log, spec))
    assert values(log) == [None, 4]
