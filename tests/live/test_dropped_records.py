"""Records that steps drop go to the dead-letter topic of the log, committed with everything else."""

from __future__ import annotations

from pystreams import TimeWindows
from tests.live.support import Log, run_to_the_end


def test_late_records_are_moved_to_the_dead_letter_topic_of_a_log(log: Log) -> None:
    log.create("in", "dead")
    app = log.app(
        "late",
        errors_dead_letter_queue_topic_name="dead",
        dead_letter_dropped_records=True,
        window_changelog_retention_ms=-1,
    )
    windows = TimeWindows.tumbling(10)
    app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count()
    log.write("in", [("a", 1, 1), ("a", 2, 100), ("a", 3, 2)])
    run_to_the_end(log, app)
    assert log.read("dead") == [("a", 3, 2)]


def test_records_with_a_time_below_zero_are_moved_to_the_dead_letter_topic_of_a_log(log: Log) -> None:
    log.create("in", "out", "dead")
    app = log.app("below", errors_dead_letter_queue_topic_name="dead", dead_letter_dropped_records=True)
    app.stream("in", key=str, value=int, timestamp_extractor=lambda record: record.value).to("out")
    log.write("in", [("a", 7, 1), ("a", -1, 2)])
    run_to_the_end(log, app)
    assert log.read("dead") == [("a", -1, 2)]
