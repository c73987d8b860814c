"""Draws the packages of pystreams from their imports, for a page: ``python -m tests.docs.packages``."""

from __future__ import annotations

import grimp

#: Every package imports these: arrows to them would say nothing.
COMMON = frozenset({"config", "metrics", "serde"})


def imports() -> dict[str, set[str]]:
    """The packages directly below pystreams, each with those that it imports."""
    graph = grimp.build_graph("pystreams")
    packages = {child for child in graph.find_children("pystreams") if graph.find_children(child)}
    for package in packages:
        graph.squash_module(package)
    return {
        _name(package): {
            _name(other) for other in graph.find_modules_directly_imported_by(package) & packages
        }
        - COMMON
        - {_name(package)}
        for package in packages
        if _name(package) not in COMMON
    }


def _name(module: str) -> str:
    return module.removeprefix("pystreams.")


def reachable(arrows: dict[str, set[str]], start: str) -> set[str]:
    """The packages that an arrow, or several behind each other, lead to."""
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            waiting += arrows[package]
    return found


def diagram() -> str:
    """A flowchart in Mermaid's language, without the arrows that a longer way replaces."""
    arrows = imports()
    lines = [
        f"    {importer} --> {imported}"
        for importer in sorted(arrows)
        for imported in sorted(arrows[importer])
        if not any(imported in reachable(arrows, other) for other in arrows[importer] - {imported})
    ]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


if __name__ == "__main__":
    print(diagram())
