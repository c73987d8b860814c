"""Streams that are divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from pystreams.dsl import stream
from pystreams.dsl.context import Place
from pystreams.dsl.operators.stateless import Branch, Forward
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.topology.graph import ProcessorGraphNode
from pystreams.topology.names import checked

K = TypeVar("K")
V = TypeVar("V")


class BranchedKStream(Generic[K, V]):
    """Hands each record to the first branch whose predicate holds, else to the default branch, else to none.

    Each branch is a stream of its own::

        split = orders.split()
        large = split.branch(lambda order: order.amount > 1000)
        small = split.default()

    Source: BranchedKStream, BranchedKStreamImpl.
    """

    def __init__(self, place: Place, name: str) -> None:
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
        """The records for which ``predicate`` holds, and none before it. ``name`` follows the split's own."""
        if self._branch.default is not None:
            raise TopologyError(
                f"split {self._name} has its default branch already", hint="default() comes last"
            )
        number = len(self._branch.predicates) + 1
        child = checked(f"{self._name}{name or number}")
        function = UserFunction.of(predicate, "predicate", f"branch {child}")
        self._branch.predicates += (function,)
        self._branch.children += (child,)
        return self._child(child)

    def default(self, *, name: str | None = None) -> stream.KStream[K, V]:
        """The records that no branch took."""
        if self._branch.default is not None:
            raise TopologyError(f"split {self._name} has its default branch already")
        child = checked(f"{self._name}{name or 0}")
        self._branch.default = child
        return self._child(child)

    def _child(self, name: str) -> stream.KStream[K, V]:
        # Java draws a number for every branch, whose name does not need it.
        self._place.context.names.step(name)
        node = ProcessorGraphNode(name, Forward())
        self._place.context.graph.add(node, self._node)
        return stream.KStream(replace(self._place, name=name, node=node))
