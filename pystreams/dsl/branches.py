"""Splits a stream into branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from pystreams.dsl import stream
from pystreams.dsl.context import StepPlace
from pystreams.dsl.expressions import step_function
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.operators.stateless import Branch, Forward
from pystreams.errors import TopologyError
from pystreams.topology.graph import ProcessorGraphNode
from pystreams.topology.names import checked

K = TypeVar("K")
V = TypeVar("V")


@suggests_keywords
class BranchedKStream(Generic[K, V]):
    """Sends each record to the first branch whose predicate is true, otherwise to the default branch, if there is one.

    Each branch is a stream of its own::

        split = orders.split()
        large = split.branch(lambda order: order.amount > 1000)
        small = split.default()

    Source: BranchedKStream, BranchedKStreamImpl.
    """

    def __init__(self, place: StepPlace, name: str) -> None:
        self._place = place
        self._name = name
        self._branch = Branch((), ())
        self._node = ProcessorGraphNode(name, self._branch)
        place.add(self._node)

    @overload
    def branch(self, predicate: Callable[[V], object], *, name: str | None = ...) -> stream.KStream[K, V]: ...
    @overload
    def branch(
        self, predicate: Callable[[K, V], object], *, name: str | None = ...
    ) -> stream.KStream[K, V]: ...
    def branch(self, predicate: Callable[..., Any], *, name: str | None = None) -> stream.KStream[K, V]:
        """The records for which ``predicate`` is true, and no earlier branch's. ``name`` is appended to the split's
        name."""
        if self._branch.default is not None:
            raise TopologyError(
                f"split {self._name} already has its default branch", hint="call default() last"
            )
        number = len(self._branch.predicates) + 1
        child = checked(f"{self._name}{name or number}")
        function = step_function(predicate, "predicate", f"branch {child}", self._place.value)
        self._branch.predicates += (function,)
        self._branch.children += (child,)
        return self._child(child)

    def default(self, *, name: str | None = None) -> stream.KStream[K, V]:
        """The records that went to no other branch."""
        if self._branch.default is not None:
            raise TopologyError(f"split {self._name} already has its default branch")
        child = checked(f"{self._name}{name or 0}")
        self._branch.default = child
        return self._child(child)

    def _child(self, name: str) -> stream.KStream[K, V]:
        # Java uses up a number for every branch, although its name does not contain it.
        self._place.context.names.step(name)
        node = ProcessorGraphNode(name, Forward())
        self._place.context.graph.add(node, self._node)
        return stream.KStream(replace(self._place, name=name, node=node))
