"""A transformed table ends as its transformer and its stores say, over partitions and a restart in the middle."""

from __future__ import annotations

from typing import Any

from pystreams import Stores
from pystreams.app import App
from pystreams.processor import ProcessorContext, ValueTransformer
from tests.live.support import Log, run_to_the_end


class Numbered(ValueTransformer[str, int, str]):
    """How often each key has changed, which a store of its own knows."""

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self._seen = context.store("seen")

    def transform(self, key: str, value: int | None) -> str | None:
        if value is None:
            return None
        seen = (self._seen.get(key) or 0) + 1
        self._seen.put(key, seen)
        return f"{value} ({seen})"


def numbering(log: Log) -> App:
    app = log.app("numbering", num_stream_threads=2)
    app.add_state_store(Stores.key_value_store("seen", str, int))
    table = app.table("in", key=str, value=int).transform_values(
        Numbered, stores="seen", value=str, name="rows"
    )
    table.to_stream().to("out")
    return app


def test_the_transformers_store_outlives_a_restart(log: Log) -> None:
    log.create("in", "out", partitions=3)
    keys = [f"k{n}" for n in range(20)]
    for start in (0, 3):
        for n in range(start, start + 3):
            log.write("in", [(key, n, 1_000 + n) for key in keys])
            run_to_the_end(log, numbering(log))
    assert log.table("out", value=str) == dict.fromkeys(keys, "5 (6)")
