"""Stateless steps: what the compiled chain adds to the user's own functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pystreams import StreamsBuilder
from tests.benchmarks.micro.measure import Case
from tests.benchmarks.micro.rig import rig

N = 20_000
STEPS = 5


def is_word(word: str) -> bool:
    return word != ""


def lower(word: str) -> str:
    return word.lower()


def pair(word: str) -> tuple[str, str]:
    return word, word


def no_steps(builder: StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).to("out")


def five_steps(builder: StreamsBuilder) -> None:
    (
        builder.stream("in", key=str, value=str)
        .filter(is_word)
        .map_values(lower)
        .map(pair)
        .filter(is_word)
        .map_values(lower)
        .to("out")
    )


@contextmanager
def cases() -> Iterator[list[Case]]:
    """The budget of a step is its function and 0.01 µs."""
    words = [f"Word-{i % 997}" for i in range(N)]
    data = [word.encode() for word in words]

    def functions_alone() -> None:
        for word in words:
            if is_word(word):
                value = lower(word)
                _, value = pair(value)
                if is_word(value):
                    lower(value)

    with ExitStack() as stack:
        bare = stack.enter_context(rig(no_steps, data, data))
        chain = stack.enter_context(rig(five_steps, data, data))

        def feed() -> None:
            bare.feed()
            chain.feed()

        def without_steps() -> None:
            bare.run()
            functions_alone()

        yield [
            Case("the five functions, called in a loop", functions_alone, N),
            Case("source, no step, sink", bare.run, N, before=bare.feed),
            Case("source, five steps, sink", chain.run, N, before=chain.feed),
            Case(
                "one step beyond its function", chain.run, N * STEPS, 10, baseline=without_steps, before=feed
            ),
        ]
