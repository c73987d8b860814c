"""Decides for which tasks of a thread the order of processing matters, and how exact it must be."""

from __future__ import annotations

from typing import NamedTuple

from pystreams.runtime.catching_up.subtopology_graph import topics_between, upstream, writers
from pystreams.runtime.catching_up.time_steps import time_steps
from pystreams.topology.built import BuiltTopology

#: The slack is half of the grace. The other half remains for records that are out of order in their own partition, so
#: that hardly any record has to wait for the bounds of stream time.
_GRACES_PER_SLACK = 2
#: With a smaller slack, a task would process few records at a time, and the order would cost more than the processing.
_SLACK_MS_MIN = 5_000
#: The grace that is assumed if no step has one, because stream time only calls punctuators or ends a suppression.
_USUAL_GRACE_MS = 60_000


class OrderPlan(NamedTuple):
    """``subtopologies`` are those whose tasks must process in the order of time, because a step downstream of them
    depends on stream time. ``slack_ms`` is how far one task may be ahead of another; it grows where records are sparse.
    ``topics_between`` are topics that the application itself writes. Tasks wait only for records of other topics."""

    subtopologies: frozenset[int]
    topics_between: frozenset[str]
    slack_ms: int


def order_plan(built: BuiltTopology) -> OrderPlan | None:
    """The plan for a topology; None: the order of its tasks does not matter, because no step that depends on stream
    time reads what another sub-topology writes."""
    writers_of = writers(built)
    steps = {sub.id: time_steps(sub) for sub in built.subtopologies if writers_of[sub.id]}
    timed = [id for id, found in steps.items() if found]
    if not timed:
        return None
    graces = [step.grace_ms for id in timed for step in steps[id] if step.grace_ms is not None]
    slack_ms = max(_SLACK_MS_MIN, min(graces, default=_USUAL_GRACE_MS) // _GRACES_PER_SLACK)
    return OrderPlan(upstream(writers_of, timed), topics_between(built), slack_ms)
