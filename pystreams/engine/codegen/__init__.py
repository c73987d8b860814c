"""Compiles sub-topologies to readable Python.

    compile_nodes(nodes, name) -> CompiledCode

Begin with ``compiler``, which walks the graph (``graph``: the nodes to compile). ``steps``, ``table_steps`` and
``ends`` write the code of one node each, ``inside`` writes that of a step that is wrapped in processors. ``emitter``
collects the lines, ``scope`` knows which variables hold the record, ``names`` makes names, ``writer`` indents, and
notes the step that each line belongs to (``LineOwner``).
"""

from __future__ import annotations

from pystreams.engine.codegen.compiler import CompiledCode, compile_nodes
from pystreams.engine.codegen.writer import LineOwner, Work

__all__ = ["CompiledCode", "LineOwner", "Work", "compile_nodes"]
