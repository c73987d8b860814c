"""A topology as a picture: a self-contained SVG, without scripts, fonts or other external resources.

``mermaid`` writes it as a Mermaid flowchart instead.
"""

from __future__ import annotations

from pystreams.topology.picture.drawing import picture

__all__ = ["picture"]
