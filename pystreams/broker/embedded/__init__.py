"""The embedded log: a broker in one SQLite file, for the processes of one machine. ``schema`` describes its tables."""

from __future__ import annotations

from pystreams.broker.embedded.broker import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
