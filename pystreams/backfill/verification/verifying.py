"""The steps of a verification: the moment of the live application, history up to there, and the comparison."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import fspath
from typing import Any, Final

from pystreams.backfill.api import Location, Program, plan_backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.driver import OnProgress, Planned, run
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.compute.opening import Sources, opened, without_offsets
from pystreams.backfill.display.showing import showing
from pystreams.backfill.locations import shown
from pystreams.backfill.plan.boundaries import boundary_of
from pystreams.backfill.plan.moments import Moment
from pystreams.backfill.verification.comparing import CompareStore, partition_outcome
from pystreams.backfill.verification.history import FromTables, require_offsets, until_cut
from pystreams.backfill.verification.legal import reasons_to_differ
from pystreams.backfill.verification.live_cut import LiveCut, read_live_cut
from pystreams.backfill.verification.outcome import StoreCounts, StoreVerified, Verified
from pystreams.broker.port import Broker, retention_of
from pystreams.clock import Clock, SystemClock
from pystreams.errors import ConfigError, StateError
from pystreams.stream_time import NO_TIME
from pystreams.take_over.hand_over_record import read_record

#: The default of the time to wait for a moment at which all that was read is in the stores.
WAIT_MS: Final = 10_000.0
#: The default of the number of differences that are kept of each store.
LIMIT: Final = 20


@dataclass(frozen=True, slots=True)
class PlannedVerification:
    """A backfill to run, which ends at the position of the application at the moment ``cut``."""

    planned: Planned
    cut: LiveCut


def verify(
    application: Program,
    broker: Broker,
    *,
    sources: Sources,
    boundary: Moment | None = None,
    staging: Location | None = None,
    executor: Executor | None = None,
    settings: Mapping[str, Any] | None = None,
    wait_ms: float = WAIT_MS,
    limit: int = LIMIT,
    progress: OnProgress | bool = True,
) -> Verified:
    """Compute history again, and compare it with the stores of the live application on this log.

    - ``broker``: the log, opened as the application opens it (on Kafka with ``exactly_once``, if it does so).
    - ``sources``, ``executor``, ``settings``, ``progress``: as for ``backfill``. Records that the application passes
      over, such as those of aborted transactions with ``exactly_once``, its sources have to pass over, too.
    - ``boundary``: that of the backfill which was handed over, if its history came from a table without offsets.
    - ``staging``: where history is computed; it is kept. None: in a temporary folder of this machine.
    - ``wait_ms``: the longest wait for a moment at which all that the application has read has reached its stores.
    - ``limit``: the number of differences that are kept of each store. All are counted.

    Raises what ``backfill`` raises; ``BrokerError`` for an application that is not at rest; ``OffsetOutOfRangeError``
    for sources that do not hold all that it has processed; ``TopologyError`` if another version of it ran last.
    """
    if limit < 0:
        raise ConfigError(
            f"limit cannot be {limit}", hint="give the number of differences to keep, 0 or more"
        )
    executor = executor or InlineExecutor()
    found = plan_verification(
        application,
        broker,
        sources=sources,
        boundary=boundary,
        executor=executor,
        settings=settings,
        wait_ms=wait_ms,
    )
    with staging_folder(executor, staging) as folder:
        with showing(progress, found.planned.plan, "Nothing was changed.") as report:
            result = run(found.planned, executor, folder, progress=report)
        return compare(result, broker, found.cut, limit=limit)


def plan_verification(
    application: Program,
    broker: Broker,
    *,
    sources: Sources,
    executor: Executor,
    boundary: Moment | None = None,
    settings: Mapping[str, Any] | None = None,
    wait_ms: float = WAIT_MS,
    clock: Clock | None = None,
) -> PlannedVerification:
    """The moment to compare, and the plan of a backfill that ends there. It writes nothing.

    Raises the errors that ``verify`` raises before it computes anything.
    """
    boundary_ms = None if boundary is None else boundary_of(boundary)
    require_offsets(sources, boundary_ms)
    clock = clock or SystemClock()
    shipped = executor.application(application, settings or {})
    loaded = shipped.load()
    application_id, tables = loaded.built.application_id, without_offsets(sources)
    with closing(broker.admin()) as admin:
        from_tables = FromTables.of(read_record(broker, admin, application_id, clock))
        partitions = admin.partition_counts()
    from_tables.require_boundary(application_id, sources, boundary_ms)
    cut = read_live_cut(broker, loaded, clock, wait_ms)
    source = opened(
        sources,
        executor,
        shipped,
        loaded,
        partitions,
        boundary_ms=boundary_ms,
        goes_on=False,
        whole_from=from_tables.whole_from,
    )
    given: dict[str, Any] = {"sources": source, "executor": executor, "settings": settings}
    until = until_cut(plan_backfill(application, **given), cut.offsets, boundary_ms, tables)
    return PlannedVerification(plan_backfill(application, until=until, **given), cut)


@contextmanager
def staging_folder(executor: Executor, staging: Location | None, parent: str | None = None) -> Iterator[str]:
    """A folder in which nothing is staged: ``staging``, or a temporary one in ``parent``.

    Raises ``StateError`` if ``staging`` holds a backfill.
    """
    if staging is not None:
        if executor.staging(fspath(staging)).read_manifest() is not None:
            raise StateError(
                f"{shown(fspath(staging))} holds a backfill already",
                hint="name another folder with --staging, or leave it out to use a temporary folder",
            )
        yield fspath(staging)
        return
    folder = tempfile.mkdtemp(prefix="verify-", dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(
    result: BackfillResult,
    broker: Broker,
    cut: LiveCut,
    *,
    limit: int = LIMIT,
    clock: Clock | None = None,
    on_store: Callable[[str], None] | None = None,
) -> Verified:
    """Compare the stores of a backfill that ends at ``cut`` with the changelogs. ``on_store`` is called before each
    store."""
    now_ms = (clock or SystemClock()).now_ms()
    changelogs = {store: topic for store, topic in result.stores().items() if topic is not None}
    with closing(broker.admin()) as admin:
        topics = admin.describe_topics(set(changelogs.values()))
    reasons = reasons_to_differ(result)
    stores: dict[str, StoreVerified] = {}
    for store, topic in changelogs.items():
        if on_store is not None:
            on_store(store)
        retention_ms = retention_of(topics[topic].config)
        deleted_before_ms = NO_TIME if retention_ms is None else now_ms - retention_ms
        compared = _compared(result, broker, cut, store, topic, deleted_before_ms, limit)
        stores[store] = StoreVerified(*compared, may_differ=reasons.get(store, ()))
    return Verified(
        result.plan.application_id,
        {one.partition: one.end for one in result.manifest.inputs},
        stores,
        _left_out(result),
        broker.transactional,
    )


def _compared(
    result: BackfillResult,
    broker: Broker,
    cut: LiveCut,
    store: str,
    changelog: str,
    deleted_before_ms: int,
    limit: int,
) -> tuple[StoreCounts, tuple[Any, ...]]:
    ends = {p.partition: end for p, end in cut.changelog_ends.items() if p.topic == changelog}
    function = CompareStore(
        broker.opener(), result.application, store, changelog, ends, deleted_before_ms, limit
    )
    counts, differences = StoreCounts(), []
    for packed in result.for_each_partition(result.store_rows(store), function):
        of_partition, some = partition_outcome(packed)
        counts += of_partition
        differences += some
    return counts, tuple(differences[:limit])


def _left_out(result: BackfillResult) -> dict[str, str]:
    made = {spec.name: spec.source_topic for spec in result.loaded.built.stores if spec.source_topic}
    return {
        store: f"it is restored from topic {made[store]}" if store in made else "it has no changelog"
        for store, topic in result.stores().items()
        if topic is None
    }
