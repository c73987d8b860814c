"""Bad records of every kind, anywhere among good ones: the good ones come out as if the bad ones had never been there,
each bad one is moved once, and what is committed is the end of each input."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pystreams.app import App
from pystreams.dsl.windows import TimeWindows
from pystreams.serde import Serde
from tests.examples import chosen
from tests.live.bad_input.kit import dead_letters
from tests.live.support import Log, Read, run_to_the_end

TOPICS = ("left", "right")
PARTITIONS = 2
SEEDS = (1, 2)
CACHES = (0, 10_000_000)
#: What fails for a record with such a value: reading it, a function, an aggregator, the serde of a sink.
BAD = (b"\xff", b"function", b"aggregator", b"sink")
Row = tuple[bytes, bytes, int]


def word(data: bytes) -> str:
    return data.decode("ascii")


def write(text: str) -> bytes:
    if text == "sink":
        raise LookupError("no such word")
    return text.encode()


WORDS = Serde.of(write, word)


def mapped(text: str) -> str:
    if text == "function":
        raise ValueError("I do not like it")
    return text


def added(count: int, text: str) -> int:
    if text == "aggregator":
        raise ValueError("I cannot add it")
    return count + len(text)


def application(log: Log, cache_bytes: int) -> App:
    app = log.app(
        "words",
        statestore_cache_max_bytes=cache_bytes,
        max_task_idle_ms=5_000,
        commit_interval_ms=20,
        num_stream_threads=2,
        window_changelog_retention_ms=-1,
        deserialization_exception_handler="dead_letter",
        processing_exception_handler="dead_letter",
        production_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    left, right = (app.stream(topic, key=str, value=WORDS) for topic in TOPICS)
    words = left.merge(right).map_values(mapped, value=str)
    words.filter(lambda text: text != "aggregator").to("all", value=WORDS)
    good = words.filter(lambda text: text != "sink").group_by_key()
    good.aggregate(int, added, name="lengths", value=int).to_stream().to("lengths")
    windows = good.windowed_by(TimeWindows.hopping(100, advance=50, grace=50))
    summed = windows.aggregate(int, added, name="windows", value=int)
    summed.to_stream(lambda window, _: f"{window.key}@{window.start}").to("windows", key=str)
    return app


def history(seed: int) -> dict[tuple[str, int], list[Row]]:
    """By topic and partition. A good and a bad record never have the same time, so they are told apart by it."""
    chance = Random(seed)
    found: dict[tuple[str, int], list[Row]] = {}
    for number, (topic, partition) in enumerate((t, p) for t in TOPICS for p in range(PARTITIONS)):
        rows = []
        for i in range(100):
            value = chance.choice(BAD) if chance.random() < 0.25 else b"w" * chance.randint(1, 9)
            rows.append((f"{partition}{chance.randrange(4)}".encode(), value, 20 * i + number))
        found[topic, partition] = rows
    return found


def outcome(path: Path, rows: dict[tuple[str, int], list[Row]], cache_bytes: int, seed: int) -> Log:
    """A log with the records, written in pieces, on which the application has caught up."""
    path.mkdir()
    log = Log(path)
    log.create(*TOPICS, "all", "lengths", "windows", "dead", partitions=PARTITIONS)
    chance = Random(seed)
    for (topic, partition), records in rows.items():
        start = 0
        while start < len(records):
            size = chance.choice((1, 7, 40, 200))
            log.write(topic, records[start : start + size], key=bytes, value=bytes, partition=partition)
            start += size
    run_to_the_end(log, application(log, cache_bytes))
    return log


@pytest.mark.parametrize(
    ("seed", "cache_bytes"),
    chosen(product(SEEDS, CACHES), lambda case: case in zip(SEEDS, CACHES, strict=True)),
)
def test_the_good_ones_come_out_as_if_the_bad_ones_had_not_been(
    tmp_path: Path, seed: int, cache_bytes: int
) -> None:
    rows = history(seed)
    good = {place: [row for row in records if row[1] not in BAD] for place, records in rows.items()}
    log, clean = (
        outcome(tmp_path / name, given, cache_bytes, seed)
        for name, given in (("with bad ones", rows), ("without", good))
    )
    try:
        assert by_key(log, "all", bytes) == by_key(clean, "all", bytes)
        for topic in ("lengths", "windows"):
            assert log.table(topic) == clean.table(topic)
            if not cache_bytes:
                assert by_key(log, topic, int) == by_key(clean, topic, int)
        assert moved(log) == Counter(
            (key, value, time)
            for records in rows.values()
            for key, value, time in records
            # Two aggregations each ask about theirs.
            for _ in range(2 if value == b"aggregator" else value in BAD)
        )
        committed: Any = {partition: at.offset for partition, at in log.committed("words").items()}
        ends = log.admin.end_offsets(list(committed))
        assert committed == ends
        assert len(committed) == len(TOPICS) * PARTITIONS
    finally:
        log.close()
        clean.close()


def by_key(log: Log, topic: str, value: Any) -> list[Read]:
    """Both tasks write to all partitions, each its own keys."""
    return sorted(log.read(topic, value=value), key=lambda record: record.key)


def moved(log: Log) -> Counter[Row]:
    return Counter((letter.key or b"", letter.value or b"", letter.timestamp) for letter in dead_letters(log))
