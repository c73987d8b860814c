"""The syntax of modules, for tests that look at code."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The tree, and all statements in it, also those within others; without a look at expressions, which are most of a
    tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for parts in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, parts, ())
