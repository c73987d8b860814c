"""What the flights application must have written, whoever was killed when.

The input of a partition fixes, for every window, the whole row of its aggregates: after the first departure, after the
second, and so on. Commits choose which of them are written. So at any moment, in every partition:

    outputs and changelog    of each window a part of its row, each at most once, in order
    committed offset         the last of them is what the input before that offset gives, in every window
    at the end               the last of them is the last of the row; stores and offsets are an undisturbed run's
"""

from __future__ import annotations

import shutil
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from apps import flights_feed
from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS, Airline, Delays, Flight, MeanDelay, app
from apps.flights_feed import PARTITIONS, data_folder
from apps.flights_report import DAY_MS
from pystreams import open_log
from pystreams.broker.port import Broker, CommittedOffset
from pystreams.dsl.builder import build_topology
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import ContextCell
from pystreams.serde import STR, JsonSerde, TimeWindowedSerde
from pystreams.state.task_stores import TaskStores

GROUP = "flights"
CHANGELOG = f"{GROUP}-delays-by-day-changelog"

_WINDOW_SUFFIX_BYTES, _SEQUENCE_BYTES = 12, 4


class Raw(NamedTuple):
    """A record as it lies in the log."""

    offset: int
    key: bytes
    value: bytes
    timestamp: int


#: A window of a carrier: the key's bytes in output and changelog, without the changelog's sequence number.
Window = bytes
#: Of a window, after so many departures: airline, sum of delays, time of the latest.
Row = list[tuple[str, int, int]]


class Truth:
    """The rows of all windows, and how long each is after any offset of the input."""

    def __init__(self, inputs: Mapping[int, list[Raw]], airlines: Mapping[bytes, str]) -> None:
        self.flights = sum(map(len, inputs.values()))
        self.rows: list[dict[Window, Row]] = []
        self._windows: list[list[Window | None]] = []
        decode = msgspec.json.Decoder(Flight).decode
        for partition in range(PARTITIONS):
            rows: dict[Window, Row] = defaultdict(list)
            windows: list[Window | None] = []
            for _, carrier, value, timestamp in inputs[partition]:
                flight = decode(value)
                if flight.dep_time is None:
                    windows.append(None)
                    continue
                window = carrier + (timestamp - timestamp % DAY_MS).to_bytes(8, "big")
                row = rows[window]
                _, minutes, latest = row[-1] if row else ("", 0, -1)
                row.append((airlines[carrier], minutes + (flight.dep_delay or 0), max(latest, timestamp)))
                windows.append(window)
            self.rows.append(dict(rows))
            self._windows.append(windows)

    def departures(self, partition: int, offset: int) -> dict[Window, int]:
        """Departures of each window in the input before ``offset``."""
        counts: dict[Window, int] = defaultdict(int)
        for window in self._windows[partition][:offset]:
            if window is not None:
                counts[window] += 1
        return dict(counts)


@contextmanager
def data_of(count: int | None) -> Iterator[Path]:
    """A folder as that of the data, with so many flights of 2013, the first ones: all of them take seconds to read.
    None: all."""
    if count is None:
        yield data_folder()
        return
    name = "flights.csv"
    with zipfile.ZipFile(data_folder() / f"{name}.zip") as whole, whole.open(name) as lines:
        text = b"".join(islice(lines, count + 1))
    with TemporaryDirectory() as folder:
        shutil.copy(data_folder() / "airlines.csv", folder)
        with zipfile.ZipFile(Path(folder) / f"{name}.zip", "w") as first:
            first.writestr(name, text)
        yield Path(folder)


def feed(path: Path, count: int | None) -> None:
    """Fill an embedded log with so many flights of 2013, the first ones; None: all."""
    with open_log(path) as log, data_of(count) as folder:
        flights_feed.feed(log, folder)


def read(broker: Broker, topic: str) -> dict[int, list[Raw]]:
    """All records of a topic by partition; nothing if there is no such topic yet."""
    with closing(broker.admin()) as admin, closing(broker.consumer("chaos")) as consumer:
        if topic not in admin.describe_topics([topic]):
            return {partition: [] for partition in range(PARTITIONS)}
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        ends = admin.end_offsets(partitions)
        records: dict[int, list[Raw]] = {partition: [] for partition in range(PARTITIONS)}
        consumer.assign(admin.beginning_offsets(partitions))
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for batch in consumer.poll(0):
                records[batch.partition] += map(
                    Raw, batch.offsets, batch.keys, batch.values, batch.timestamps
                )
        return records


def truth_of(broker: Broker) -> Truth:
    """What the flights and airlines of a log must give."""
    decode = msgspec.json.Decoder(Airline).decode
    airlines = {raw.key: decode(raw.value).name for of in read(broker, AIRLINES).values() for raw in of}
    return Truth(read(broker, FLIGHTS), airlines)


def committed(broker: Broker) -> dict[TopicPartition, CommittedOffset]:
    """The group's offsets with their metadata."""
    with closing(broker.admin()) as admin:
        return admin.group_offsets(GROUP)


def written(broker: Broker, truth: Truth) -> list[dict[Window, int]]:
    """Departures in the last output of each window, by partition, after checking every output and every change.

    Raises ``AssertionError`` for a record that is in no row, or comes twice, or goes backward, and if the last outputs
    are not the last changes.
    """
    outputs = _checked(read(broker, MEAN_DELAYS), truth, _of_output)
    changes = _checked(read(broker, CHANGELOG), truth, _of_change)
    assert outputs == changes, "outputs and changelog disagree"
    return outputs


def _of_output(raw: Raw, rows: Mapping[Window, Row], decode: Any) -> tuple[Window, int]:
    value: MeanDelay = decode(raw.value)
    airline, minutes, latest = rows[raw.key][value.departures - 1]
    expected = MeanDelay(airline, value.departures, minutes / value.departures)
    assert (value, raw.timestamp) == (expected, latest), f"no such output: {raw}"
    return raw.key, value.departures


def _of_change(raw: Raw, rows: Mapping[Window, Row], decode: Any) -> tuple[Window, int]:
    value: Delays = decode(raw.value)
    window = raw.key[:-_SEQUENCE_BYTES]
    airline, minutes, latest = rows[window][value.departures - 1]
    assert (value, raw.timestamp) == (Delays(airline, value.departures, minutes), latest), f"no such: {raw}"
    return window, value.departures


def _checked(records: Mapping[int, list[Raw]], truth: Truth, checked: Any) -> list[dict[Window, int]]:
    decode = msgspec.json.Decoder(MeanDelay if checked is _of_output else Delays).decode
    last: list[dict[Window, int]] = []
    for partition in range(PARTITIONS):
        rows = truth.rows[partition]
        seen: dict[Window, int] = {}
        for raw in records[partition]:
            assert len(raw.key) >= _WINDOW_SUFFIX_BYTES - _SEQUENCE_BYTES, raw
            window, departures = checked(raw, rows, decode)
            assert departures > seen.get(window, 0), f"twice, or backward, after {seen[window]}: {raw}"
            seen[window] = departures
        last.append(seen)
    return last


def check_now(broker: Broker, truth: Truth) -> list[int]:
    """Nobody works: what is written is exactly what the committed offsets say. Gives those of the flights."""
    offsets = committed(broker)
    reached = [_offset(offsets, p) for p in range(PARTITIONS)]
    for p, last in enumerate(written(broker, truth)):
        expected = truth.departures(p, reached[p])
        assert last == expected, f"partition {p}, {reached[p]} flights committed: {_unlike(last, expected)}"
    return reached


def check_meanwhile(broker: Broker, truth: Truth) -> list[int]:
    """Somebody works: what is written lies between the offsets committed before and after the look."""
    before = committed(broker)
    last = written_meanwhile(broker, truth)
    after = committed(broker)
    reached = []
    for p in range(PARTITIONS):
        low, high = _offset(before, p), _offset(after, p)
        least, most = truth.departures(p, low), truth.departures(p, high)
        for window, departures in last[p].items():
            assert least.get(window, 0) <= departures <= most.get(window, 0), (window, departures)
        assert set(least) <= set(last[p]), f"missing: {set(least) - set(last[p])}"
        reached.append(low)
    return reached


def _offset(offsets: Mapping[TopicPartition, CommittedOffset], p: int) -> int:
    """Flights of a partition that are committed."""
    found = offsets.get(TopicPartition(FLIGHTS, p))
    return 0 if found is None else found.offset


def written_meanwhile(broker: Broker, truth: Truth) -> list[dict[Window, int]]:
    """As ``written``, of the outputs alone: the changelog grows between the two looks."""
    return _checked(read(broker, MEAN_DELAYS), truth, _of_output)


def check_all_rows(broker: Broker, truth: Truth) -> None:
    """Everything is processed: every window of every carrier has its last result."""
    everything = [{window: len(row) for window, row in rows.items()} for rows in truth.rows]
    last = written(broker, truth)
    assert last == everything, [_unlike(*pair) for pair in zip(last, everything, strict=True)]


def _unlike(one: Mapping[Window, int], other: Mapping[Window, int]) -> list[Any]:
    """The first few differences."""
    return sorted(set(one.items()) ^ set(other.items()))[:6]


def stores(state_dir: Path, broker: Broker) -> dict[str, list[Any]]:
    """The content of every store, by task and name, and that it stands at the end of its changelog."""
    built = build_topology(app, app.config)
    (sub,) = built.subtopologies
    contents: dict[str, list[Any]] = {}
    with closing(broker.admin()) as admin:
        for partition in range(PARTITIONS):
            task_id = TaskId(sub.id, partition)
            state = TaskStores.open(
                state_dir / GROUP / str(task_id),
                sub.stores,
                task_id=task_id,
                cell=ContextCell(),
                log_of=lambda _: None,
            )
            with closing(state):
                for name, store in state.stores.items():
                    changelog = TopicPartition(sub.changelogs[name], partition)
                    end = admin.end_offsets([changelog])[changelog]
                    offset = state.changelog_offset(name) or 0
                    assert offset == end, f"{task_id} {name} is at {offset} of {end}"
                    contents[f"{task_id} {name}"] = _content(store)
    return contents


def _content(store: Any) -> list[Any]:
    with store.all() as entries:
        return list(entries)


def results(broker: Broker) -> dict[tuple[str, int], MeanDelay]:
    """The last output of each carrier and window start, as a reader of the topic sees it."""
    keys = TimeWindowedSerde(STR, DAY_MS).deserializer(MEAN_DELAYS)
    values = JsonSerde(MeanDelay).deserializer(MEAN_DELAYS)
    last: dict[tuple[str, int], MeanDelay] = {}
    for raw in _all(read(broker, MEAN_DELAYS)):
        window = keys(raw.key)
        last[window.key, window.start] = values(raw.value)
    return last


def _all(records: Mapping[int, list[Raw]]) -> Iterable[Raw]:
    return (raw for of_partition in records.values() for raw in of_partition)
