"""Kafka Streams for Python: topologies of streams and tables, compiled, on Kafka or on an embedded log.

The names below are for users. Everything else is internal; the page "Architecture" of the documentation is its map.
"""

from __future__ import annotations

TYPE_CHECKING = False  # To import the one of ``typing`` would take time.
if TYPE_CHECKING:
    from typing import Any

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
    from pystreams.log import open_log
    from pystreams.processor import (
        Change,
        FixedKeyProcessor,
        Processor,
        ProcessorContext,
        PunctuationType,
        ValueTransformer,
    )
    from pystreams.record import Record
    from pystreams.runtime.queries.position import Position
    from pystreams.runtime.streams import Streams
    from pystreams.serde import JsonSerde, MsgpackSerde, Serde, SessionWindowedSerde, TimeWindowedSerde
    from pystreams.state.stores.factory import Stores
    from pystreams.testing import TopologyTestDriver
    from pystreams.topology.topology import Topology
    from pystreams.topology.wrapping import ProcessorWrapper
    from pystreams.windowed import Windowed

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

#: The names of each module, which is imported when one of them is used: a command can be interrupted before that.
_MODULES = {
    "pystreams.app": "App",
    "pystreams.config": "StreamsConfig",
    "pystreams.distribution": "__version__",
    "pystreams.dsl.branches": "BranchedKStream",
    "pystreams.dsl.builder": "StreamsBuilder",
    "pystreams.dsl.cogroup": "CogroupedKStream SessionWindowedCogroupedKStream TimeWindowedCogroupedKStream",
    "pystreams.dsl.expressions": "Expression field",
    "pystreams.dsl.global_table": "GlobalKTable",
    "pystreams.dsl.grouped": "KGroupedStream",
    "pystreams.dsl.join_windows": "JoinWindows",
    "pystreams.dsl.session_windowed": "SessionWindowedKStream",
    "pystreams.dsl.stream": "KStream",
    "pystreams.dsl.suppressed": "Suppressed WhenFull",
    "pystreams.dsl.table": "KTable",
    "pystreams.dsl.table_grouped": "KGroupedTable",
    "pystreams.dsl.windowed": "TimeWindowedKStream",
    "pystreams.dsl.windows": "EmitStrategy SessionWindows SlidingWindows TimeWindows UnlimitedWindows",
    "pystreams.errors": "ConfigError StreamsError TopologyError",
    "pystreams.log": "open_log",
    "pystreams.processor": "Change FixedKeyProcessor Processor ProcessorContext PunctuationType ValueTransformer",
    "pystreams.record": "Record",
    "pystreams.runtime.queries.position": "Position",
    "pystreams.runtime.streams": "Streams",
    "pystreams.serde": "JsonSerde MsgpackSerde Serde SessionWindowedSerde TimeWindowedSerde",
    "pystreams.state.stores.factory": "Stores",
    "pystreams.testing": "TopologyTestDriver",
    "pystreams.topology.topology": "Topology",
    "pystreams.topology.wrapping": "ProcessorWrapper",
    "pystreams.windowed": "Windowed",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        value = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return value
    module = f"{__name__}.{name}"
    try:
        return import_module(module)  # such as ``pystreams.errors``
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PLACES})
