"""The numbers that a task keeps for its steps from commit to commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pystreams.engine.offset_metadata import entry


class OperatorMemory:
    """Numbers (int64) that operators store with the task's offsets, by ``py/<node>/<name>``, or by the plain name that
    Kafka Streams uses."""

    def __init__(self) -> None:
        #: The entries of this task's last commit, by this process or another one.
        self.at_last_commit: Mapping[str, int] = {}
        self._readers: dict[str, Callable[[], int | None]] = {}

    def load(self, node: str, name: str, default: int) -> int:
        return self.at_last_commit.get(entry(node, name), default)

    def save(self, node: str, name: str, read: Callable[[], int | None]) -> None:
        self._readers[entry(node, name)] = read

    def load_plain(self, name: str) -> int | None:
        return self.at_last_commit.get(name)

    def save_plain(self, name: str, read: Callable[[], int | None]) -> None:
        self._readers[name] = read

    def values(self) -> dict[str, int]:
        """The numbers as they are now."""
        values = ((name, read()) for name, read in self._readers.items())
        return {name: value for name, value in values if value is not None}
