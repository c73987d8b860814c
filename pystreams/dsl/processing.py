"""The Processor API in the DSL: steps of a stream that users write as classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pystreams.dsl.context import StepPlace
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.serdes import TypeOrSerde, computed
from pystreams.dsl.stream_join_methods import Joins
from pystreams.functions import locate
from pystreams.processor import Processor
from pystreams.state.spec import StoreSpec
from pystreams.topology.arguments import check_supplier, store_list
from pystreams.topology.graph import ProcessorGraphNode
from pystreams.topology.names import checked
from pystreams.topology.nodes import Process
from pystreams.topology.wrapping import provided_stores

if TYPE_CHECKING:
    from pystreams.dsl.stream import KStream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


@suggests_keywords
class Processing(Joins[K, V]):
    """Base class of ``KStream``: processors."""

    def process(
        self,
        supplier: Callable[[], Processor[K, V, K2, V2]],
        *,
        stores: str | StoreSpec | Iterable[str | StoreSpec] = (),
        key: TypeOrSerde[K2] | None = None,
        value: TypeOrSerde[V2] | None = None,
        step: str | None = None,
    ) -> KStream[K2, V2]:
        """Run a ``Processor``; ``supplier`` (its class, for example) makes one for each task.

        ``stores`` are names of stores that it may use, or stores to add and connect. If ``supplier`` has a method
        ``stores``, the stores that it returns are added, too.
        """
        name = self._processor_name("KSTREAM-PROCESSOR-", step, supplier)
        place = self._place
        node = _node(name, Process(supplier), stores)
        place.add(node)
        new_key = computed(key, f"the key that {name} forwards", locate(supplier), place.value)
        new_value = computed(value, f"the value that {name} forwards", locate(supplier), place.value)
        processed: Any = self._at(
            StepPlace(place.context, name, node, place.sources, new_key, new_value, needs_repartition=True)
        )
        found: KStream[K2, V2] = processed
        return found

    def process_values(
        self,
        supplier: Callable[[], Processor[K, V, K, V2]],
        *,
        stores: str | StoreSpec | Iterable[str | StoreSpec] = (),
        value: TypeOrSerde[V2] | None = None,
        step: str | None = None,
    ) -> KStream[K, V2]:
        """As ``process``, but the processor must not change the key, so that no repartitioning is needed."""
        name = self._processor_name("KSTREAM-PROCESSVALUES-", step, supplier)
        serde = computed(value, f"the value that {name} forwards", locate(supplier), self._place.value)
        node = _node(name, Process(supplier, fixed_key=True), stores)
        self._place.add(node)
        return self._at(replace(self._place, name=name, node=node, value=serde))

    def _processor_name(self, prefix: str, step: str | None, supplier: Callable[[], Any]) -> str:
        name = self._place.context.names.step(prefix) if step is None else checked(step)
        check_supplier(name, supplier)
        return name


def _node(
    name: str, operation: Process, stores: str | StoreSpec | Iterable[str | StoreSpec]
) -> ProcessorGraphNode:
    connected = (*provided_stores(operation.supplier), *store_list(stores))
    return ProcessorGraphNode(name, operation, connected=connected)
