"""Tests of topologies without a broker."""

from __future__ import annotations

from pystreams.testing.driver import TopologyTestDriver
from pystreams.testing.play import play
from pystreams.testing.producer import ProducedRecord
from pystreams.testing.topics import InputTopic, OutputTopic

__all__ = ["InputTopic", "OutputTopic", "ProducedRecord", "TopologyTestDriver", "play"]
