"""Programs of the pages about backfills, with places that a test has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.exchange.rows import RECORD_SCHEMA
from tests.docs.manual import DOCS, examples


def program(page: str, beginning: str, places: Mapping[str, str]) -> str:
    """The program of a page that begins so, with other places."""
    (text,) = [block.text for block in examples(DOCS / page) if block.text.startswith(beginning)]
    for shown, ours in places.items():
        assert shown in text, f"{shown} is not in the program of {page}"
        text = text.replace(shown, ours)
    return text


def archive(folder: Path, topic: str, records: Iterable[tuple[str, object, int]]) -> None:
    """An archive of one partition of a topic: key, value in JSON, timestamp."""
    folder.mkdir()
    rows = [
        {
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "timestamp": time,
            "key": key.encode(),
            "value": msgspec.json.encode(value),
        }
        for offset, (key, value, time) in enumerate(records)
    ]
    pq.write_table(pa.Table.from_pylist(rows, RECORD_SCHEMA), folder / "records.parquet")
