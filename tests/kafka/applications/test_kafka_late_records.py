"""On Kafka, too, late records are counted over restarts, and their dead letters say how late they were."""

from __future__ import annotations

from pystreams import App, TimeWindows
from pystreams.backfill.application import loaded
from pystreams.cli.commands.late_records import late_records
from pystreams.engine.failures.lateness import LateRecords
from pystreams.ids import TopicPartition
from tests.kafka.support import Cluster
from tests.live.support import run_to_the_end


def counting(cluster: Cluster, grace: int, name: str) -> App:
    app = cluster.app(
        name,
        window_changelog_retention_ms=-1,
        errors_dead_letter_queue_topic_name="dead",
        dead_letter_dropped_records=True,
    )
    windows = TimeWindows.tumbling(10, grace=grace)
    app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(
        name="counts", step="count"
    )
    return app


def test_late_records_of_two_runs_are_in_the_groups_offsets(cluster: Cluster) -> None:
    cluster.create("in", "dead")
    cluster.write("in", [("a", 1, 5), ("a", 2, 40), ("a", 3, 27)])
    first = run_to_the_end(cluster, counting(cluster, 0, "late"))
    assert first.late_records == [LateRecords("count", "counts", 1, 13, 11, 3)]
    cluster.write("in", [("a", 4, 9)])
    run_to_the_end(cluster, counting(cluster, 0, "late"))
    built = loaded(counting(cluster, 0, "late"), {}).built
    assert late_records(built, cluster.committed("late"), now_ms=0) == [LateRecords("count", "", 2, 31, 31)]
    (dead,) = cluster.partitions("dead")
    letters = cluster.lines(dead).values()
    assert [(letter.key, letter.timestamp) for letter in letters] == [(b"a", 27), (b"a", 9)]
    headers = [dict(letter.headers) for letter in letters]
    assert [found["__streams.errors.late_ms"] for found in headers] == [b"13", b"31"]
    assert [found["__streams.errors.grace_ms"] for found in headers] == [b"11", b"31"]
    patient = run_to_the_end(cluster, counting(cluster, 31, "patient"))
    assert (patient.late_records, patient.left_out) == ([], {})
    assert cluster.lines(TopicPartition("dead", 0)).keys() == {0, 1}
