"""A drawing of a topology shows its global stores, and who reads them."""

from __future__ import annotations

from pystreams import App
from pystreams.topology.picture.mermaid import mermaid


def test_a_join_is_linked_to_the_store_that_its_topic_fills() -> None:
    app = App("shop")
    prices = app.global_table("prices", key=str, value=int, name="rows")
    sales = app.stream("sales", key=str, value=str)
    sales.join(prices, lambda item, price: f"{item}{price}", key_fn=lambda item: item, value=str).to("sold")
    lines = [line.strip() for line in mermaid(app.build().build("shop")).splitlines()]
    topic = next(line.split("[")[0] for line in lines if "prices" in line)
    store = next(line.split("[")[0] for line in lines if "rows (global)" in line)
    assert f"{topic} --> {store}" in lines
    assert [line for line in lines if line.endswith(f"-.- {store}")]
