"""Tests of topologies and processors without a broker."""

from __future__ import annotations

from pystreams.testing.driver import TopologyTestDriver
from pystreams.testing.mock_context import CapturedForward, CapturedPunctuator, MockProcessorContext
from pystreams.testing.play import play
from pystreams.testing.producer import ProducedRecord
from pystreams.testing.topics import InputTopic, OutputTopic

__all__ = [
    "CapturedForward",
    "CapturedPunctuator",
    "InputTopic",
    "MockProcessorContext",
    "OutputTopic",
    "ProducedRecord",
    "TopologyTestDriver",
    "play",
]
