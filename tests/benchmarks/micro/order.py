"""Two partitions of one task: long stretches of each, and records that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pystreams import StreamsBuilder
from pystreams.ids import TopicPartition
from tests.benchmarks.micro.measure import Case
from tests.benchmarks.micro.rig import Rig, rig

N = 20_000
BATCH = 500
TWO = (TopicPartition("in", 0), TopicPartition("other", 0))


def two_sources(builder: StreamsBuilder) -> None:
    builder.stream(["in", "other"], key=str, value=str).filter(bool).to("out")


@contextmanager
def cases() -> Iterator[list[Case]]:
    """A record whose predecessor is another partition's may cost 0.3 µs more."""
    data = [f"word-{i % 997}".encode() for i in range(N)]

    with ExitStack() as stack:
        long, turns = (stack.enter_context(rig(two_sources, data, data, inputs=TWO)) for _ in range(2))

        def in_turns(made: Rig, stretch: int) -> None:
            made.feed(batch=BATCH, stretch=stretch)

        yield [
            Case("stretches of 500 records", long.run, N, before=lambda: in_turns(long, BATCH)),
            Case("one record each", turns.run, N, before=lambda: in_turns(turns, 1)),
            Case(
                "one record each, beyond stretches",
                turns.run,
                N,
                300,
                baseline=long.run,
                before=lambda: (in_turns(long, BATCH), in_turns(turns, 1)),
            ),
        ]
