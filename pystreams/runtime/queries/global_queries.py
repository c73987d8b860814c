"""Access to the stores of this process, including global stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pystreams.clock import Clock
from pystreams.errors import StateError
from pystreams.nearest import not_among
from pystreams.runtime.group.membership_data import Whereabouts
from pystreams.runtime.queries.answers import Answer, Demands
from pystreams.runtime.queries.placing import KeyPartitioner, placing
from pystreams.runtime.queries.position import Position
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.state.iterators import read_to_end
from pystreams.topology.built import BuiltTopology

R = TypeVar("R")


class GlobalLocalStore(LocalStore):
    """A global store, which the calling thread reads in its present state. Every process has all of its partitions.

    Every method raises ``StateError`` before the store is filled and after the client has ended.
    """

    def __init__(
        self,
        name: str,
        context: ClientContext | None,
        clock: Clock,
        demands: Demands,
        *,
        headers: bool = False,
    ) -> None:
        super().__init__(name, lambda: (), Whereabouts, None, clock, demands, headers=headers)
        self._context = context

    @property
    def partitions(self) -> list[int]:
        return []

    def ask_key(self, key: Any, read: Callable[[Any], R]) -> Answer[R | None]:
        """The result of ``read`` for the store; the partition is None."""
        return self.ask(read)[0]

    def ask(self, read: Callable[[Any], R]) -> list[Answer[R]]:
        """The result of ``read`` for the store, as the only element, without a position. ``read`` must not write."""
        stores = {} if self._context is None else self._context.global_stores
        if self._name not in stores:
            raise StateError(
                f"global store {self._name} is not open",
                why="the client has not been started, or has ended",
                hint="query it after start() has returned, which fills global stores",
            )
        store = stores[self._name]
        result = read(store if self._headers else store.without_headers())
        return [Answer(read_to_end(result), None, Position())]


def local_store(
    name: str,
    built: BuiltTopology,
    threads: Callable[[], Sequence[StreamThread]],
    context: ClientContext | None,
    clock: Clock,
    demands: Demands,
    *,
    headers: bool = False,
    partitioner: KeyPartitioner | None = None,
) -> LocalStore:
    """The store of that name, local or global; ``headers``: show the headers that it keeps; ``partitioner``: see
    ``placing``. Raises ``StateError`` for an unknown name."""
    global_stores = [one.spec.name for one in built.global_stores]
    if name in global_stores:
        return GlobalLocalStore(name, context, clock, demands, headers=headers)
    known = [spec.name for spec in built.stores] + global_stores
    if name not in known:
        raise StateError(f"there is no store {name}", **not_among(name, known, "the topology has"))
    if any(spec.name == name and spec.kind in ("buffer", "join_buffer") for spec in built.stores):
        raise StateError(
            f"store {name} cannot be read",
            why="it buffers results that are not final yet",
            hint="give the table before or after it a store, with name=",
        )

    inputs = {} if context is None else context.inputs
    placed = placing(built, name, inputs, partitioner)

    def whereabouts() -> Whereabouts:
        # A process without threads receives no assignments any more, so its information may be outdated.
        return Whereabouts() if context is None or not threads() else context.in_group.whereabouts

    return LocalStore(name, threads, whereabouts, placed, clock, demands, headers=headers)
