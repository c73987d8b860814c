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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystreams.backfill.executor import Report, SliceJob
from pystreams.backfill.handover import hand_over
from pystreams.backfill.inline import InlineExecutor
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.result import BackfillResult, SinkRecord
from pystreams.backfill.sources import EmbeddedSource
from pystreams.config import StreamsConfig
from pystreams.errors import StreamsError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.runtime.offset_metadata import OffsetMetadata
from pystreams.runtime.streams import Streams
from tests.backfill.against_java import Question, comparable, differences, question, writers_of
from tests.backfill.confluence import settled
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.live import BUFFERS, append, raw, sink_record, split, visible
from tests.backfill.replay import replayed, staged
from tests.backfill.trials import (
    Trial,
    deterministic,
    fuzzed,
    not_handed_over,
    recorded,
    seamless,
)
from tests.conformance import oracle
from tests.live.support import TIMEOUT_S, Log, caught_up

#: Few, so that there are many commits.
COMMIT_RECORDS = 5

#: What was checked of a trial, or why not.
BATCHES = "E1: in other batches, resumed and run again the same, caches off and on"
RESTARTED = "E2: equal to live with a stop at the cut"
SEAMLESS = "E3: equal to live without a stop"
REPLAYED = "E4: equal to live tasks over the same internal records, caches off and on"
CERTAIN = "E4: of several legal results, equal to live in what is the same in all"
NOTHING_CERTAIN = "E4: of several legal results, nothing is the same in all"
REFUSED = "refused: the application reads what it writes"
FAILED = "failed, as live"


def check(trial: Trial, folder: Path, questions: list[Question]) -> list[str]:
    """What was checked. ``questions`` are what Java is to be asked. Raises ``AssertionError`` for a difference."""
    try:
        whole = _cut(trial, folder / "whole", 0, until=None)
    except TopologyError as refusal:
        if "writes" not in refusal.what:
            raise
        return [REFUSED]
    except StreamsError as failure:
        questions.append(question(trial, None))
        return [_failed_as_live(trial, folder, failure)]
    if comparable(trial, whole) and deterministic(whole.plan):
        questions.append(question(trial, whole))
    found = [_check_repetition(trial, folder), _check_replay(trial, folder)]
    trial = trial.with_changelogs()
    whole = _cut(trial, folder / "whole with changelogs", 0, until=None)
    reason = not_handed_over(trial, whole.plan)
    if reason is not None:
        return [*found, f"E2 does not promise: {reason}"]
    found.append(_check_hand_over(trial, folder, whole))
    if seamless(trial, whole.plan):
        found.append(_check_no_seam(trial, folder, whole))
    return found


def _failed_as_live(trial: Trial, folder: Path, failure: StreamsError) -> str:
    with closing(Log(folder / "failing")) as log:
        create(log, trial, trial.outputs)
        append(log, trial.history)
        try:
            live(log, trial)
        except type(failure):
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


@dataclass(frozen=True)
class Stopping(InlineExecutor):
    """Dies when a slice is staged, and the manifest does not say so yet."""

    slice: int = 0

    def compute(self, job: SliceJob, report: Report) -> list[Outcome]:
        outcomes = super().compute(job, report)
        if job.work.slice.index == self.slice:
            raise StopError
        return outcomes


def _check_repetition(trial: Trial, folder: Path) -> str:
    for cache in (0, trial.cache_max_bytes):
        there = folder / f"cache-{cache}"
        first = everything(_cut(trial, there / "1", cache))
        equal(everything(_cut(trial, there / "2", cache, InlineExecutor(3))), first, "in other batches")
        equal(everything(_cut(trial, there / "2", cache, overwrite=True)), first, "run again")
        last = max(first["slices"])
        for stop in range(last + 1):
            try:
                _cut(trial, there / "3", cache, Stopping(7, stop), resume=stop > 0)
                raise AssertionError("nothing died")
            except StopError:
                continue
        equal(everything(_cut(trial, there / "3", cache, resume=True)), first, "resumed")
    return BATCHES


def _cut(
    trial: Trial, staging: Path, cache: int, executor: InlineExecutor | None = None, **how: Any
) -> BackfillResult:
    """The backfill up to the cut, with a cache budget; nothing but memory is read."""
    settings = {**trial.settings, "statestore_cache_max_bytes": cache}
    until = how.pop("until", trial.cut)
    return Backfill(
        trial.topology(),
        memory(trial.history, trial.outputs),
        staging,
        until=until,
        commit_records=COMMIT_RECORDS,
        executor=executor,
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
    if deterministic(whole.plan):
        equal(found, expected, "after the hand-over")
        return RESTARTED
    certain = settled(trial.scenario)
    punctual = found["dropped"] == expected["dropped"] == 0
    checked = 0
    stores = certain.stores | (certain.windowed_stores if punctual else frozenset())
    # A table that nobody needs as a store has none.
    for store in stores & expected["stores"].keys():
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


def _as_set(sink: Mapping[int, list[SinkRecord]]) -> list[Any]:
    return sorted((record for records in sink.values() for record in records), key=repr)


def _last_values(sink: Mapping[int, list[SinkRecord]]) -> dict[Any, Any]:
    return {record.key: record.value for records in sink.values() for record in records}


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


def _check_replay(trial: Trial, folder: Path) -> str:
    for cache in (0, trial.cache_max_bytes):
        result = _cut(trial, folder / f"replay-{cache}", cache)
        theirs = replayed(result, trial.history, folder / f"replay-{cache}-state")
        for place, ours in staged(result).items():
            equal(ours._asdict(), theirs[place]._asdict(), f"slice and task {place}")
    return REPLAYED


# Runs


def create(log: Log, trial: Trial, sinks: Iterable[str]) -> None:
    have = log.admin.partition_counts()
    topics = [topic for topic in [*trial.history, *sinks] if topic not in have]
    log.create(*topics, partitions=trial.partitions)


def sinks_of(whole: BackfillResult) -> list[str]:
    """The topics outside that are written, by name or chosen by record."""
    named = {topic for one in whole.plan.slices for topic in one.sinks}
    return sorted(named | {partition.topic for partition in whole.written()})


def backfilled(trial: Trial, log: Log, staging: Path, **given: Any) -> BackfillResult:
    """Inline, of what is on an embedded log."""
    source = EmbeddedSource(str(log.path / "log.db"))
    settings = {**trial.settings, "state_dir": log.path / "state"}
    return Backfill(
        trial.topology(), source, staging, commit_records=COMMIT_RECORDS, **given, **settings
    ).run()


def live(log: Log, trial: Trial) -> dict[str, Any]:
    """Run until all is processed, and stop. What its stores showed then, and how many records it has dropped."""
    config = StreamsConfig.of(**trial.settings, state_dir=log.path / "state")
    streams = Streams(trial.topology(), config, broker=log.broker)
    streams.start()
    try:
        caught_up(streams)
        # What a buffer holds back nobody may read; its changelog is compared.
        names = [spec.name for spec in streams._built.stores if spec.kind not in BUFFERS]
        stores = {name: sorted(map(repr, streams.store(name).all())) for name in names}
        return {"stores": stores, "dropped": int(streams.metrics.total(DROPPED_RECORDS))}
    finally:
        assert streams.close(1000 * TIMEOUT_S)


def left_behind(
    log: Log, trial: Trial, whole: BackfillResult, left: dict[str, Any], *results: BackfillResult
) -> dict[str, Any]:
    """All that E2 compares; what ``results`` gave for sinks stands before what live wrote."""
    return {
        **left,
        "changelogs": _changelogs(log, whole),
        "sinks": {topic: _sink(log, topic, whole, results) for topic in sinks_of(whole)},
        "offsets": {
            str(partition): (at.offset, OffsetMetadata.decode(at.metadata))
            for partition, at in log.committed(whole.plan.application_id).items()
            if partition.topic in trial.history and trial.history[partition.topic][partition.partition]
        },
    }


def _changelogs(log: Log, whole: BackfillResult) -> dict[str, Any]:
    specs = {spec.name: spec for spec in whole.loaded.built.stores}
    return {
        store: [visible(raw(log, partition), specs[store]) for partition in log.partitions(topic)]
        for store, topic in whole.stores().items()
        if topic is not None
    }


def _sink(
    log: Log, topic: str, whole: BackfillResult, results: Sequence[BackfillResult]
) -> dict[int, list[SinkRecord]]:
    """By partition; as a set where several tasks write, or where records have no keys: live chooses a partition."""
    emitted = [result.sink(topic) for result in results]
    found = {
        partition.partition: [
            *(record for of in emitted for record in of.get(partition.partition, [])),
            *(sink_record(line) for line in raw(log, partition)),
        ]
        for partition in log.partitions(topic)
    }
    if any(record.key is None for records in found.values() for record in records):
        return {-1: sorted((record for records in found.values() for record in records), key=repr)}
    if writers_of(whole).get(topic, 0) > 1:
        return {place: sorted(records, key=repr) for place, records in found.items()}
    return found


# By the command line


def main() -> int:
    """0: no difference; 1: at least one; 2: there is no generator."""
    parser = argparse.ArgumentParser(description="What a backfill promises, over random topologies.")
    parser.add_argument("--golden", action="store_true", help="the recorded scenarios instead of random ones")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--on", choices=["inline", "spark"], default="inline")
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded", help="of runs on Spark")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    logging.disable()
    try:
        if arguments.on == "spark":
            from tests.backfill.spark.kinds import run_fuzzed

            return run_fuzzed(seed, arguments.count, arguments.log)
        return _inline(recorded(seed) if arguments.golden else fuzzed(seed, arguments.count), seed)
    except oracle.OracleError as error:
        print(error, file=sys.stderr)
        return 2


def _inline(trials: Iterator[Trial], seed: int) -> int:
    came: Counter[str] = Counter()
    questions: list[Question] = []
    topologies = differ = 0
    for trial in trials:
        topologies += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                came.update(check(trial, Path(folder), questions))
            except (AssertionError, StreamsError) as difference:
                differ += 1
                print(f"{trial.name}, seed {seed}: DIFFERENT: {str(difference)[:2000]}", flush=True)
    print(f"seed {seed}: {topologies} topologies, {differ} differ")
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
