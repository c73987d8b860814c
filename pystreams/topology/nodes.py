"""The nodes of a topology, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeAlias

from pystreams.functions import UserFunction
from pystreams.processor import Processor
from pystreams.serde.base import AnySerde

#: The serde for good of one that may not be known yet; the second argument says what it is for: "key" or "value".
ResolveSerde: TypeAlias = Callable[[AnySerde, str], AnySerde]


class Operation:
    """What a processor node does. Subclasses (dsl/operators) hold data; runtime/codegen turns them into code."""

    #: True if the edge out of this node carries (new, old) instead of a value.
    emits_changes: ClassVar[bool] = False
    #: True for what Java runs as a fixed-key processor: only processor wrappers see a difference.
    keeps_key: ClassVar[bool] = False
    #: True if what it writes to its store is under the key of the record that it is given.
    stores_under_key: ClassVar[bool] = False

    @property
    def global_table(self) -> str | None:
        """The global store that the step looks into."""
        return None

    def with_serdes(self, resolve: ResolveSerde) -> Operation:
        """The same with the serdes that it holds, if it holds any, resolved."""
        return self


@dataclass(eq=False, slots=True)
class Process(Operation):
    """Runs a ``Processor``; ``supplier`` gives a new one for each task. Source: KStreamImpl.process (KIP-820)."""

    supplier: Callable[[], Processor[Any, Any, Any, Any]]
    #: True: the key cannot be changed (``process_values``).
    fixed_key: bool = False


@dataclass(eq=False, slots=True)
class SourceNode:
    """Reads topics. ``topics`` are undecorated: internal ones still lack the application id."""

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key_serde: AnySerde | None = None
    value_serde: AnySerde | None = None
    timestamp_extractor: Any = None
    auto_offset_reset: str | None = None


@dataclass(eq=False, slots=True)
class ProcessorNode:
    """Does something with each record that its parents forward."""

    name: str
    parents: tuple[str, ...]
    operation: Operation
    stores: list[str] = field(default_factory=list)
    #: What a processor wrapper made of the step, if there is one.
    supplier: Callable[[], Processor[Any, Any, Any, Any]] | None = None


@dataclass(eq=False, slots=True)
class SinkNode:
    """Writes to a topic, or to the one that ``topic_chooser`` names for each record."""

    name: str
    parents: tuple[str, ...]
    topic: str | None
    topic_chooser: UserFunction | None = None
    key_serde: AnySerde | None = None
    value_serde: AnySerde | None = None
    partitioner: Any = None


Node: TypeAlias = SourceNode | ProcessorNode | SinkNode


def source_of(nodes: Iterable[Node], topic: str) -> SourceNode | None:
    """The source that reads a topic, by name or else by pattern. The test driver reads all that a pattern finds as one
    topic, whose name is the pattern's text."""
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    by_name = (source for source in sources if topic in source.topics)
    by_pattern = (
        source
        for source in sources
        if source.pattern is not None and (source.pattern.fullmatch(topic) or source.pattern.pattern == topic)
    )
    return next(chain(by_name, by_pattern), None)
