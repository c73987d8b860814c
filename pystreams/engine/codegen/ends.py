"""Writes the code that leads out of the generated functions: sinks, and objects that process and forward records."""

from __future__ import annotations

from pystreams.engine.codegen.emitter import Emitter, quote
from pystreams.engine.codegen.scope import Scope
from pystreams.engine.codegen.writer import Work
from pystreams.functions import locate
from pystreams.topology.nodes import ProcessorNode, SinkNode


def emit_object(e: Emitter, node: ProcessorNode, scope: Scope) -> None:
    e.called = True
    with e.attempt(node, scope, leave=False):
        process = e.bind(node, "process", "{}" if node.supplier is None else "around_{}")
        e.out(f"{process}({scope.arguments(e.graph.edge_into(node))})  # {node.name}")


def emit_sink(e: Emitter, node: SinkNode, scope: Scope) -> None:
    """Write a sink: inline if its topic is fixed and its partitioning the default, else as the call of an object."""
    value = scope["value"] if "value" in e.graph.edge_into(node) else f"({scope['new']}, {scope['old']})"
    if not is_plain(node):
        e.called = True
        sink = e.bind(node, "sink")
        chooser = [] if node.topic_chooser is None else [node.topic_chooser.location]
        partitioner = [] if node.partitioner is None else [locate(node.partitioner)]
        e.locations[node.name] = ", ".join(chooser + partitioner)
        e.out(f"{sink}({scope['key']}, {value}, {scope['timestamp']}, {scope['headers']})  # {node.name}")
        return
    assert node.topic is not None
    write_key, write_value = e.bind(node, "key", "key_of_{}"), e.bind(node, "value", "value_of_{}")
    record = f"{scope['key']}, {value}, {scope['timestamp']}, {scope['headers']}"
    with e.out.block("try:"):
        with e.out.owned_by(node.name, Work.ENCODE):
            e.out(f"key_bytes = None if {scope['key']} is None else {write_key}({scope['key']})")
            missing = "" if value.startswith("(") else f"None if {value} is None else "
            e.out(f"value_bytes = {missing}{write_value}({value})")
        with e.out.owned_by(node.name, Work.PRODUCE):
            e.out(
                f"send({quote(node.topic)}, None, key_bytes, value_bytes, {scope['timestamp']},"
                f" {scope['headers']})  # {node.name}"
            )
            written = e.bind(node, "written", "written_by_{}")
            e.out(f"{written}.append({scope['timestamp']})")
    with e.out.block("except Exception as error:"):
        e.set_late_context(scope)
        e.out(f"unwritable({quote(node.name)}, {quote(node.topic)}, error, {record})")


def is_plain(node: SinkNode) -> bool:
    """True if the topic is fixed and the producer chooses the partition by the hash of the whole key."""
    if node.topic is None or node.partitioner is not None:
        return False
    return node.key_serde is None or node.key_serde.partition_bytes(node.topic) is None
