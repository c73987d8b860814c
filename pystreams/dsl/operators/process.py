"""Steps that users write as classes. The data lives in topology, whose low-level API has such steps, too."""

from __future__ import annotations

from pystreams.topology.nodes import Process

__all__ = ["Process"]
