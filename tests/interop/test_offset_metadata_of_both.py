"""The text beside committed offsets is understood by both sides, and what stands in it survives a restart; with each
guarantee."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Mapping

import pytest

from pystreams import App, Processor, TimeWindows
from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import (
    OWN_PREFIX,
    TEXT_CHARACTERS_MAX,
    OffsetMetadata,
    committed_entry,
    encode_committed,
)
from pystreams.engine.overflow import OverflowReference
from pystreams.ids import TopicPartition
from pystreams.record import Record
from pystreams.serde import TimeWindowedSerde
from pystreams.windowed import Windowed
from tests.interop.java_side import JavaSide
from tests.kafka.support import Cluster
from tests.live.support import eventually, run_to_the_end

SIZE_MS, GRACE_MS, RETENTION_MS = 10_000, 5_000, 3_600_000
WINDOWED = TimeWindowedSerde(str, SIZE_MS)
#: All times below are from an hour ago on: topics with a time limit keep them. The start of a window.
ORIGIN_MS = (time.time_ns() // 1_000_000 - 3_600_000) // SIZE_MS * SIZE_MS
IN = TopicPartition("in", 0)
#: What the window operator of ``counting_windows`` remembers.
OBSERVED = f"{OWN_PREFIX}KSTREAM-AGGREGATE-0000000001/stream_time"


EXACTLY_ONCE = "exactly_once_v2"


@pytest.fixture(params=["at_least_once", EXACTLY_ONCE])
def guarantee(request: pytest.FixtureRequest, cluster: Cluster) -> str:
    """What both sides run with."""
    cluster.broker = cluster.broker_with(exactly_once=request.param == EXACTLY_ONCE)
    return request.param


def counting_windows(cluster: Cluster) -> App:
    """As "windows" of ``java/Apps.java``."""
    app = cluster.app("windows", statestore_cache_max_bytes=0)
    windows = TimeWindows.tumbling(SIZE_MS, grace=GRACE_MS)
    grouped = app.stream("in", key=str, value=int).group_by_key()
    # Kept for longer than they take records: that they are closed is known by the operator alone.
    grouped.windowed_by(windows).count(name="wins", retention=RETENTION_MS).to_stream().to("out")
    return app


def create(cluster: Cluster) -> None:
    cluster.create("in", "out")


def write(cluster: Cluster, *times: int, partition: int | None = None) -> None:
    """Records at these times, in ms after ``ORIGIN_MS``."""
    cluster.write("in", [("k", 1, ORIGIN_MS + time) for time in times], partition=partition)


def counts(cluster: Cluster) -> dict[int, int]:
    """By the windows' starts, in ms after ``ORIGIN_MS``."""
    table: dict[Windowed[str], int] = cluster.table("out", key=WINDOWED)
    return {window.start - ORIGIN_MS: count for window, count in table.items()}


def metadata(cluster: Cluster, group: str) -> dict[TopicPartition, OffsetMetadata]:
    return {p: OffsetMetadata.decode(at.metadata) for p, at in cluster.committed(group).items()}


def java_runs(cluster: Cluster, java: JavaSide, app: str, guarantee: str) -> None:
    """Run an application of Java's (``windows`` by its id, too) until all of ``in`` is committed, and stop it."""
    java.start(app, "windows", cluster.path / "java", **{"processing.guarantee": guarantee})
    eventually(lambda: cluster.all_committed("windows", "in"), "Java has committed everything")
    java.stop("windows")


def in_transactions(cluster: Cluster) -> bool:
    """Whether the changes of the windows were: marks of their ends lie between the records."""
    partitions = cluster.partitions("windows-wins-changelog")
    records = sum(len(cluster.lines(partition)) for partition in partitions)
    return sum(cluster.admin.end_offsets(partitions).values()) > records


def test_what_java_commits_is_understood_here(cluster: Cluster, java: JavaSide, guarantee: str):
    cluster.create("in", "out", partitions=2)
    write(cluster, 1_000, 12_000, 40_000, partition=0)
    write(cluster, 7_000, partition=1)
    java_runs(cluster, java, "closes", guarantee)
    assert in_transactions(cluster) == (guarantee == EXACTLY_ONCE)
    found = metadata(cluster, "windows")
    one, other = TopicPartition("in", 0), TopicPartition("in", 1)
    assert (found[one].partition_time, found[other].partition_time) == (
        ORIGIN_MS + 40_000,
        ORIGIN_MS + 7_000,
    )
    # What is emitted on close is remembered by the store's name.
    assert set(found[one].entries) == {"wins"}
    for partition, at in cluster.committed("windows").items():
        theirs = java.ask("decode", text=at.metadata, names=["wins"])
        assert theirs["time"] == found[partition].partition_time
        assert theirs["values"] == {"wins": found[partition].entries.get("wins")}


def test_what_is_committed_here_is_understood_by_java_and_unknown_entries_are_kept(
    cluster: Cluster, java: JavaSide, guarantee: str
):
    create(cluster)
    theirs = java.ask("encode", time=3_000, entries={"winemit": -7, "naïve": 1 << 62})
    cluster.admin.set_group_offsets("windows", {IN: CommittedOffset(0, theirs)})
    write(cluster, 1_000, 40_000, 33_000)
    run_to_the_end(cluster, counting_windows(cluster))
    assert in_transactions(cluster) == (guarantee == EXACTLY_ONCE)
    ((partition, (offset, text)),) = java.ask("committed", group="windows").items()
    assert (partition, offset) == ("in-0", 3)
    base64.b64decode(text, validate=True)  # no NUL, nothing appended
    expected = {"winemit": -7, "naïve": 1 << 62, OBSERVED: ORIGIN_MS + 40_000, committed_entry(IN): 3}
    read = java.ask("decode", text=text, names=list(expected))
    assert read == {"time": ORIGIN_MS + 40_000, "count": len(expected), "values": expected}


def test_both_write_and_read_the_same_texts_and_damaged_ones_alike(java: JavaSide):
    seed = random.randrange(1 << 32)
    print(f"random metadata from seed {seed}")
    choose = random.Random(seed)
    for _ in range(100):
        entries = {
            f"py/{choose.choice(['a', 'ü', '🚀'])}{i}": choose.randint(-(1 << 63), (1 << 63) - 1)
            for i in range(choose.randint(0, 4))
        }
        ours = OffsetMetadata(choose.randint(-1, (1 << 63) - 1), entries)
        theirs = java.ask("encode", time=ours.partition_time, entries=entries)
        assert OffsetMetadata.decode(theirs) == ours
        data = base64.b64decode(ours.encode())
        damaged = [
            data[: choose.randint(0, len(data))],
            bytes([choose.choice([0, 1, 3])]) + data[1:],
            data + b"more",
        ]
        for text in [ours.encode(), *(base64.b64encode(d).decode() for d in damaged), ours.encode() + "\0"]:
            read = OffsetMetadata.decode(text)
            found = java.ask("decode", text=text, names=list(entries))
            assert found["time"] == read.partition_time, text
            assert found["count"] == len(read.entries), text
            assert found["values"] == {name: read.entries.get(name) for name in entries}, text


def test_java_reads_its_part_of_a_text_with_numbers_of_very_many_steps(java: JavaSide):
    ours = {f"{OWN_PREFIX}KSTREAM-AGGREGATE-{step:010}/stream_time": ORIGIN_MS + step for step in range(200)}
    for theirs in ({}, {"winemit": -7, "naïve": 1 << 62}):
        written = OffsetMetadata(3_000, {**theirs, **ours, committed_entry(IN): 3})
        text = written.encode()
        assert len(text) <= TEXT_CHARACTERS_MAX
        assert OffsetMetadata.decode(text) == written
        expected = {**theirs, committed_entry(IN): 3}
        read = java.ask("decode", text=text, names=list(expected))
        assert read == {"time": 3_000, "count": len(expected), "values": expected}
    all_packed = OffsetMetadata(3_000, {f"emitted-every-minute-{number}": number for number in range(120)})
    read = java.ask("decode", text=all_packed.encode(), names=["emitted-every-minute-1"])
    assert read == {"time": 3_000, "count": 0, "values": {"emitted-every-minute-1": None}}


def test_java_carries_a_reference_to_a_record_along(java: JavaSide):
    def record(numbers: Mapping[str, int], has_emitted: bool) -> OverflowReference:
        return OverflowReference(2, 12, 0, 1 << 40, -(1 << 63), has_emitted)

    steps = {f"{OWN_PREFIX}step-{step * 7919}/stream_time": step**4 % 1_000_003 for step in range(2_000)}
    text = encode_committed({IN: 3}, {IN: 3_000}, steps, {"winemit": -7}, record)[IN].metadata
    entries = record({}, False).entries()
    expected = {"winemit": -7, **entries, committed_entry(IN): 3}
    assert java.ask("decode", text=text, names=list(expected)) == {
        "time": 3_000,
        "count": len(expected),
        "values": expected,
    }


class StreamTime(Processor[str, int, str, int]):
    """Forwards the stream time that each record meets."""

    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record.with_value(self.context.current_stream_time_ms() - ORIGIN_MS))


@pytest.mark.usefixtures("guarantee")
def test_stream_time_survives_a_restart(cluster: Cluster):
    cluster.create("in", "out")

    def app() -> App:
        app = cluster.app("timing")
        app.stream("in", key=str, value=int).process(StreamTime).to("out", key=str, value=int)
        return app

    write(cluster, 40_000, 1_000)
    run_to_the_end(cluster, app())
    write(cluster, 2_000, 50_000)
    run_to_the_end(cluster, app())
    assert [record.value for record in cluster.read("out")] == [40_000, 40_000, 40_000, 50_000]


@pytest.mark.usefixtures("guarantee")
def test_windows_that_closed_before_a_restart_stay_closed(cluster: Cluster):
    create(cluster)
    write(cluster, 1_000, 2_000, 40_000)
    run_to_the_end(cluster, counting_windows(cluster))
    write(cluster, 3_000, 24_999, 26_000)
    run_to_the_end(cluster, counting_windows(cluster))
    # The window from 20 s on has closed at 35 s, though nothing was in it.
    assert counts(cluster) == {0: 2, 40_000: 1}
    assert metadata(cluster, "windows")[IN].entries[OBSERVED] == ORIGIN_MS + 40_000


def test_what_operators_remember_is_not_believed_once_java_has_committed(
    cluster: Cluster, java: JavaSide, guarantee: str
):
    create(cluster)
    write(cluster, 40_000)
    run_to_the_end(cluster, counting_windows(cluster))
    # Java's operators forget their time when it stops: to them a record at 21 s is in time.
    write(cluster, 21_000)
    java_runs(cluster, java, "windows", guarantee)
    carried = metadata(cluster, "windows")[IN]
    assert carried.entries[OBSERVED] == ORIGIN_MS + 40_000
    assert carried.entries[committed_entry(IN)] == 1
    assert cluster.committed("windows")[IN].offset == 2
    # And so it is here: the entry is from before.
    write(cluster, 22_000)
    run_to_the_end(cluster, counting_windows(cluster))
    assert counts(cluster) == {40_000: 1, 20_000: 2}
    fresh = metadata(cluster, "windows")[IN]
    assert (fresh.entries[OBSERVED], fresh.entries[committed_entry(IN)]) == (ORIGIN_MS + 22_000, 3)
    assert fresh.partition_time == ORIGIN_MS + 40_000
