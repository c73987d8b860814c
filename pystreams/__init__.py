"""Kafka Streams for Python: topologies of streams and tables, compiled, on Kafka or on an embedded log.

The names below are for users. Everything else is internal; the page "Architecture" of the documentation is its map.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pystreams import agg
from pystreams.app import App
from pystreams.config import StreamsConfig
from pystreams.distribution import __version__ as __version__
from pystreams.dsl.branches import BranchedKStream
from pystreams.dsl.builder import StreamsBuilder
from pystreams.dsl.cogroup import (
    CogroupedKStream,
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from pystreams.dsl.expressions import Expression, field
from pystreams.dsl.global_table import GlobalKTable
from pystreams.dsl.grouped import KGroupedStream
from pystreams.dsl.join_windows import JoinWindows
from pystreams.dsl.session_windowed import SessionWindowedKStream
from pystreams.dsl.stream import KStream
from pystreams.dsl.suppressed import Suppressed, WhenFull
from pystreams.dsl.table import KTable
from pystreams.dsl.table_grouped import KGroupedTable
from pystreams.dsl.windowed import TimeWindowedKStream
from pystreams.dsl.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from pystreams.errors import ConfigError, StreamsError, TopologyError
from pystreams.processor import (
    Change,
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    ValueTransformer,
)
from pystreams.record import Record
from pystreams.serde import JsonSerde, MsgpackSerde, Serde, SessionWindowedSerde, TimeWindowedSerde
from pystreams.topology.topology import Topology
from pystreams.topology.wrapping import ProcessorWrapper
from pystreams.windowed import Windowed

if TYPE_CHECKING:
    from pystreams.log import open_log
    from pystreams.runtime.queries.position import Position
    from pystreams.runtime.streams import Streams
    from pystreams.state.stores.factory import Stores
    from pystreams.testing import TopologyTestDriver

# fmt: off
__all__ = [
    "App", "BranchedKStream", "Change", "CogroupedKStream", "ConfigError", "EmitStrategy", "Expression",
    "FixedKeyProcessor",
    "GlobalKTable", "JoinWindows", "JsonSerde", "KGroupedStream", "KGroupedTable", "KStream", "KTable",
    "MsgpackSerde", "Position", "Processor", "ProcessorContext", "ProcessorWrapper", "PunctuationType", "Record",
    "Serde", "SessionWindowedCogroupedKStream", "SessionWindowedKStream", "SessionWindowedSerde", "SessionWindows",
    "SlidingWindows", "Stores", "Streams", "StreamsBuilder", "StreamsConfig", "StreamsError", "Suppressed",
    "TimeWindowedCogroupedKStream", "TimeWindowedKStream", "TimeWindowedSerde", "TimeWindows", "Topology",
    "TopologyError", "TopologyTestDriver", "UnlimitedWindows", "ValueTransformer", "WhenFull", "Windowed", "agg",
    "field", "open_log",
]
# fmt: on

#: Imported at first use, because they import RocksDB and Kafka's clients.
_LAZY = {
    "Position": "pystreams.runtime.queries.position",
    "Stores": "pystreams.state.stores.factory",
    "Streams": "pystreams.runtime.streams",
    "TopologyTestDriver": "pystreams.testing",
    "open_log": "pystreams.log",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
