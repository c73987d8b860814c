"""A task with so many steps that what they remember does not fit beside its offsets."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import Any

from pystreams import App, TimeWindows
from pystreams.engine.offset_metadata import TEXT_CHARACTERS_MAX, merge_committed
from pystreams.ids import TopicPartition
from tests.live.support import Log, caught_up, eventually, run_to_the_end

STEPS = 600
IN = TopicPartition("in", 0)
#: The last time that each step sees.
TIMES = random.Random(5).sample(range(1_000_000_000_000, 1_700_000_000_000), STEPS)
_WINDOWS = TimeWindows.tumbling(1_000, grace=0)


def counting(log: Log, **settings: Any) -> App:
    """Each step counts the records of one key, and so has a time of its own. Nothing but that time outlives the
    process."""
    app = log.app("counting", **settings)
    numbers = app.stream("in", key=int, value=int)
    for step in range(STEPS):
        of_step = numbers.filter(lambda key, _, step=step: key == step).group_by_key()
        counted = of_step.windowed_by(_WINDOWS).count(name=f"c{step}", logged=False, persistent=False)
        counted.to_stream().map(lambda window, count: (window.key, count), key=int, value=int).to("out")
    return app


def write(log: Log, later_ms: int) -> None:
    """A record for each step."""
    log.write("in", [(step, 1, time + later_ms) for step, time in enumerate(TIMES)], key=int)


def outputs(log: Log) -> dict[int, int]:
    """How often each step has emitted something."""
    return dict(Counter(record.key for record in log.read("out", key=int)))


def overflow_partition(log: Log) -> TopicPartition:
    (topic,) = (name for name in log.admin.partition_counts() if "-pystreams-overflow-" in name)
    return TopicPartition(topic, 0)


def closed_windows_stay_closed(log: Log) -> None:
    """The application commits, is restarted without its state, and gets records for windows that have closed."""
    log.create("in", "out")
    write(log, 0)
    run_to_the_end(log, counting(log))
    at = log.committed("counting")[IN]
    assert len(at.metadata) <= TEXT_CHARACTERS_MAX
    assert merge_committed({IN: at}).overflow
    # A process that was killed before it could commit has written its record.
    log.write(overflow_partition(log).topic, [("0_0", 7, 1)])
    shutil.rmtree(log.path / "state")
    write(log, -2_000)
    run_to_the_end(log, counting(log))
    assert outputs(log) == dict.fromkeys(range(STEPS), 1), "windows have opened again"


def replaced_records_are_deleted(log: Log) -> None:
    """Goes on after ``closed_windows_stay_closed``."""
    place = overflow_partition(log)
    streams = log.start(counting(log, repartition_purge_interval_ms=1))
    for later_ms in (2_000, 4_000):
        write(log, later_ms)
        caught_up(streams)
    eventually(lambda: log.admin.beginning_offsets([place])[place] > 0, "replaced records are deleted")
    assert streams.close()
    write(log, 1_000)
    run_to_the_end(log, counting(log))
    assert outputs(log) == dict.fromkeys(range(STEPS), 3)
