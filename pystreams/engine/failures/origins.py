"""Finds the step that made a key or value which caused an error further down, and the place of its function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pystreams.dsl.operators.stateless import FlatMap, Map, SelectKey
from pystreams.dsl.operators.table import TableRepartition
from pystreams.functions import UserFunction
from pystreams.serde import BYTES
from pystreams.topology.names import REPARTITION_SUFFIX, is_generated
from pystreams.topology.nodes import Node, Process, ProcessorNode, SinkNode, SourceNode

#: The functions of operations whose results become values; the other functions choose, only read, or make keys.
_MAKE_VALUES = ("mapper", "joiner", "initializer", "aggregator", "merger", "reducer", "adder", "supplier")

#: In the text of an error: its operand is bytes. ``value["x"]`` of bytes fails with "byte indices must be integers".
_OF_BYTES: Final = re.compile(r"\bbytes?\b")


class Origins:
    """The origins of values in one sub-topology. ``locations`` has the source lines of the functions of a step."""

    def __init__(self, nodes: Sequence[Node] = (), locations: Mapping[str, str] | None = None) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._locations = locations or {}

    def function(self, step: str) -> str:
        """The source line of a step's function; empty if it does not have one of the user."""
        return self._locations.get(step, "")

    def spelled(self, step: str, key: object, value: object) -> str:
        """The input of a step, and its origin: ``the key is a str, read from topic lines; the value is ...``."""
        node = self._nodes.get(step)
        as_key = as_value = ""
        if isinstance(node, SinkNode):
            as_key = f" (to be written as {node.key_serde!r})"
            as_value = f" (to be written as {node.value_serde!r})"
        return (
            f"the key is {_type(key)}{as_key}{self._made(step, _makes_key)}; "
            f"the value is {_type(value)}{as_value}{self._made(step, _makes_value)}"
        )

    def advice_on_bytes(self, step: str, error: Exception, value: object) -> str:
        """Advice if a function seems to fail because its values were read without a type; otherwise empty."""
        if not isinstance(error, AttributeError | TypeError) or not isinstance(value, bytes):
            return ""
        makers = list(self._makers(step, _makes_value)) if _OF_BYTES.search(str(error)) else []
        sources = [node for node in makers if isinstance(node, SourceNode) and node.value_serde is BYTES]
        topic = next((_topics(source) for source in sources), "")
        # The serdes of repartition topics come from the steps that write them.
        if not topic or topic.endswith(REPARTITION_SUFFIX):
            return ""
        return (
            f"the values of topic {topic} are read as bytes, as they are without value=: give their type where it is "
            "read (value=dict, value=str, a class)"
        )

    def store(self, step: str) -> str:
        """The store of a step if the program named it, otherwise empty."""
        node = self._nodes.get(step)
        store = getattr(node.operation, "store", None) if isinstance(node, ProcessorNode) else None
        return "" if store is None or is_generated(store) else str(store)

    def keeper(self, store: str) -> str:
        """The step of the DSL that keeps its records in a store; empty if there is none."""
        nodes = (node for node in self._nodes.values() if isinstance(node, ProcessorNode))
        return next((node.name for node in nodes if getattr(node.operation, "store", None) == store), "")

    def sources(self, step: str) -> tuple[SourceNode, ...]:
        """The sources from which records reach a step."""
        found: dict[str, SourceNode] = {}
        seen: set[str] = set()
        todo = [step]
        while todo:
            name = todo.pop()
            if name in seen or name not in self._nodes:
                continue
            seen.add(name)
            node = self._nodes[name]
            if isinstance(node, SourceNode):
                found[name] = node
            todo += self._parents(name)
        return tuple(found.values())

    def _made(self, step: str, makes: Callable[[ProcessorNode], bool]) -> str:
        """``, made by step X in its function``, or ``, read from topic X``; joins and merges have several."""
        places: dict[str, None] = {}
        for node in self._makers(step, makes):
            if isinstance(node, SourceNode):
                places[f"read from topic {_topics(node)}"] = None
            else:
                function = self.function(node.name)
                places[f"made by step {node.name}" + (f" in {function}" if function else "")] = None
        return f", {' or '.join(places)}" if places else ""

    def _makers(
        self, step: str, makes: Callable[[ProcessorNode], bool]
    ) -> Iterator[SourceNode | ProcessorNode]:
        """The upstream sources and steps that have made the keys or values of a step."""
        seen: set[str] = set()
        todo = self._parents(step)
        while todo:
            node = self._nodes[todo.pop(0)]
            if node.name in seen:
                continue
            seen.add(node.name)
            if isinstance(node, SourceNode) or (isinstance(node, ProcessorNode) and makes(node)):
                yield node
            else:
                todo += self._parents(node.name)

    def _parents(self, step: str) -> list[str]:
        node = self._nodes.get(step)
        return [] if node is None or isinstance(node, SourceNode) else list(node.parents)


def _topics(source: SourceNode) -> str:
    return ", ".join(source.topics if source.pattern is None else (source.pattern.pattern,))


def _makes_key(node: ProcessorNode) -> bool:
    operation = node.operation
    if isinstance(operation, Process):
        return not operation.fixed_key
    return isinstance(operation, SelectKey | Map | FlatMap | TableRepartition)


def _makes_value(node: ProcessorNode) -> bool:
    operation = node.operation
    if isinstance(operation, Process):
        return True
    functions = (getattr(operation, name, None) for name in _MAKE_VALUES)
    return not isinstance(operation, SelectKey) and any(isinstance(f, UserFunction) for f in functions)


def _type(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
