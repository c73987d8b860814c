"""Disjoint sets of names, for finding connected nodes."""

from __future__ import annotations


class Groups:
    """Disjoint sets (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def copy(self) -> Groups:
        copied = Groups()
        copied._parents = dict(self._parents)
        return copied

    def add(self, name: str) -> None:
        self._parents[name] = name

    def root(self, name: str) -> str:
        """The representative of the set of ``name``; equal for all members of a set."""
        parents = self._parents
        while (parent := parents[name]) != name:
            parents[name] = parents[parent]
            name = parent
        return name

    def unite(self, one: str, other: str) -> None:
        self._parents[self.root(one)] = self.root(other)
