"""A page of entries in Arrow's IPC stream format, for data frames: ``Accept: application/vnd.apache.arrow.stream``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pystreams.distribution import install_command
from pystreams.serving.query_errors import NotAcceptableError
from pystreams.serving.stores.questions import Offsets

ARROW: Final = "application/vnd.apache.arrow.stream"


def arrow_stream(entries: Sequence[bytes], position: Offsets | None = None) -> bytes:
    """A table with a row for each entry (a JSON object), and the entry's fields as columns. A ``position`` is JSON in
    the metadata of the schema. Raises ``NotAcceptableError`` without pyarrow, and for values that do not fit into
    columns."""
    try:
        import pyarrow as pa
    except ImportError:
        raise NotAcceptableError(
            "this server has no Arrow", why="pyarrow is not installed", hint=install_command("pandas")
        ) from None
    rows = [msgspec.json.decode(entry) for entry in entries]
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, OverflowError) as error:
        raise NotAcceptableError(
            "these entries have no common columns", why=str(error)[:200], hint="ask for JSON"
        ) from None
    if position is not None:
        table = table.replace_schema_metadata({"position": msgspec.json.encode(position)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
