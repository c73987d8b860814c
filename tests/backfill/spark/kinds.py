"""Random topologies on Spark, each to one kind of end: something is killed, or run again. Then live goes on.

What Spark computed is compared with an inline run (E1), what stands on the log in the end with live that was stopped at
the cut and started again (E2, E4). ``topologies.json`` has some that were made once by the oracle's generator, so that
they run where there is no generator.

    PYSTREAMS_ORACLE=path/to/oracle python -m tests.backfill.spark.kinds --record 3     # makes topologies.json anew
    python -m tests.backfill.spark.kinds [--log kafka]                                  # runs it
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from pystreams.backfill import EmbeddedSource, KafkaSource, backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.handover import hand_over as handover
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.sources import Source
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from pystreams.engine.global_state import GLOBAL_TASK
from pystreams.errors import StreamsError
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.live import append
from tests.backfill.random_topologies import StopError, compared, equal, live_in_parts
from tests.backfill.runs import COMMIT_RECORDS, create, left_behind, live, sinks_of
from tests.backfill.spark.killing import Deadly, KilledOnce, Stopping, killed_driver
from tests.backfill.trials import (
    FIRST_MS_ON_KAFKA,
    Trial,
    Written,
    fuzzed,
    not_handed_over,
    read,
    write,
)
from tests.conformance.scenarios import global_topics
from tests.live.support import Log

TOPOLOGIES = Path(__file__).with_name("topologies.json")
#: What a backfill reads at least.
_RECORDS_MIN = 8
#: Each slice takes Spark a while.
_FEW_STEPS = 10

#: Small: the machine is shared with others.
SESSION = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Place:
    """Where a trial runs: a log, and a folder of its own. ``first_ms`` is when its records begin."""

    log: Log
    folder: Path
    bootstrap_servers: str | None = None

    @property
    def first_ms(self) -> int:
        return 0 if self.bootstrap_servers is None else FIRST_MS_ON_KAFKA

    def source(self) -> Source:
        if self.bootstrap_servers is None:
            return EmbeddedSource(str(self.log.path / "log.db"))
        return KafkaSource(self.bootstrap_servers)


@dataclass(frozen=True)
class Run:
    """A trial at a place, its records written."""

    written: Written
    trial: Trial
    place: Place
    executor: SparkExecutor

    def computed(
        self, executor: Executor | None = None, staging: str = "staging", **how: Any
    ) -> BackfillResult:
        return computed(
            self.trial, self.place.source(), self.place.folder / staging, executor or self.executor, **how
        )


def computed(trial: Trial, source: Source, staging: Path, executor: Executor, **how: Any) -> BackfillResult:
    how.setdefault("until", trial.cut)
    return backfill(
        trial.topology(),
        sources=source,
        staging=staging,
        executor=executor,
        settings={**trial.settings, **how.pop("settings", {})},
        commit_records=COMMIT_RECORDS,
        **how,
    )


# What happens. Each gives the backfills whose records for sinks stand before those of live; the last is handed over.

Kind = Callable[[Run], list[BackfillResult]]


def worker_in_compute(run: Run) -> list[BackfillResult]:
    marker = run.place.folder / "killed"
    result = run.computed(Deadly(run.executor, marker))
    expected = {f"killed-{one.subtopology}" for one in result.plan.slices if _records(result, one.index)}
    if any(run.trial.cut[partition] for partition in result.plan.global_inputs):
        # One was killed while it filled global stores.
        expected.add(f"killed-{GLOBAL_TASK.subtopology}")
    assert {path.name for path in marker.parent.glob("killed-*")} == expected, "no worker was killed"
    return _handed_over(run, result)


def worker_in_publish(run: Run) -> list[BackfillResult]:
    result, marker = run.computed(), run.place.folder / "killed"
    with patch.object(handover, "PublishStore", lambda *given: KilledOnce(PublishStore(*given), marker)):
        handed_over = _handed_over(run, result)
    assert marker.exists(), "no worker was killed"
    return handed_over


def driver_before_commit(run: Run) -> list[BackfillResult]:
    return _driver_killed(run, "before-commit")


def driver_in_commit(run: Run) -> list[BackfillResult]:
    return _driver_killed(run, "in-commit")


def run_again(run: Run) -> list[BackfillResult]:
    """All of it a second time, as another backfill: nothing is written that is there, but for versioned stores, whose
    changelogs are made anew. The first one ran without Spark."""
    first = hand_over(run.computed(InlineExecutor(), "first"), run.place.log.broker)
    result = run.computed()
    again = hand_over(result, run.place.log.broker)
    assert not again.complete_before
    versioned = {spec.name for spec in result.loaded.built.stores if spec.kind == "versioned"}
    for store, done in again.stores.items():
        counts = (done.unchanged, done.written) if store not in versioned else (done.written, done.unchanged)
        assert counts == (first.stores[store].written, 0), store
        assert done.deleted == 0, store
    return [result]


def resumed(run: Run) -> list[BackfillResult]:
    """Its driver dies behind each slice, before the manifest has that; what the manifest has is not computed again."""
    slices = len(run.computed(InlineExecutor(), "inline").plan.slices)
    for stop in range(slices):
        dying = Stopping(run.executor, stop)
        try:
            run.computed(dying, resume=stop > 0)
        except StopError:
            assert dying.computed == list(range(max(0, stop - 1), stop + 1))
            continue
        raise AssertionError("nothing died")
    cached = {"statestore_cache_max_bytes": run.trial.cache_max_bytes}
    on_spark = run.computed(staging="cached", settings=cached)
    inline = run.computed(InlineExecutor(), "cached inline", settings=cached)
    equal(everything(on_spark), everything(inline), "with caches, inline")
    return _handed_over(run, run.computed(resume=True))


def incremental(run: Run) -> list[BackfillResult]:
    """A second backfill goes on from one that ended at half of it."""
    first = run.computed(staging="first", until=halves(run.trial))
    return [first, *_handed_over(run, run.computed(previous=run.place.folder / "first"))]


KINDS: dict[str, Kind] = {
    kind.__name__.replace("_", "-"): kind
    for kind in (
        worker_in_compute,
        worker_in_publish,
        driver_before_commit,
        driver_in_commit,
        run_again,
        resumed,
        incremental,
    )
}
#: Each is seen once on the embedded log, those first twice; and on Kafka those that have to do with its transactions.
ON_EMBEDDED = [*KINDS, "worker-in-compute", "driver-before-commit", "driver-in-commit"]
ON_KAFKA = ["worker-in-publish", "driver-before-commit", "driver-in-commit"]
#: What topologies must have that are recorded behind those, and what happens to them, on the embedded log.
OF_OPERATORS = {"global_table": "worker-in-compute", "versioned": "worker-in-publish"}


def halves(trial: Trial) -> dict[TopicPartition, int]:
    return {partition: end // 2 for partition, end in trial.cut.items()}


def _handed_over(run: Run, result: BackfillResult) -> list[BackfillResult]:
    assert not hand_over(result, run.place.log.broker).complete_before
    return [result]


def _records(result: BackfillResult, index: int) -> int:
    return result.manifest.slices[index].records


def _driver_killed(run: Run, point: str) -> list[BackfillResult]:
    """A driver with a Spark of its own dies; this process goes on."""
    place = run.place
    job = {
        "written": run.written._asdict(),
        "first_ms": place.first_ms,
        "log": str(place.log.path),
        "bootstrap_servers": place.bootstrap_servers,
        "staging": str(place.folder / "staging"),
        "point": point,
    }
    killed_driver("tests.backfill.spark.driver", json.dumps(job))
    result = run.computed(resume=True)
    return _handed_over(run, result)


# A trial to its end


def check(written: Written, place: Place, executor: SparkExecutor) -> str:
    """Run a trial to its kind of end, and go on live. What was compared. Raises ``AssertionError`` for a difference."""
    trial = written.trial(place.first_ms)
    source = memory(trial.history, trial.outputs)
    whole = Backfill(trial.topology(), source, place.folder / "whole", **trial.settings).run()
    create(place.log, trial, sinks_of(whole))
    append(place.log, trial.history)
    run = Run(written, trial, place, executor)
    results = KINDS[written.kind](run)
    cuts = [halves(trial), trial.cut] if len(results) > 1 else [trial.cut]
    _check_inline(run, results)
    left = live(place.log, trial)
    found = left_behind(place.log, trial, whole, left, *results)
    with closing(Log(place.folder / "live")) as log:
        expected = live_in_parts(log, trial, whole, cuts)
    return compared(trial, whole, found, expected)


def _check_inline(run: Run, results: list[BackfillResult]) -> None:
    """E1: an inline run gives the same."""
    previous: dict[str, Any] = {}
    for number, result in enumerate(results):
        ends = {input.partition: input.end for input in result.manifest.inputs}
        name = f"inline-{number}"
        inline = run.computed(InlineExecutor(), name, until=ends, **previous)
        equal(everything(result), everything(inline), "inline")
        previous = {"previous": run.place.folder / name}


def suitable(trial: Trial) -> bool:
    """Whether it has stores that can be handed over, and records before and behind the cut."""
    whole = global_topics(trial.scenario)
    counted = {partition: end for partition, end in trial.cut.items() if partition.topic not in whole}
    total = sum(len(trial.history[topic][number]) for topic, number in counted)
    if not _RECORDS_MIN <= sum(counted.values()) < total:
        return False
    source = memory(trial.history, trial.outputs)
    with tempfile.TemporaryDirectory() as folder:
        try:
            whole = Backfill(trial.topology(), source, Path(folder), **trial.settings).run()
        except StreamsError:
            return False
        logged = [store for store, topic in whole.stores().items() if topic is not None]
        return not_handed_over(trial, whole.plan) is None and any(
            any(whole.changelog(store).values()) for store in logged
        )


def chosen(seed: int, kinds: list[str]) -> Iterator[Written]:
    """One of the generator's topologies for each kind: wide ones and single partitions in turn."""
    # About one in three is of use, and every other one has the wanted width.
    trials = (trial.with_changelogs() for trial in fuzzed(seed, 12 * len(kinds)))
    wanted = cycle([True, False])
    for kind in kinds:
        wide = next(wanted)
        trial = next(one for one in trials if (one.partitions > 1) == wide and suitable(one))
        yield Written(trial.scenario, seed, trial.partitions, kind)


def chosen_of_operators(seed: int) -> Iterator[Written]:
    """One of the generator's topologies for each of ``OF_OPERATORS``: wide ones."""
    trials = [
        trial.with_changelogs()
        for trial in fuzzed(seed, 600)
        if trial.partitions > 1 and len(trial.scenario["steps"]) <= _FEW_STEPS
    ]
    for what, kind in OF_OPERATORS.items():
        found = (one for one in trials if what in json.dumps(one.scenario["steps"]))
        trial = next(one for one in found if suitable(one))
        trials.remove(trial)
        yield Written(trial.scenario, seed, trial.partitions, kind)


def of_operators() -> list[Written]:
    """Those that are recorded: a global table, and a versioned one."""
    return read(TOPOLOGIES)[len(ON_EMBEDDED) + len(ON_KAFKA) :]


def run_fuzzed(seed: int, count: int, log: str) -> int:
    """0: no difference."""
    kinds = [
        kind
        for kind, _ in zip(cycle(ON_EMBEDDED if log == "embedded" else ON_KAFKA), range(count), strict=False)
    ]
    return _run_all(list(chosen(seed, kinds)), log)


def _run_all(trials: list[Written], log: str) -> int:
    differ = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = {**SESSION, "spark.local.dir": str(folder / "spark"), "spark.log.level": "OFF"}
        session = stack.enter_context(spark_session("local[2]", app_name="kinds", conf=settings))
        servers = _kafka(stack, folder) if log == "kafka" else None
        for number, written in enumerate(trials):
            begun = time.monotonic()
            try:
                came = _one(written, session, folder / str(number), servers)
            except (AssertionError, StreamsError) as difference:
                differ += 1
                came = f"DIFFERENT: {str(difference)[:2000]}"
            name = f"{written.name}, {written.partitions} partitions, {log}"
            print(f"{name}: {came} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{len(trials)} topologies on Spark, {log} log: {differ} differ")
    return 1 if differ else 0


def _one(written: Written, session: SparkSession, folder: Path, servers: str | None) -> str:
    folder.mkdir()
    if servers is None:
        log: Log = Log(folder / "log")
    else:
        from tests.kafka.support import Cluster

        log = Cluster(servers, folder / "cluster")
    with closing(log):
        return check(written, Place(log, folder, servers), SparkExecutor(session))


def _kafka(stack: ExitStack, folder: Path) -> str:
    from tests.kafka.server import KafkaServer

    server = KafkaServer(folder / "kafka")
    server.start()
    stack.callback(server.stop)
    return server.bootstrap_servers


def main() -> int:
    parser = argparse.ArgumentParser(description="Random topologies on Spark, each to one kind of end.")
    parser.add_argument("--record", type=int, metavar="SEED", help="make topologies.json anew")
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded")
    arguments = parser.parse_args()
    logging.disable()
    if arguments.record is not None:
        seed = arguments.record
        write(TOPOLOGIES, [*chosen(seed, [*ON_EMBEDDED, *ON_KAFKA]), *chosen_of_operators(seed)])
        return 0
    trials, few = read(TOPOLOGIES), len(ON_EMBEDDED)
    if arguments.log == "embedded":
        return _run_all([*trials[:few], *of_operators()], arguments.log)
    return _run_all(trials[few : few + len(ON_KAFKA)], arguments.log)


if __name__ == "__main__":
    sys.exit(main())
