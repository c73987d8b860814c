"""Steps that users write as classes. The operation is defined in topology, for the low-level API."""

from __future__ import annotations

from pystreams.topology.nodes import Process

__all__ = ["Process"]
