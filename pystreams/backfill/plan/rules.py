"""Settings and sources that decide the result of a backfill, beside topology and cut. A run that resumes a backfill
must have the same ones.

They are compared by name, as text that people can read. The budget of the caches and the records between commits are
not among them: they stand in the manifest, and those of the run that began count.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.locations import shown
from pystreams.backfill.plan.boundaries import bounded
from pystreams.backfill.sources import Source
from pystreams.config.secret import shown as without_secret
from pystreams.config.serde_settings import SERDE_SETTINGS
from pystreams.errors import ConfigError
from pystreams.serde import Serde
from pystreams.times import show_time
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import SinkNode, SourceNode

#: Settings that decide what a task makes of a record.
SETTINGS: Final = (
    "default_key_serde",
    "default_value_serde",
    "default_timestamp_extractor",
    "deserialization_exception_handler",
    "processing_exception_handler",
    "processing_exception_handler_global_enabled",
    "production_exception_handler",
    "errors_dead_letter_queue_topic_name",
    "dead_letter_dropped_records",
    "processor_wrapper",
)

#: Where the schemas are that serdes name in what they write: another registry has others under the same numbers.
REGISTRY: Final = "schema.registry.url"

SOURCE: Final = "source of the records"
#: Where it is, whatever it holds.
PLACE: Final = "place of the records"
BOUNDARY: Final = "boundary"

_NO_MATCH: Final = "the slices computed so far would not match the rest"
_OTHER_RESULT: Final = "what is computed there is another result"

#: The number of rows in the description of a table: a finished result stays what it is if rows are added.
_ROWS: Final = re.compile(r" with \d+ rows")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def rules_of(loaded: LoadedApplication, source: Source) -> dict[str, str]:
    """The properties that a result depends on, by name. The source is given as a digest, because its description may be
    long and may contain a secret."""
    config = loaded.config
    settings = {name: _text(getattr(config, name)) for name in SETTINGS}
    settings |= {name: value for name, value in config.serde_settings.items() if name in SERDE_SETTINGS}
    if REGISTRY in config.serde_settings:
        settings[REGISTRY] = without_secret(REGISTRY, config.serde_settings[REGISTRY])
    settings |= _of_nodes(loaded.built)
    if boundaries := _boundaries(source):
        settings[BOUNDARY] = ", ".join(boundaries)
    places = _digest(_ROWS.sub("", source.description))
    return {**settings, SOURCE: _digest(source.description), PLACE: places}


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _of_nodes(built: BuiltTopology) -> dict[str, str]:
    """Properties of sources and sinks that are not in the topology's fingerprint."""
    rules: dict[str, str] = {}
    for node in (node for sub in built.subtopologies for node in sub.nodes):
        if isinstance(node, SourceNode) and node.timestamp_extractor is not None:
            rules[f"timestamp extractor of {node.name}"] = _text(node.timestamp_extractor)
        elif isinstance(node, SinkNode) and node.partitioner is not None:
            rules[f"partitioner of {node.name}"] = _text(node.partitioner)
    return rules


def _boundaries(source: Source) -> list[str]:
    """The time of the boundary between tables and the log, if there is one: it is the same for all topics."""
    return sorted({show_time(one.boundary_ms) for one in bounded(source)})


def check_rules(
    was: Mapping[str, str], now: Mapping[str, str], source: Source, location: str, *, finished: bool
) -> None:
    """Raises ``ConfigError``, naming the first thing that is not as it was when the backfill in ``location`` began. If
    it is ``finished``, its result may be used whatever is set now, but it is not the result of other sources."""
    names = sorted(was.keys() | now.keys())
    if finished:
        names = [BOUNDARY, PLACE]
    if PLACE not in was:
        # An older version began it.
        names = [name for name in names if name not in (BOUNDARY, PLACE)]
    for name in names:
        if was.get(name) != now.get(name):
            difference = f"{name} was {was.get(name, 'not there')}, now it is {now.get(name, 'not there')}"
            if name in (SOURCE, PLACE):
                difference = f"it was not begun with records from {shown(source.description)}"
            raise ConfigError(
                "the backfill was begun with other settings, or from another source",
                where=shown(location),
                why=f"{difference}; " + (_OTHER_RESULT if finished else _NO_MATCH),
                hint="resume it with its original settings and sources, or begin again (overwrite)",
            )


def _text(value: Any) -> str:
    """A setting as text that is the same in every process. The code of functions and classes is not compared, and
    modules are left out: a program that is run has another than one that is imported."""
    if value is None or isinstance(value, bool | int | str | Serde):
        # The text of a user's serde may contain its address in memory.
        return _ADDRESS.sub("", str(value))
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__qualname__
    return str(value) if hasattr(value, "__origin__") else type(value).__qualname__
