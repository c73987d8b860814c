"""The inputs and the plan of a backfill, frozen before it reads: JSON in the staging folder
(staging/manifest_files.py).

    CUT ──> COMPUTED ──> PUBLISHING ──> COMMITTED

``CUT``: the ranges to read, and the way of computing, are fixed. ``COMPUTED``: every slice is staged. The file has no
later status: the progress of a hand-over is recorded in the log of the application. ``PUBLISHING``: changelogs are
being written. ``COMMITTED``: the changelogs and the group's offsets hold the result, so that the application can start.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import Enum
from typing import Any, Final
from uuid import uuid4

from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.backfill.sources import Remark
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.unmatched import Unmatched
from pystreams.errors import StateError, TopologyError
from pystreams.ids import TopicPartition

FORMAT_VERSION: Final = 2
MANIFEST_FILE: Final = "manifest.json"

#: Records between two commits of a task. Each flushes the caches, so it decides which updates are seen downstream.
DEFAULT_COMMIT_RECORDS: Final = 10_000


class Status(Enum):
    """The last step that a backfill has completed."""

    CUT = "cut"
    COMPUTED = "computed"
    PUBLISHING = "publishing"
    COMMITTED = "committed"


_NEXT: Final[Mapping[Status, frozenset[Status]]] = {
    Status.CUT: frozenset({Status.COMPUTED}),
    Status.COMPUTED: frozenset({Status.PUBLISHING}),
    Status.PUBLISHING: frozenset({Status.COMMITTED}),
    Status.COMMITTED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class StoreResult:
    """A store after a visit: entries over all partitions, a digest that does not depend on their order, the least
    timestamp of an entry, and the latest entry's of the partition that is behind the others (ms; None: there is none).
    """

    entries: int
    digest: str
    oldest_ms: int | None
    reached_ms: int | None


@dataclass(frozen=True, slots=True)
class SliceResult:
    """The result of a staged slice. ``dropped`` counts as the metric does: a record for each window that dropped it.
    ``left_out`` counts records by their fate, ``late`` those of them that came too late for a window, ``joins`` the
    records for which joins have found nothing, ``causes`` the dropped ones that were not late, by what is wrong."""

    records: int
    dropped: int
    stores: Mapping[str, StoreResult]
    left_out: Mapping[str, int] = field(default_factory=dict)
    late: tuple[LateRecords, ...] = ()
    joins: tuple[Unmatched, ...] = ()
    causes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """See the module. ``cut_time_ms`` is what the tasks' clocks show, ``cache_max_bytes`` the budget of each task.

    ``backfill_id`` is the backfill's own, ``previous_id`` that of the one it goes on from. ``approximate``: the sources
    knew no offsets, so no live application can go on behind them.
    """

    application_id: str
    fingerprint: str
    cut_time_ms: int
    commit_records: int
    cache_max_bytes: int
    inputs: tuple[InputRange, ...]
    partitions: Mapping[str, int]
    status: Status = Status.CUT
    #: By slice index; a slice that is not here has not been computed.
    slices: Mapping[int, SliceResult] = field(default_factory=dict)
    #: By index of those: the folder in which it is staged. Every attempt has one of its own.
    folders: Mapping[int, str] = field(default_factory=dict)
    #: By name, what else the result depends on (rules.py).
    rules: Mapping[str, str] = field(default_factory=dict)
    backfill_id: str = field(default_factory=lambda: uuid4().hex)
    previous_id: str | None = None
    approximate: bool = False
    #: The stores whose entries are staged with their headers before the value.
    with_headers: tuple[str, ...] = ()
    #: By aggregating step, why each of its updates is written; empty: it folds (folding.py).
    updates: Mapping[str, str] = field(default_factory=dict)

    #: By aggregating step behind a repartition topic, why this gets each record; empty: partials (combining.py).
    records: Mapping[str, str] = field(default_factory=dict)
    #: By topic, the time (ms) before which its history came from a table without offsets, here or in the backfill that
    #: this one continues.
    boundaries: Mapping[str, int] = field(default_factory=dict)
    #: What the plan has found there (boundaries.py).
    remarks: tuple[Remark, ...] = ()

    @property
    def combined(self) -> tuple[str, ...]:
        """The steps that get partial aggregates."""
        return tuple(step for step, why in self.records.items() if not why)

    @property
    def folded(self) -> tuple[str, ...]:
        """The steps that hold their results until they are final."""
        return tuple(step for step, why in self.updates.items() if not why)

    def end_of(self, partition: TopicPartition) -> int:
        """The offset at which reading of an external partition ends."""
        return next(input.end for input in self.inputs if input.partition == partition)

    def final_stores(self, plan: BackfillPlan) -> dict[str, StoreResult]:
        """By name, the computed stores that no later slice visits again."""
        return {
            name: store
            for one in plan.slices
            if one.final and one.index in self.slices
            for name, store in self.slices[one.index].stores.items()
        }

    def with_slice(self, index: int, folder: str, result: SliceResult) -> Manifest:
        """The manifest once a slice is staged."""
        return replace(self, slices={**self.slices, index: result}, folders={**self.folders, index: folder})

    def without_slices(self, indexes: Collection[int]) -> Manifest:
        """The manifest in which these slices are not staged."""
        return replace(
            self,
            slices={index: result for index, result in self.slices.items() if index not in indexes},
            folders={index: folder for index, folder in self.folders.items() if index not in indexes},
        )

    def advanced(self, status: Status) -> Manifest:
        """The manifest with a later status. Raises ``StateError`` if that does not follow."""
        if status not in _NEXT[self.status]:
            raise StateError(
                f"a backfill that is {self.status.value} cannot become {status.value}",
                where=f"application {self.application_id}",
                hint="finish the earlier steps, or begin a new backfill",
            )
        return replace(self, status=status)

    def check_plan(self, plan: BackfillPlan) -> None:
        """Raises ``TopologyError``, which names the first difference, if the present plan is not the one that was
        begun."""
        for what, was, now in (
            ("application", self.application_id, plan.application_id),
            ("topology's fingerprint", self.fingerprint, plan.fingerprint),
            ("list of stores that keep headers", _list(self.with_headers), _list(plan.with_headers)),
            *(
                (f"number of partitions of {topic}", self.partitions.get(topic), plan.partitions[topic])
                for topic in plan.topics
            ),
        ):
            if was != now:
                raise TopologyError(
                    "the backfill was begun for another application",
                    why=f"the {what} was {was}, now it is {now}",
                    hint="begin a new backfill in another staging folder; this is necessary even if only the version "
                    "of pystreams has changed",
                )

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": FORMAT_VERSION,
                "backfill_id": self.backfill_id,
                "previous_id": self.previous_id,
                "application_id": self.application_id,
                "fingerprint": self.fingerprint,
                "stage": self.status.value,
                "cut_time_ms": self.cut_time_ms,
                "backfill_commit_records": self.commit_records,
                "cache_max_bytes": self.cache_max_bytes,
                "approximate": self.approximate,
                "inputs": [_input_json(input) for input in self.inputs],
                "partitions": dict(sorted(self.partitions.items())),
                "slices": {str(index): _slice_json(result) for index, result in self.slices.items()},
                "folders": {str(index): folder for index, folder in self.folders.items()},
                "rules": dict(sorted(self.rules.items())),
                "with_headers": self.with_headers,
                "updates": dict(self.updates),
                "records": dict(self.records),
                "boundaries": dict(self.boundaries),
                "remarks": self.remarks,
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str, where: str) -> Manifest:
        """Raises ``StateError`` for text that is not a manifest, or one of another format."""
        try:
            content = json.loads(text)
            version = content["format"]
            if version == FORMAT_VERSION:
                return _manifest(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                "this is not a manifest of a backfill",
                where=where,
                why=f"{type(error).__name__}: {error}",
                hint="choose another staging folder, or delete this one if nobody needs it",
            ) from error
        raise StateError(
            f"the manifest has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=where,
            hint="continue with the version that began the backfill, or begin a new one",
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "empty"


def _input_json(input: InputRange) -> list[Any]:
    return [*input.partition, input.start, input.end, *(astuple(input.last) if input.last else ())]


def _slice_json(result: SliceResult) -> dict[str, Any]:
    stores = {name: astuple(store) for name, store in result.stores.items()}
    return {
        "records": result.records,
        "dropped": result.dropped,
        "stores": stores,
        "left_out": dict(result.left_out),
        "late": result.late,
        "joins": result.joins,
        "causes": dict(result.causes),
    }


def _store_result(
    entries: int, digest: str, oldest_ms: int | None, reached_ms: int | None = None
) -> StoreResult:
    # Older manifests do not have the time that was reached: it was at least the oldest entry's time.
    return StoreResult(entries, digest, oldest_ms, oldest_ms if reached_ms is None else reached_ms)


def _manifest(content: Mapping[str, Any]) -> Manifest:
    return Manifest(
        application_id=content["application_id"],
        fingerprint=content["fingerprint"],
        cut_time_ms=content["cut_time_ms"],
        commit_records=content["backfill_commit_records"],
        cache_max_bytes=content["cache_max_bytes"],
        inputs=tuple(
            InputRange(TopicPartition(topic, partition), start, end, LastRecord(*last) if last else None)
            for topic, partition, start, end, *last in content["inputs"]
        ),
        partitions=content["partitions"],
        backfill_id=content["backfill_id"],
        previous_id=content["previous_id"],
        approximate=content["approximate"],
        status=Status(content["stage"]),
        slices={
            int(index): SliceResult(
                one["records"],
                one["dropped"],
                {name: _store_result(*store) for name, store in one["stores"].items()},
                # Older manifests do not have these.
                one.get("left_out", {"dropped": one["dropped"]} if one["dropped"] else {}),
                tuple(LateRecords(*late) for late in one.get("late", ())),
                tuple(map(Unmatched.from_json, one.get("joins", ()))),
                one.get("causes", {}),
            )
            for index, one in content["slices"].items()
        },
        folders={int(index): folder for index, folder in content["folders"].items()},
        rules=content["rules"],
        # Older manifests, from before stores could keep headers, do not have this field.
        with_headers=tuple(content.get("with_headers", ())),
        # Older ones wrote each update.
        updates=content.get("updates", {}),
        records=content.get("records", {}),
        # Older ones do not have it, whether there was one or not.
        boundaries=content.get("boundaries", {}),
        remarks=tuple(Remark(*remark) for remark in content.get("remarks", ())),
    )
