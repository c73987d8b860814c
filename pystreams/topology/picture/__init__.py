"""A topology as a picture: a self-contained SVG, without scripts, fonts or other external resources.

Begin with ``drawing``, which decides what is drawn. ``layout`` decides where, ``shapes`` how it looks. ``mermaid``
writes a flowchart in Mermaid's language instead.
"""

from __future__ import annotations

from pystreams.topology.picture.drawing import picture

__all__ = ["picture"]
