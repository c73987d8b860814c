"""The log says of late records how late they were, and which grace would have kept them."""

from __future__ import annotations

import pytest

from pystreams import App, TimeWindows
from pystreams.engine.failures.left_out import totals_text
from tests.live.support import Log, run_to_the_end

MINUTE_MS = 60_000


def counting(log: Log, name: str, *, grace: int = 0, rekeyed: bool = False, **settings: str) -> App:
    app = log.app(name, window_changelog_retention_ms=-1, **settings)
    windows = TimeWindows.tumbling(MINUTE_MS, grace=grace)
    stream = app.stream("in", key=str, value=int)
    grouped = stream.group_by(lambda _: "all", key=str) if rekeyed else stream.group_by_key()
    grouped.windowed_by(windows).count(name="counts", step="count").to_stream().to("out")
    return app


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith("left_out")]


#: The last two are late.
RECORDS = [
    ("a", 1, 0),
    ("a", 2, 90_000),
    *(("b", n, 90_000 + n) for n in range(10)),
    ("a", 3, 100),
    ("b", 4, 200),
]


def test_the_first_late_record_is_described_and_all_are_counted(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in", "out")
    log.write("in", RECORDS)
    streams = run_to_the_end(log, counting(log, "late"))
    first, all_of_them = warnings(caplog)
    assert first == (
        "a record was dropped: task 0_0, step count (store counts), in-0 offset 12, timestamp 100: the window has "
        "closed: stream time was 1970-01-01T00:01:30.009Z, so it was 1 min 30 s late; a grace of at least 30.01 s "
        "would have kept it; more of this kind are counted"
    )
    assert all_of_them == (
        "2 records so far were dropped (topic in, step count (store counts)): the window has closed; 2 of 14 records "
        "(14 %), up to 1 min 30 s late; a grace of at least 30.01 s would have kept them"
    )
    (late,) = streams.late_records
    assert (late.records, late.late_ms, late.grace_ms) == (2, 89_909, 30_010)
    total = streams.metrics.total
    assert total("late-records-total", processor_node_id="count") == 2
    assert total("late-records-lateness-max-ms") == 89_909
    assert total("late-records-grace-needed-max-ms") == 30_010


def test_with_that_grace_none_is_late(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.create("in", "out")
    log.write("in", RECORDS)
    streams = run_to_the_end(log, counting(log, "patient", grace=30_010))
    assert (warnings(caplog), streams.late_records, streams.left_out) == ([], [], {})


@pytest.mark.parametrize("rekeyed", [True, False])
def test_where_the_setting_keeps_stream_time_from_waiting_the_remedy_names_the_setting(
    log: Log, caplog: pytest.LogCaptureFixture, rekeyed: bool
) -> None:
    log.create("in", partitions=2)
    log.create("out")
    log.write("in", RECORDS, partition=0)
    streams = run_to_the_end(log, counting(log, "remedy", rekeyed=rekeyed, stream_time="java"))
    (late,) = streams.late_records
    named = "or stream_time=bounded if the application was catching up"
    # It would wait only where other tasks write the input.
    assert (named in warnings(caplog)[-1]) is rekeyed
    assert (named in totals_text(streams.left_out, [late])) is rekeyed
