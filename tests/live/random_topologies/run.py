"""Runs a trial on an embedded log, with an end in the middle, and compares what it leaves with the reference."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from pystreams.config import StreamsConfig
from pystreams.dsl.operators.foreign_key_join import ResponseJoin
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import ProcessorNode
from pystreams.topology.partitions import resolve_partitions
from tests.backfill.live import append_lines, visible
from tests.backfill.random_topologies import equal
from tests.conformance.scenarios import global_topics
from tests.live.random_topologies.recording import Read, Recorder, recorded
from tests.live.random_topologies.reference import (
    ANYWHERE,
    NOT_QUERIED,
    Expected,
    Records,
    Reference,
    tasks_of,
)
from tests.live.random_topologies.trials import History, Trial
from tests.live.support import TIMEOUT_S, Line, Log, caught_up, eventually, running

#: The exit status of a process that was killed.
_KILLED = -9
_WORKER_TIMEOUT_S = 300


def check(trial: Trial, folder: Path) -> Recorder:
    """Run it, and compare. Raises ``AssertionError`` for a difference, ``StreamsError`` where the trial fails by
    itself."""
    recorder = Recorder()
    with closing(Log(folder)) as log:
        built = _begin(log, trial)
        if trial.middle == "kill":
            _killed(trial, folder, recorder)
        with recorded(recorder):
            queried = _in_process(log, trial, built, recorder)
        _compare(log, trial, built, recorder, queried)
    return recorder


def client(log: Log, trial: Trial, state: str = "state") -> Streams:
    """A client of the trial's application."""
    config = StreamsConfig.of(**trial.settings, state_dir=log.path / state)
    return Streams(trial.topology(), config, broker=log.broker)


# Live


def _begin(log: Log, trial: Trial) -> BuiltTopology:
    built = trial.topology().build(trial.settings["application_id"], **_defaults(trial))
    inputs = {partition.topic for partition in trial.history}
    log.create(*sorted(inputs | set(trial.outputs)), partitions=trial.partitions)
    # What cannot be run with so many partitions is found out here, and not by a process that ends.
    resolve_partitions(built, log.admin.partition_counts())
    # Global tables are whole before anything begins: what a task finds in them would be chance.
    whole = global_topics(trial.scenario)
    append_lines(log, {p: lines for p, lines in trial.history.items() if p.topic in whole})
    append_lines(log, _part(trial, first=True))
    return built


def _defaults(trial: Trial) -> dict[str, Any]:
    return {name: trial.settings[name] for name in ("default_key_serde", "default_value_serde")}


def _part(trial: Trial, *, first: bool) -> History:
    whole = global_topics(trial.scenario)
    return {
        p: lines[: trial.half[p]] if first else lines[trial.half[p] :]
        for p, lines in trial.history.items()
        if p.topic not in whole
    }


def _killed(trial: Trial, folder: Path, recorder: Recorder) -> None:
    """The first half in a process that kills itself, at the latest when it has caught up."""
    told = folder / "events"
    told.touch()
    (folder / "trial.json").write_text(json.dumps([trial.scenario, trial.seed]), encoding="utf-8")
    worker = [sys.executable, "-m", "tests.live.random_topologies.worker", str(folder)]
    done = subprocess.run(worker, capture_output=True, text=True, timeout=_WORKER_TIMEOUT_S, check=False)
    assert done.returncode == _KILLED, f"{trial.name}: {done.returncode}, {done.stderr[-2000:]}"
    recorder.load(told)


def _in_process(log: Log, trial: Trial, built: BuiltTopology, recorder: Recorder) -> dict[str, list[str]]:
    """What is left to do, to its end. Gives what queries gave there."""
    if trial.middle == "close":
        _first_half(log, trial, recorder)
    if trial.wiped:
        shutil.rmtree(log.path / "state", ignore_errors=True)
    with ExitStack() as stack:
        streams = client(log, trial)
        stack.callback(streams.close, 1000 * TIMEOUT_S)
        streams.start()
        if trial.middle == "join":
            _until(streams, trial, recorder)
            other = client(log, trial, "other-state")
            stack.callback(other.close, 1000 * TIMEOUT_S)
            other.start()
            running(other)
        append_lines(log, _part(trial, first=False))
        caught_up(streams)
        if trial.middle == "join":
            # The whole result is with one client again.
            assert other.close(1000 * TIMEOUT_S)
        tasks = set(tasks_of(built, log.admin.partition_counts()))
        eventually(lambda: _tasks_here(streams) == tasks, "all tasks")
        caught_up(streams)
        names = [spec.name for spec in built.stores if spec.kind not in NOT_QUERIED]
        return {name: _queried(streams, name, tasks) for name in names}


def _queried(streams: Streams, store: str, tasks: Collection[TaskId]) -> list[str]:
    """All entries. A query covers the tasks that run at its moment; while threads exchange some it is asked again."""
    of_store = {number for number, sub in enumerate(streams.built.subtopologies) if _has(sub, store)}
    partitions = {task.partition for task in tasks if task.subtopology in of_store}

    def whole() -> list[list[Any]] | None:
        answers = streams.store(store).ask(lambda opened: list(opened.all()))
        return [answer.result for answer in answers] if {a.partition for a in answers} == partitions else None

    results = eventually(whole, f"all partitions of {store}")
    return sorted(repr(entry) for result in results for entry in result)


def _has(sub: SubTopology, store: str) -> bool:
    return any(spec.name == store for spec in sub.stores)


def _tasks_here(streams: Streams) -> set[TaskId]:
    """Those that run in this client; a member that was killed keeps its own for a while."""
    tasks = [task for thread in streams.progress().threads for task in thread.tasks]
    return {task.task_id for task in tasks if task.status is TaskStatus.RUNNING}


def _first_half(log: Log, trial: Trial, recorder: Recorder) -> None:
    streams = client(log, trial)
    streams.start()
    try:
        _until(streams, trial, recorder)
    finally:
        assert streams.close(1000 * TIMEOUT_S)


def _until(streams: Streams, trial: Trial, recorder: Recorder) -> None:
    """Until so many records were processed, or there are no more."""
    running(streams)
    eventually(
        lambda: recorder.records >= trial.moment or streams.finished or streams.caught_up(), "the middle"
    )


# The comparison


def _compare(
    log: Log, trial: Trial, built: BuiltTopology, recorder: Recorder, queried: Mapping[str, list[str]]
) -> None:
    counts = log.admin.partition_counts()
    records = {partition: log.lines(partition) for topic in counts for partition in log.partitions(topic)}
    _compare_reads(trial, built, recorder, records)
    config = StreamsConfig.of(**trial.settings)
    expected = Reference(trial, built, config, counts, records).expected(recorder.events())
    for task, of_task in expected.items():
        if of_task.contents:
            equal(recorder.contents[task], of_task.contents, f"stores of {task}")
    # What has expired is found as long as a cache has it, and a start empties caches.
    unsure = {spec.name for spec in built.stores if trial.cached and spec.retention_ms}
    _compare_queries([*expected.values()], {n: of for n, of in queried.items() if n not in unsure})
    _compare_changelogs(built, expected, records)
    _compare_topics(built, expected, records)


def _compare_reads(trial: Trial, built: BuiltTopology, recorder: Recorder, records: Records) -> None:
    """Each record was processed once, in the order of its partition; only bad ones may be left out."""
    for task, events in recorder.events().items():
        for topic in built.subtopologies[task.subtopology].source_topics:
            found = [event.offset for event in events if isinstance(event, Read) and event.topic == topic]
            there = records.get(TopicPartition(topic, task.partition), {}).keys()
            wanted = [offset for offset in there if offset in found or not trial.leaves_out]
            equal(found, wanted, f"what {task} has read of {topic}")


def _compare_queries(expected: Sequence[Expected], queried: Mapping[str, list[str]]) -> None:
    for name, entries in queried.items():
        wanted = sorted(entry for of_task in expected for entry in of_task.queried.get(name, ()))
        equal(entries, wanted, f"query of {name}")


def _compare_changelogs(built: BuiltTopology, expected: Mapping[Any, Expected], records: Records) -> None:
    specs = {spec.name: spec for spec in built.stores}
    for task, of_task in expected.items():
        for store, topic in built.subtopologies[task.subtopology].changelogs.items():
            live = list(records[TopicPartition(topic, task.partition)].values())
            told = visible(of_task.changes.get(store, []), specs[store])
            equal(visible(live, specs[store]), told, f"changelog of {store}, {task}")


def _compare_topics(built: BuiltTopology, expected: Mapping[Any, Expected], records: Records) -> None:
    """What tasks wrote, partition by partition; in their order where one task writes, and where every record has a
    key."""
    written: dict[str, dict[Any, dict[int, list[Line]]]] = defaultdict(dict)
    unsure: set[str] = set()
    for task, of_task in expected.items():
        if _asks_again(built.subtopologies[task.subtopology]):
            unsure |= {partition.topic for partition in of_task.sent}
        for partition, lines in of_task.sent.items():
            written[partition.topic].setdefault(task, {})[partition.partition] = lines
    for topic, of_tasks in written.items():
        if topic in unsure:
            continue
        live = {p.partition: list(of.values()) for p, of in records.items() if p.topic == topic}
        anywhere = any(ANYWHERE in of_task for of_task in of_tasks.values())
        places = {ANYWHERE} if anywhere else live.keys()
        for place in sorted(places):
            writers = [of_task[p] for of_task in of_tasks.values() for p in of_task if anywhere or p == place]
            ours = [line for p in live for line in live[p] if anywhere or p == place]
            wanted = [line for lines in writers for line in lines]
            where = f"topic {topic}, partition {place}"
            equal(Counter(map(repr, ours)), Counter(map(repr, wanted)), where)
            if len(writers) == 1 and not anywhere:
                equal(ours, wanted, where)


def _asks_again(sub: SubTopology) -> bool:
    """An inner foreign-key join: behind a start it may ask for a row once too often, and tell a result twice."""
    return any(
        isinstance(node, ProcessorNode)
        and isinstance(node.operation, ResponseJoin)
        and not node.operation.left
        for node in sub.nodes
    )
