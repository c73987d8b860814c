"""A backfill in one call, from a script, a notebook or a Spark job.

``backfill`` computes, ``plan_backfill`` only plans. ``hand_over`` or ``write_snapshot`` hands the result over to the
live application, ``emit`` writes the records for sinks to their topics, to files or to tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.driver import OnProgress, Planned, run
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.compute.incremental import Continuation, check_continued, check_source, go_on
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.compute.opening import Sources, opened, without_offsets
from pystreams.backfill.display.showing import showing
from pystreams.backfill.locations import same_place, shown
from pystreams.backfill.plan.boundaries import boundary_of, remarks_of
from pystreams.backfill.plan.cut import Until, cut
from pystreams.backfill.plan.manifest import DEFAULT_COMMIT_RECORDS, Manifest
from pystreams.backfill.plan.moments import Moment
from pystreams.backfill.plan.slices import make_plan
from pystreams.backfill.plan.ways import with_ways
from pystreams.backfill.sources import Source
from pystreams.dsl.builder import StreamsBuilder
from pystreams.errors import ConfigError
from pystreams.topology.built import BuiltTopology
from pystreams.topology.topology import Topology

#: The application; a string is ``module`` or ``module:attribute``, which every worker must be able to import.
#: An ``App`` is a ``StreamsBuilder``.
Program = StreamsBuilder | Topology | str

#: A folder: of this machine, or by its URL of any file system that the executor has.
Location = str | PathLike[str]


def backfill(
    application: Program,
    *,
    sources: Sources,
    staging: Location,
    executor: Executor | None = None,
    until: Until = None,
    boundary: Moment | None = None,
    settings: Mapping[str, Any] | None = None,
    partitions: Mapping[str, int] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    previous: Location | None = None,
    commit_records: int = DEFAULT_COMMIT_RECORDS,
    exact_updates: bool = False,
    progress: OnProgress | bool = True,
) -> BackfillResult:
    """Run an application over its history, and return the result: stores, sinks, offsets.

    - ``staging``: where slices write their results. If it already holds a backfill, ``overwrite`` replaces it and
      ``resume`` finishes it, with its own cut instead of ``until``.
    - ``executor``: where tasks run; None: in this process.
    - ``until``: where to end. None: at the current end offsets; a time (ms since 1970), the same for all inputs; or the
      end offset (exclusive) by partition.
    - ``boundary``: a time for topics that come from DataFrames without offsets: their records before it come from
      there, all others from the source ``*``, each by its own timestamp. A text (``2026-11-26``), a datetime, or ms
      since 1970; without a time zone it is UTC.
    - ``settings`` override the application's own; ``application_id`` must be among them unless it is an ``App``.
    - ``partitions`` counts those of output topics, where sources do not know them or they are another log's, and those
      of topics that come from DataFrames.
    - ``previous``: the staging folder of an earlier backfill of the same application, to continue from.
    - ``commit_records``: how many records a task processes between two commits.
    - ``exact_updates``: emit the updates of each commit, as a live run does. Otherwise a step whose intermediate
    updates no later step needs emits only the last update of each key.
    - ``progress``: True shows bars in a notebook or on a terminal (and nothing where there is neither), False shows
      nothing. A function is called in their place, in this process, from any thread, about once a second for each task
      at work.

    Raises ``TopologyError``, ``TopicError``, ``AppLoadError``, ``ConfigError`` and ``OffsetOutOfRangeError`` before
    anything is computed; then the errors of tasks: ``ProcessingError``, ``SerializationError``, ``ProductionError``.
    """
    if resume and overwrite:
        raise ConfigError(
            "resume does not go with overwrite",
            why="resume continues the staged backfill, overwrite replaces it",
            hint="leave one of them out",
        )
    check_places(staging, previous)
    executor = executor or InlineExecutor()
    planned = plan_backfill(
        application,
        sources=sources,
        executor=executor,
        until=until,
        boundary=boundary,
        settings=settings,
        partitions=partitions,
        previous=previous,
        commit_records=commit_records,
        exact_updates=exact_updates,
        resume=staging if resume else None,
    )
    left = f"Finished slices stay in {shown(fspath(staging))}: continue with resume=True."
    with showing(progress, planned.plan, left) as report:
        return run(planned, executor, fspath(staging), resume=resume, overwrite=overwrite, progress=report)


def plan_backfill(
    application: Program,
    *,
    sources: Sources,
    executor: Executor | None = None,
    until: Until = None,
    boundary: Moment | None = None,
    settings: Mapping[str, Any] | None = None,
    partitions: Mapping[str, int] | None = None,
    previous: Location | None = None,
    commit_records: int = DEFAULT_COMMIT_RECORDS,
    exact_updates: bool = False,
    resume: Location | None = None,
) -> Planned:
    """The plan of ``backfill``: slices, and the ranges of its inputs. It reads their end offsets, and writes nothing.

    ``resume`` is the staging folder of a backfill that was begun: its cut and its partition counts count then.

    Raises the errors that ``backfill`` raises before it computes anything.
    """
    if commit_records < 1:
        raise ConfigError(
            f"commit_records cannot be {commit_records}", hint="a task commits after one record or more"
        )
    if boundary is not None and until is not None:
        raise ConfigError(
            "a boundary does not go with an end of history",
            why="behind the boundary, history is read to the end of the log",
            hint="leave one of them out",
        )
    boundary_ms = None if boundary is None else boundary_of(boundary)
    executor = executor or InlineExecutor()
    shipped = executor.application(application, settings or {})
    loaded = shipped.load()
    source = opened(
        sources,
        executor,
        shipped,
        loaded,
        partitions or {},
        boundary_ms=boundary_ms,
        goes_on=previous is not None,
    )
    found = None if resume is None else executor.staging(fspath(resume)).read_manifest()
    if found is not None and found.fingerprint == loaded.built.fingerprint:
        counts = found.partitions
    else:
        counts = _counts(loaded.built, source, partitions or {})
    plan = make_plan(loaded.built, counts)
    before = Continuation()
    if previous is not None:
        before = go_on(executor.staging(fspath(previous)), plan)
    if found is not None:
        check_continued(found, before)
        _check_updates(found, exact_updates=exact_updates)
        return Planned(loaded, shipped, plan, found, source, before.carried, begun=True)
    check_source(before, source)
    manifest = cut(
        plan,
        loaded.config,
        source,
        until,
        commit_records=commit_records,
        starts=before.starts,
        approximate=before.approximate,
    )
    boundaries = {} if boundary_ms is None else dict.fromkeys(without_offsets(sources), boundary_ms)
    manifest = replace(
        manifest,
        previous_id=before.previous_id,
        boundaries={**before.boundaries, **boundaries},
        remarks=() if boundary_ms is None else remarks_of(source),
    )
    manifest = with_ways(manifest, loaded, plan, exact_updates=exact_updates)
    return Planned(loaded, shipped, plan, manifest, source, before.carried)


def _check_updates(begun: Manifest, *, exact_updates: bool) -> None:
    if exact_updates and begun.folded:
        raise ConfigError(
            "the backfill that is resumed was begun without exact updates",
            why=f"{begun.folded[0]} emits the last result of each key alone",
            hint="resume it without exact updates, or compute it anew (--overwrite)",
        )


def check_places(staging: Location, previous: Location | None) -> None:
    """Raises ``ConfigError`` for a backfill that would overwrite the one that it continues."""
    if previous is not None and same_place(fspath(previous), fspath(staging)):
        raise ConfigError(
            f"{shown(fspath(staging))} cannot be the earlier backfill and the new one",
            why="the new backfill would overwrite the staged slices from which it continues",
            hint="stage the new backfill in another folder (--staging PATH)",
        )


def _counts(built: BuiltTopology, source: Source, given: Mapping[str, int]) -> dict[str, int]:
    """The partition counts of all topics: those of inputs come from their sources, those of outputs may come from the
    user."""
    known = source.partitions()
    read = {topic for sub in built.subtopologies for topic in sub.source_topics} | built.global_topics
    for topic in sorted(read & set(given)):
        if given[topic] != known.get(topic, given[topic]):
            raise ConfigError(
                f"topic {topic} cannot have {given[topic]} partitions",
                where=source.description,
                why=f"the application reads it, and it has {known[topic]} partitions in its source",
                hint="give the partitions of output topics only",
            )
    return {**known, **given}
