"""The steps on both sides of a repartition topic that gets partial aggregates: see ``partial_results``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pystreams.dsl.operators.base import Folded, HoldingOperation, OperatorEnvironment
from pystreams.dsl.operators.partial_columns import Combining, combine_keys
from pystreams.dsl.operators.partial_results import Combinable, QueueOf, functions_of, merge_keys
from pystreams.dsl.operators.partial_windows import combine_windows, merge_windows
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.state.spec import StoreSpec
from pystreams.topology.nodes import SinkNode


@dataclass(eq=False, slots=True)
class Combines(HoldingOperation):
    """Takes the place of ``sink``, and writes the partials of ``operation``, whose store is ``spec``, to the queues."""

    operation: Combinable
    spec: StoreSpec
    sink: SinkNode
    queue_of: QueueOf

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Combining:
        operation, spec = self.operation, self.spec
        functions = functions_of(operation, environment, spec, self.sink)
        if isinstance(operation, WindowAggregate):
            return combine_windows(operation, environment, spec, functions, self.queue_of, bytes_max)
        return combine_keys(environment, spec, functions, self.queue_of, bytes_max)


@dataclass(eq=False, slots=True)
class Merges(HoldingOperation):
    """Takes the place of ``operation``, and merges the partials of records of ``sink``."""

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    operation: Combinable
    sink: SinkNode

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Folded:
        operation, merger = self.operation, self.operation.merger
        assert merger is not None
        operation.forward_final(environment)
        if isinstance(operation, WindowAggregate):
            return merge_windows(operation, environment, merger, self.sink, bytes_max)
        return merge_keys(environment, environment.store(self.store), merger, bytes_max)
