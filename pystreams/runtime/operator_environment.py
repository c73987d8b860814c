"""What operators with state are given, and what a task remembers for them from commit to commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pystreams.dsl.operators.base import Forward
from pystreams.errors import TopologyError
from pystreams.record import ContextCell
from pystreams.runtime.failures import Failures


class OperatorMemory:
    """Numbers (int64) that operators keep with the task's offsets, by ``py/<node>/<name>``."""

    def __init__(self) -> None:
        #: What the last commit of this task held, here or elsewhere.
        self.committed: Mapping[str, int] = {}
        self._readers: dict[str, Callable[[], int]] = {}

    def load(self, node: str, name: str, default: int) -> int:
        return self.committed.get(_entry(node, name), default)

    def save(self, node: str, name: str, read: Callable[[], int]) -> None:
        self._readers[_entry(node, name)] = read

    def values(self) -> dict[str, int]:
        """The numbers as they are now."""
        return {entry: read() for entry, read in self._readers.items()}


def _entry(node: str, name: str) -> str:
    return f"py/{node}/{name}"


class NodeEnvironment:
    """A node's access to its task. Implements ``dsl.operators.base.OperatorEnvironment``."""

    def __init__(
        self,
        node_name: str,
        cell: ContextCell,
        forward: Forward,
        stores: Mapping[str, Any],
        failures: Failures,
        memory: OperatorMemory,
    ) -> None:
        self.node_name = node_name
        self.cell = cell
        self.forward = forward
        self._stores = stores
        self._failures = failures
        self._memory = memory

    def store(self, name: str) -> Any:
        """Raises ``TopologyError`` if the task has no store of that name."""
        if name not in self._stores:
            raise TopologyError(
                f"{self.node_name} uses the store {name}, which its task does not have",
                why=f"the task's stores are {', '.join(self._stores) or 'none'}",
                hint="connect the store to the step that uses it",
            )
        return self._stores[name]

    def drop(self, reason: str) -> None:
        self._failures.drop(self.node_name, reason)

    def load_state(self, name: str, default: int) -> int:
        return self._memory.load(self.node_name, name, default)

    def save_state(self, name: str, read: Callable[[], int]) -> None:
        self._memory.save(self.node_name, name, read)
