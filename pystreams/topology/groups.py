"""Which nodes belong together: disjoint sets of names."""

from __future__ import annotations


class Groups:
    """Disjoint sets that can be united."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def copy(self) -> Groups:
        copied = Groups()
        copied._parents = dict(self._parents)
        return copied

    def add(self, name: str) -> None:
        self._parents[name] = name

    def root(self, name: str) -> str:
        """The name that stands for the set of ``name``; equal for members of one set."""
        parents = self._parents
        while (parent := parents[name]) != name:
            parents[name] = parents[parent]
            name = parent
        return name

    def unite(self, one: str, other: str) -> None:
        self._parents[self.root(one)] = self.root(other)
