"""A topology as a picture: an SVG that stands alone, without scripts, fonts or anything else from elsewhere.

``mermaid`` writes it as a flowchart in Mermaid's language instead.
"""

from __future__ import annotations

from pystreams.topology.picture.drawing import picture

__all__ = ["picture"]
