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

#: Replaces a serde that may be a placeholder by the final one; the second argument says its use: "key" or "value".
ResolveSerde: TypeAlias = Callable[[AnySerde, str], AnySerde]


class Operation:
    """The operation of a processor node. Subclasses (dsl/operators) hold data; engine/codegen turns them into code.

    They are dataclasses, because the fingerprint of a topology has their fields, and the names of class and module:
    moving or renaming one changes the fingerprints of programs that use it.
    """

    #: Whether records after this node carry (new, old) instead of a value.
    emits_changes: ClassVar[bool] = False
    #: Whether Java runs it as a fixed-key processor. Only processor wrappers see a difference.
    keeps_key: ClassVar[bool] = False
    #: Whether it writes to its store under the key of its input record.
    stores_under_key: ClassVar[bool] = False

    @property
    def global_table(self) -> str | None:
        """The global store that the step reads."""
        return None

    def with_serdes(self, resolve: ResolveSerde) -> Operation:
        """A copy whose serdes are resolved, if it has any."""
        return self


@dataclass(eq=False, slots=True)
class Process(Operation):
    """Runs a ``Processor``; ``supplier`` makes one for each task. Source: KStreamImpl.process (KIP-820)."""

    supplier: Callable[[], Processor[Any, Any, Any, Any]]
    #: Whether the key cannot be changed (``process_values``).
    fixed_key: bool = False


@dataclass(eq=False, slots=True)
class SourceNode:
    """Reads topics. ``topics`` are as declared: internal ones do not carry the application id yet."""

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key_serde: AnySerde | None = None
    value_serde: AnySerde | None = None
    timestamp_extractor: Any = None
    auto_offset_reset: str | None = None


@dataclass(eq=False, slots=True)
class ProcessorNode:
    """Processes each record that its parents forward."""

    name: str
    parents: tuple[str, ...]
    operation: Operation
    stores: list[str] = field(default_factory=list)
    #: The supplier that a processor wrapper returned for the step, if there is a wrapper.
    supplier: Callable[[], Processor[Any, Any, Any, Any]] | None = None


@dataclass(eq=False, slots=True)
class SinkNode:
    """Writes to a topic, or to the topic that ``topic_chooser`` returns for each record."""

    name: str
    parents: tuple[str, ...]
    topic: str | None
    topic_chooser: UserFunction | None = None
    key_serde: AnySerde | None = None
    value_serde: AnySerde | None = None
    partitioner: Any = None


Node: TypeAlias = SourceNode | ProcessorNode | SinkNode


def is_processor(node: ProcessorNode) -> bool:
    """Whether a processor of the user's runs the node: it may forward to one child by its name."""
    return node.supplier is not None or isinstance(node.operation, Process)


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
