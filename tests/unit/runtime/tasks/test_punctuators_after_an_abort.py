"""A task that begins anew in the same thread has its punctuators once: those of before are gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.ids import TaskId, TopicPartition
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from tests.unit.runtime.tasks.manager_kit import World

TASK = TaskId(0, 0)
INPUT = TopicPartition("in", 0)
INTERVAL_MS = 1_000


def ticking(kind: PunctuationType, ticks: list[int]) -> Callable[[], App]:
    class Ticker(Processor[str, str, str, str]):
        def init(self, context: ProcessorContext[Any, Any]) -> None:
            super().init(context)
            context.schedule(INTERVAL_MS, kind, ticks.append)

        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record)

    def application() -> App:
        app = App("app")
        app.stream("in", key=str, value=str).process(Ticker).to("out")
        return app

    return application


@pytest.mark.parametrize("event", ["revive", "lose"])
@pytest.mark.parametrize("kind", PunctuationType)
def test_they_are_called_once_in_each_interval(tmp_path: Path, kind: PunctuationType, event: str) -> None:
    ticks: list[int] = []
    inputs = {TASK: frozenset({INPUT})}
    with closing(World(tmp_path, application=ticking(kind, ticks), inputs=inputs)) as world:
        world.assign(TASK)
        world.round()
        for _ in range(3):
            getattr(world, event)()
            world.assign(TASK)
            world.round()
        for interval in range(1, 4):
            ticks.clear()
            world.clock.advance_ms(INTERVAL_MS)
            world.log.partitions[INPUT].append((b"k", b"v", interval * INTERVAL_MS))
            world.work()
            world.manager.punctuate(world.clock.now_ms())
            assert len(ticks) == 1, (interval, ticks)
