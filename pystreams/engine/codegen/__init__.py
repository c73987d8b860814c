"""Compiles sub-topologies to readable Python.

    compile_nodes(nodes, name) -> CompiledCode

``compiler`` walks the graph, ``steps``, ``table_steps`` and ``ends`` write the code of one node each, with the help of
``emitter``, ``scope`` (which variables hold the record), ``names`` and ``writer``.
"""

from __future__ import annotations

from pystreams.engine.codegen.compiler import CompiledCode, compile_nodes

__all__ = ["CompiledCode", "compile_nodes"]
