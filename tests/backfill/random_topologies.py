"""Random topologies, spread over partitions and cut anywhere: what a backfill promises, checked one by one.

    PYSTREAMS_ORACLE=path/to/oracle python -m tests.backfill.random_topologies --seed 7 --count 200
    python -m tests.backfill.random_topologies --golden
    PYSTREAMS_ORACLE=path/to/oracle python -m tests.backfill.random_topologies --on spark --log kafka --seed 7 --count 3

Topologies are those of the oracle's generator, or recorded ones, as far as pystreams has their operators. Checked are,
of each topology as far as it is promised for it:

E1  caches off and on, the result does not depend on batches, interruptions and repetitions
E2  backfill, hand-over and live equal live that was stopped at the cut and started again, where that has one result
E3  cut at one time, they equal live without a stop
E4  live tasks that are given what the backfill repartitioned give the same bytes; and where live has several results,
    what is the same in all of them is the same here
V   ``verify`` finds live stores equal to history, as far as they are certain
and of single partitions that Java's own driver gives the same.

On Spark each topology is run to one kind of end (spark/kinds.py).
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.backfill.compute.backfill_result import BackfillResult, SinkRecord
from pystreams.backfill.compute.executor import Report, SliceJob
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource
from pystreams.backfill.verification.verifying import verify
from pystreams.errors import ProductionError, StreamsError, TopicError, TopologyError
from pystreams.ids import TopicPartition
from tests.backfill.against_java import Question, comparable, differences, question
from tests.backfill.confluence import settled
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.live import append, split
from tests.backfill.replay import replayed, staged
from tests.backfill.runs import COMMIT_RECORDS, backfilled, create, left_behind, live, sinks_of
from tests.backfill.trials import Trial, deterministic, fuzzed, not_handed_over, recorded, seamless
from tests.conformance import fuzz, oracle
from tests.conformance.progress import shown
from tests.live.support import Log

#: A file system in memory, where there is one.
_MEMORY = "/dev/shm"
#: What was checked of a trial, or why not.
BATCHES = "E1: in other batches, resumed and run again the same, caches off and on"
RESTARTED = "E2: equal to live with a stop at the cut"
SEAMLESS = "E3: equal to live without a stop"
FOLDED = "E1: folded, the same stores and offsets, and what is certain of the outputs"
REPLAYED = "E4: equal to live tasks over the same internal records, caches off and on"
CERTAIN = "E4: of several legal results, equal to live in what is the same in all"
NOTHING_CERTAIN = "E4: of several legal results, nothing is the same in all"
VERIFIED = "verified: live stores, as far as they are certain, are found equal to history"
NOT_VERIFIED = "verified: no store is certain"
REFUSED = "refused: the application reads what it writes"
FAILED = "failed, as live"
NO_TOPOLOGY = "no topology"


def check(trial: Trial, folder: Path, questions: list[Question]) -> list[str]:
    """What was checked. ``questions`` are what Java is to be asked. Raises ``AssertionError`` for a difference."""
    try:
        trial.topology()
    except StreamsError:
        # That Java refuses it, too, is for the conformance tests to say.
        return [NO_TOPOLOGY]
    try:
        whole = _cut(trial, folder / "whole", 0, until=None)
    except TopologyError as refusal:
        if "writes" not in refusal.what:
            raise
        return [REFUSED]
    except StreamsError as failure:
        # Java's driver writes to topics whatever their names, and reads them whatever their widths.
        if trial.partitions == 1 and not isinstance(failure, ProductionError | TopicError):
            questions.append(question(trial, None))
        return [_failed_as_live(trial, folder, failure)]
    if comparable(trial, whole) and deterministic(whole.plan):
        questions.append(question(trial, whole))
    for cache in (0, trial.cache_max_bytes):
        result = _check_repetition(trial, folder / f"cache-{cache}", cache, exact_updates=True)
        _check_replay(trial, folder / f"replay-{cache}", result)
    found = [BATCHES, REPLAYED]
    folded = _check_repetition(trial, folder / "folded", trial.cache_max_bytes)
    if folded.manifest.folded:
        found.append(_check_folding(trial, folded, result))
    logged = trial.with_changelogs()
    if logged.scenario != trial.scenario:
        trial, whole = logged, _cut(logged, folder / "whole with changelogs", 0, until=None)
    reason = not_handed_over(trial, whole.plan)
    if reason is not None:
        return [*found, f"E2 does not promise: {reason}"]
    found += [_check_hand_over(trial, folder, whole), check_verified(trial, folder / "verified")]
    if seamless(trial, whole.plan) and not held_back(trial, whole):
        found.append(_check_no_seam(trial, folder, whole))
    return found


def _failed_as_live(trial: Trial, folder: Path, failure: StreamsError) -> str:
    with closing(Log(folder / "failing")) as log:
        create(log, trial, trial.outputs)
        append(log, trial.history)
        try:
            live(log, trial)
        except (type(failure), TopicError):
            # Which topics records would have chosen nobody knows, where the backfill failed.
            return FAILED
    raise AssertionError(f"live goes on, the backfill fails: {failure}")


def equal(ours: Any, theirs: Any, where: str) -> None:
    """Raises ``AssertionError`` that tells where the two differ first."""
    if ours == theirs:
        return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for name in [*theirs, *(ours.keys() - theirs.keys())]:
            if name not in ours or name not in theirs:
                raise AssertionError(f"{where}, {name}: only one has it")
            equal(ours[name], theirs[name], f"{where}, {name}")
    if type(ours) is type(theirs) is list:
        for number, pair in enumerate(zip(ours, theirs, strict=False)):
            equal(*pair, f"{where}, {number}")
        raise AssertionError(f"{where}: {len(ours)} and {len(theirs)} of them: {ours} is not {theirs}")
    raise AssertionError(f"{where}: {ours} is not {theirs}")


# E1


class StopError(Exception):
    """The driver dies."""


@dataclass
class Stopping(InlineExecutor):
    """Dies when a slice is staged, and the manifest does not say so yet."""

    slice: int = 0

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        outcomes = super().compute(job, report)
        if job.work.slice.index == self.slice:
            raise StopError
        return outcomes


def _check_repetition(
    trial: Trial, there: Path, cache: int, *, exact_updates: bool = False
) -> BackfillResult:
    cut = partial(_cut, trial, cache=cache, exact_updates=exact_updates)
    result = cut(there / "1")
    first = everything(result)
    equal(everything(cut(there / "2", executor=InlineExecutor(batch_rows=3))), first, "in other batches")
    equal(everything(cut(there / "2", overwrite=True)), first, "run again")
    for stop in range(max(first["slices"]) + 1):
        try:
            cut(there / "3", executor=Stopping(batch_rows=7, slice=stop), resume=stop > 0)
            raise AssertionError("nothing died")
        except StopError:
            continue
    equal(everything(cut(there / "3", resume=True)), first, "resumed")
    return result


def _check_folding(trial: Trial, folded: BackfillResult, exact: BackfillResult) -> str:
    """Compare a backfill that holds results with one that writes each update."""
    found, expected, certain = everything(folded), everything(exact), settled(trial.scenario)
    for what in ("changelogs", "offsets"):
        equal(found[what], expected[what], f"folded, {what}")
    for index, one in found["slices"].items():
        other = expected["slices"][index]
        equal([one.dropped, one.late], [other.dropped, other.late], f"folded, slice {index}")
    for topic in certain.records | certain.last_values:
        ours, theirs = found["sinks"].get(topic, {}), expected["sinks"].get(topic, {})
        if topic in certain.last_values:
            equal(_last_values(ours), _last_values(theirs), f"folded, sinks, {topic}")
        emitted = _as_set(theirs)
        others = [record for record in _as_set(ours) if record not in emitted]
        equal(others, [], f"folded, sinks, {topic}")
    return FOLDED


def _cut(
    trial: Trial, staging: Path, cache: int, executor: InlineExecutor | None = None, **how: Any
) -> BackfillResult:
    """The backfill up to the cut, with a cache budget; nothing but memory is read."""
    settings = {**trial.settings, "statestore_cache_max_bytes": cache}
    until, exact_updates = how.pop("until", trial.cut), how.pop("exact_updates", False)
    return Backfill(
        trial.topology(),
        memory(trial.history, trial.outputs),
        staging,
        until=until,
        commit_records=COMMIT_RECORDS,
        executor=executor,
        exact_updates=exact_updates,
        **settings,
    ).run(**how)


# E2, and what of E4 is about live


def _check_hand_over(trial: Trial, folder: Path, whole: BackfillResult) -> str:
    with closing(Log(folder / "handed")) as log:
        create(log, trial, sinks_of(whole))
        append(log, trial.history)
        result = backfilled(trial, log, folder / "cut", until=trial.cut)
        hand_over(result, log.broker)
        left = live(log, trial)
        found = left_behind(log, trial, whole, left, result)
    with closing(Log(folder / "live")) as log:
        expected = live_in_parts(log, trial, whole, [trial.cut])
    return compared(trial, whole, found, expected)


def live_in_parts(
    log: Log, trial: Trial, whole: BackfillResult, cuts: Iterable[Mapping[TopicPartition, int]]
) -> dict[str, Any]:
    """What live leaves that was stopped at cuts, one after the other, and started again."""
    create(log, trial, sinks_of(whole))
    left: dict[str, Any] = {}
    start = dict.fromkeys(trial.cut, 0)
    end = {p: len(trial.history[p.topic][p.partition]) for p in trial.cut}
    for cut in [*cuts, end]:
        append(log, split(split(trial.history, cut)[0], start)[1])
        left = live(log, trial)
        start = dict(cut)
    return left_behind(log, trial, whole, left)


def compared(trial: Trial, whole: BackfillResult, found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Compare what two runs left, as far as live has one result. Raises ``AssertionError``."""
    if deterministic(whole.plan) and not held_back(trial, whole):
        equal(found, expected, "after the hand-over")
        return RESTARTED
    certain = settled(trial.scenario, _versions_held_back(whole))
    punctual = found["dropped"] == expected["dropped"] == 0 and not _late(whole)
    checked = 0
    stores = certain.stores | (certain.windowed_stores if punctual else frozenset())
    # A table that nobody needs as a store has none. Where its last values are certain, what came before is not.
    versioned = {spec.name for spec in whole.loaded.built.stores if spec.kind == "versioned"}
    for store in (stores & expected["stores"].keys()) - versioned:
        checked += 1
        for what in ("changelogs", "stores"):
            equal(found[what].get(store), expected[what].get(store), f"{what}, {store}")
    late = not punctual and certain.windowed_stores
    for topic in () if late else certain.records | certain.last_values:
        checked += 1
        ours, theirs = found["sinks"].get(topic, {}), expected["sinks"].get(topic, {})
        of = _last_values if topic in certain.last_values else _as_set
        equal(of(ours), of(theirs), f"sinks, {topic}")
    return CERTAIN if checked else NOTHING_CERTAIN


def held_back(trial: Trial, whole: BackfillResult) -> bool:
    """Whether live may have another result because it holds stream time back behind internal topics while it catches
    up: it keeps records that history drops as late and versions that history has forgotten, and its buffers emit less
    often."""
    internal = any(input.internal for one in whole.plan.slices for input in one.inputs)
    buffers = any(step["op"] == "suppress" for step in trial.scenario["steps"])
    return internal and (buffers or _late(whole) or bool(_versions_held_back(whole)))


def _versions_held_back(whole: BackfillResult) -> set[str]:
    """The versioned stores of tasks that read internal topics."""
    behind = [one.stores for one in whole.plan.slices if any(input.internal for input in one.inputs)]
    versioned = {spec.name for spec in whole.loaded.built.stores if spec.kind == "versioned"}
    return versioned.intersection(chain.from_iterable(behind))


def _late(whole: BackfillResult) -> bool:
    return any(one.late for one in whole.manifest.slices.values())


def _as_set(sink: Mapping[int, list[SinkRecord]]) -> list[Any]:
    return sorted((record for records in sink.values() for record in records), key=repr)


def _last_values(sink: Mapping[int, list[SinkRecord]]) -> dict[Any, Any]:
    return {record.key: record.value for records in sink.values() for record in records}


# Verified


def check_verified(trial: Trial, folder: Path) -> str:
    """Run live, and compare its stores with history as the product does."""
    whole = _cut(trial, folder / "whole", 0, until=None)
    with closing(Log(folder)) as log:
        create(log, trial, sinks_of(whole))
        append(log, trial.history)
        live(log, trial)
        source = EmbeddedSource(str(folder / "log.db"))
        settings = {**trial.settings, "state_dir": folder / "state"}
        found = verify(trial.topology(), log.broker, sources=source, settings=settings, wait_ms=0)
    one_result = deterministic(whole.plan) and not held_back(trial, whole)
    certain = settled(trial.scenario, _versions_held_back(whole)).stores
    versioned = {spec.name for spec in whole.loaded.built.stores if spec.kind == "versioned"}
    checked = {
        store: one
        for store, one in found.stores.items()
        if one_result or (store in certain and store not in versioned)
    }
    for store, one in checked.items():
        # Of several legal results of one value, the timestamps may be several, too.
        if one.counts.different != (0 if one_result else one.counts.timestamp):
            raise AssertionError(f"verified, {store}: {one}")
    return VERIFIED if checked else NOT_VERIFIED


# E3


def _check_no_seam(trial: Trial, folder: Path, whole: BackfillResult) -> str:
    with closing(Log(folder / "seam")) as log:
        create(log, trial, sinks_of(whole))
        append(log, trial.history)
        result = backfilled(trial, log, folder / "time", until=trial.until_ms)
        ends = {input.partition: input.end for input in result.manifest.inputs}
        assert ends == trial.cut_at(trial.until_ms), "the cut"
        hand_over(result, log.broker)
        left = live(log, trial)
        found = left_behind(log, trial, whole, left, result)
    with closing(Log(folder / "seamless")) as log:
        expected = live_in_parts(log, trial, whole, [])
    # Counts of the first process are gone in the second.
    del found["dropped"], expected["dropped"]
    equal(found, expected, "no seam")
    return SEAMLESS


# E4


def _check_replay(trial: Trial, folder: Path, result: BackfillResult) -> None:
    theirs = replayed(result, trial.history, folder)
    for place, ours in staged(result).items():
        equal(ours._asdict(), theirs[place]._asdict(), f"slice and task {place}")


# By the command line


def main() -> int:
    """0: no difference; 1: at least one; 2: there is no generator."""
    parser = argparse.ArgumentParser(description="What a backfill promises, over random topologies.")
    parser.add_argument("--golden", action="store_true", help="the recorded scenarios instead of random ones")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument(
        "--profile", choices=fuzz.PROFILES, help="of the conformance tests (default: all operators)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="of runs inline")
    parser.add_argument("--on", choices=["inline", "spark"], default="inline")
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded", help="of runs on Spark")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    logging.disable()
    try:
        if arguments.on == "spark":
            from tests.backfill.spark.kinds import run_fuzzed

            return run_fuzzed(seed, arguments.count, arguments.log)
        random_ones = fuzzed(seed, arguments.count, arguments.profile)
        trials = recorded(seed) if arguments.golden else random_ones
        return _inline([*trials], seed, arguments.processes)
    except oracle.OracleError as error:
        print(error, file=sys.stderr)
        return 2


class _Checked(NamedTuple):
    """What came of a trial; ``difference`` None: all is as it should be."""

    name: str
    came: list[str]
    questions: list[Question]
    difference: str | None


def _checked(trial: Trial) -> _Checked:
    """In a process of its own."""
    logging.disable()
    questions: list[Question] = []
    # Nothing of it is kept, and in memory many small databases are opened faster.
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        try:
            return _Checked(trial.name, check(trial, Path(folder), questions), questions, None)
        except (AssertionError, StreamsError) as difference:
            return _Checked(trial.name, [], questions, str(difference)[:2000])


def _inline(trials: Sequence[Trial], seed: int, processes: int) -> int:
    came: Counter[str] = Counter()
    questions: list[Question] = []
    differ = 0
    # Not forked: what this process has open is none of theirs.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        running = [pool.submit(_checked, trial) for trial in trials]
        for done in shown(as_completed(running), len(trials), "topologies"):
            one = done.result()
            came.update(one.came)
            questions += one.questions
            if one.difference is not None:
                differ += 1
                print(f"{one.name}, seed {seed}: DIFFERENT: {one.difference}", flush=True)
    print(f"seed {seed}: {len(trials)} topologies, {differ} differ")
    for what, count in sorted(came.items()):
        print(f"{count:5}  {what}")
    if oracle.VARIABLE in os.environ:
        told = differences(questions)
        print(f"{len(questions):5}  asked of Java, {len(told)} differ")
        print("".join(f"{one[:2000]}\n" for one in told), end="")
        differ += len(told)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
