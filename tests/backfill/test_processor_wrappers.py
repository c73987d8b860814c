"""Processors around every step change nothing in a backfill, and see it at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import App, Processor, Record
from pystreams.processor import ProcessorContext
from pystreams.topology.wrapping import AnySupplier, ProcessorSupplier
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import PROGRAMS, history


class Around(Processor[Any, Any, Any, Any]):
    """Hands everything on, and counts."""

    def __init__(self, inner: Processor[Any, Any, Any, Any], count: Callable[[], None]) -> None:
        self.inner = inner
        self.count = count

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.inner.init(context)

    def process(self, record: Record[Any, Any]) -> None:
        self.count()
        self.inner.process(record)

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("name", ["windowed sum", "punctuated", "joined streams"])
def test_a_backfill_gives_the_same_with_processors_around_every_step(name: str, tmp_path: Any) -> None:
    counted: dict[str, int] = {}

    def wrap(step: str, supplier: ProcessorSupplier) -> AnySupplier:
        counted[step] = 0

        def count() -> None:
            counted[step] += 1

        return lambda: Around(supplier(), count)

    def backfilled(folder: str, **settings: Any) -> Any:
        program: App = PROGRAMS[name]()
        source = memory(history(name, 3, partitions=2))
        place = tmp_path / folder
        # A step with a processor around it sees each update.
        job = Backfill(program, source, place, commit_records=20, exact_updates=True, **settings)
        return everything(job.run())

    assert backfilled("wrapped", processor_wrapper=wrap) == backfilled("plain")
    assert counted
    assert all(counted.values())
