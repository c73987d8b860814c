"""Applications of the backfill's tests, and random histories for them. Importable by name, as workers need it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pystreams import App, JoinWindows, SessionWindows, Stores, TimeWindows, agg
from pystreams.partitioning import partition_for_key
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from tests.backfill.kit import History, lines


def word_count(**settings: Any) -> App:
    app = App("wc", **settings)
    words = app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word)
    words.count(name="counts").to_stream().to("word-counts")
    return app


def windowed_sum(**settings: Any) -> App:
    """A stream joined with a table, summed in windows without a repartition, as the flights are."""
    app = App("sums", **settings)
    names = app.table("names", key=str, value=str)
    (
        app.stream("amounts", key=str, value=int)
        .filter(lambda amount: amount >= 0)
        .left_join(names, lambda amount, name: amount + len(name or ""))
        .group_by_key(value=int)
        .windowed_by(TimeWindows.tumbling(20))
        .reduce(lambda total, amount: total + amount, name="by-window")
        .to_stream()
        .map(lambda window, total: (window.key, total))
        .to("sums", key=str, value=int)
    )
    return app


def two_repartitions(**settings: Any) -> App:
    """Last amount by customer; their sum by region: invertible, so any order ends in the same sums."""
    app = App("regions", **settings)
    (
        app.stream("amounts", key=str, value=int)
        .select_key(lambda key, amount: key + str(amount % 3))
        .group_by_key(key=str, value=int)
        .reduce(lambda old, new: new, name="last")
        .group_by(lambda key, amount: (key[-1], amount), key=str, value=int)
        .aggregate(
            lambda: 0, lambda total, x: total + x, lambda total, x: total - x, name="by-region", value=int
        )
        .to_stream()
        .to("regions", key=str, value=int)
    )
    return app


class RunningTotal(Processor[str, int, str, int]):
    """Adds up by key in a plain store, and forwards all totals at each 50 ms of stream time."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.totals = context.store("totals")
        context.schedule(50, PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record[str, int]) -> None:
        self.totals.put(record.key, (self.totals.get(record.key) or 0) + record.value)

    def tell(self, time_ms: int) -> None:
        for key, total in list(self.totals.all()):
            self.context.forward(Record(key, total, time_ms))


def punctuated(**settings: Any) -> App:
    app = App("ticks", **settings)
    store = Stores.key_value_store("totals", str, int, cached=True)
    app.stream("amounts", key=str, value=int).process(RunningTotal, stores=[store], key=str, value=int).to(
        "totals"
    )
    return app


def self_joined(**settings: Any) -> App:
    """A stream joined with what is counted from itself under another key: its sub-topology is visited twice."""
    app = App("self", **settings)
    numbers = app.stream("amounts", key=str, value=int)
    totals = numbers.group_by(lambda value: f"k{value % 5}", key=str, value=int).count(name="totals")
    numbers.left_join(totals, lambda number, total: number + (total or 0)).to("out", key=str, value=int)
    totals.to_stream().to("totals-out")
    return app


def joined_streams(**settings: Any) -> App:
    """Two streams joined, what has no match of either side included."""
    app = App("joined", **settings)
    amounts, names = app.stream("amounts", key=str, value=int), app.stream("names", key=str, value=str)
    amounts.outer_join(
        names,
        lambda amount, name: f"{amount} {name}",
        windows=JoinWindows.of(20, grace=10),
        value=str,
        name="met",
    ).to("sums", key=str, value=str)
    return app


def joined_versions(**settings: Any) -> App:
    """A stream joined with the rows of its records' own times, for which it waits a while."""
    app = App("versions", **settings)
    names = app.table("names", key=str, value=str, name="names-by-time", history=60)
    app.stream("amounts", key=str, value=int).left_join(
        names, lambda amount, name: f"{amount} {name}", grace=25, value=str
    ).to("sums", key=str, value=str)
    return app


def joined_globally(**settings: Any) -> App:
    """A stream joined with a global table by what its values name, and counted by that."""
    app = App("globally", **settings)
    names = app.global_table("names", key=str, value=str)
    (
        app.stream("amounts", key=str, value=int)
        .join(
            names, lambda amount, name: amount + len(name), key_fn=lambda amount: f"k{amount % 9}", value=int
        )
        .group_by_key(value=int)
        .reduce(lambda total, amount: total + amount, name="totals")
        .to_stream()
        .to("sums", key=str, value=int)
    )
    return app


def declared(**settings: Any) -> App:
    """Declared aggregates: behind a repartition, and of sessions that are merged."""
    app = App("declared", **settings)
    amounts = app.stream("amounts", key=str, value=int)
    (
        amounts.group_by(lambda amount: f"g{amount % 3}", key=str)
        .aggregate(
            mean=agg.mean(), last=agg.last(), distinct=agg.approx_distinct(), top=agg.top(3), name="rests"
        )
        .to_stream()
        .to("rests")
    )
    (
        amounts.group_by_key()
        .windowed_by(SessionWindows.of(4, grace=50))
        .aggregate(
            n=agg.count(), total=agg.sum(), first=agg.first(), best=agg.top(2, by=abs), name="sessions"
        )
        .to_stream()
        .map(lambda session, row: (session.key, row and row.total), key=str, value=int)
        .to("totals")
    )
    return app


PROGRAMS: dict[str, Callable[..., App]] = {
    "word count": word_count,
    "windowed sum": windowed_sum,
    "two repartitions": two_repartitions,
    "punctuated": punctuated,
    "self-joined": self_joined,
    "joined streams": joined_streams,
    "joined versions": joined_versions,
    "joined globally": joined_globally,
    "declared aggregates": declared,
}


def history(program: str, seed: int, partitions: int, records: int = 120) -> History:
    """A random history of a program's inputs, out of order here and there, with nulls; the same for the same seed."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(400) for _ in range(records))
    for _ in range(records // 6):
        times[chance.randrange(records)] = chance.randrange(400)
    if program == "word count":
        words = [" ".join(f"w{chance.randrange(12)}" for _ in range(3)) for _ in range(records)]
        return {
            "lines": _spread(
                chance, partitions, [(None, word, t) for word, t in zip(words, times, strict=True)], str
            )
        }
    amounts = [(f"k{chance.randrange(9)}", chance.randrange(-2, 40), t) for t in times]
    found: dict[str, Any] = {"amounts": _spread(chance, partitions, amounts, int)}
    if program in ("windowed sum", "joined streams", "joined versions", "joined globally"):
        names = [
            (f"k{chance.randrange(9)}", None if chance.random() < 0.2 else "n" * chance.randrange(9), t)
            for t in times[::6]
        ]
        found["names"] = _spread(chance, partitions, names, str)
    return found


def _spread(chance: random.Random, partitions: int, records: list[Any], value: type) -> list[Any]:
    """Records by key as a producer has it, or anywhere if they have none. So what keeps its key stays in its partition,
    where a single task writes it: else nothing would tell in which order a sink's records come."""
    spread: list[list[Any]] = [[] for _ in range(partitions)]
    for record in records:
        key = record[0]
        place = chance.randrange(partitions) if key is None else partition_for_key(key.encode(), partitions)
        spread[place].append(record)
    return [lines(of_partition, value=value) for of_partition in spread]
