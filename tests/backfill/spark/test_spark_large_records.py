"""Records of more than 1 MiB pass every step of a backfill on Spark: slices, stores, sinks, hand-over."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, History, everything, lines, memory
from tests.backfill.live import append, left_on
from tests.live.support import KEPT, Log, run_to_the_end

#: From below to above what a packed row holds, 1 MiB: some records fit together, most do not.
SIZES = [100, 400_000, 1_048_576, 1_600_000, 3_200_000, 50, 1_048_577, 700_000]

LARGE = {"max.message.bytes": "4000000"}


def last_values(**settings: Any) -> App:
    """The last value of each key, under a new key, and all of them in a topic."""
    app = App("large", statestore_cache_max_bytes=0, topic_config=LARGE, **settings)
    moved = app.stream("in", key=str, value=str).select_key(lambda key, value: f"new {key}")
    last = moved.group_by_key(key=str, value=str).reduce(lambda old, new: new, name="last")
    last.to_stream().to("out", key=str, value=str)
    return app


def past() -> History:
    chance = random.Random(4)
    records = [
        (f"k{number % 5}", chance.randbytes(size // 2).hex(), number) for number, size in enumerate(SIZES)
    ]
    return {"in": [lines(records[place::2], value=str) for place in range(2)]}


@pytest.mark.live
@pytest.mark.slow
def test_they_come_out_as_inline_and_are_handed_over(tmp_path: Path, executor: SparkExecutor) -> None:
    history = past()
    inline = Backfill(last_values(), memory(history), tmp_path / "inline").run()
    on_spark = Backfill(last_values(), memory(history), tmp_path / "spark", executor=executor).run()
    # Not to be shown: a difference would fill the screen.
    assert (everything(on_spark) == everything(inline)) is True
    assert sum(result.value is not None for result in on_spark.sink("out")[0]) > 0
    with closing(Log(tmp_path / "log")) as log:
        log.create("in", "out", partitions=2, config={**KEPT, **LARGE})
        append(log, history)
        assert emit(on_spark, log.broker) == {"out": len(SIZES)}
        hand_over(on_spark, log.broker)
        app = last_values(state_dir=tmp_path / "state", poll_ms=10)
        run_to_the_end(log, app)
        left = left_on(log, app, ["out"])
    changelogs = {partition.partition: entries for partition, entries in left.changelogs.items() if entries}
    assert (changelogs == {p: of for p, of in inline.changelog("last").items() if of}) is True
    sinks = {partition.partition: records for partition, records in left.sinks.items() if records}
    assert (sinks == {p: of for p, of in inline.sink("out").items() if of}) is True
