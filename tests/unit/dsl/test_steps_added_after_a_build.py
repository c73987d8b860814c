"""A program may go on after it was built: what is added is in the next topology, whatever was put together."""

from __future__ import annotations

import pytest

from pystreams import App


def test_behind_a_stream_that_was_put_together_with_another():
    app = App("a")
    app.stream("t").to("one")
    again = app.stream("t")
    app.build()
    again.to("two")
    assert "topic: two" in app.build().describe()


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_behind_a_table_whose_repartition_topic_was_put_together_with_another(optimization: str):
    app = App("a", topology_optimization=optimization)
    stream = app.stream("t", key=str, value=str).select_key(lambda key, value: value)
    stream.group_by_key().count(name="one")
    counts = stream.group_by_key().count(name="two")
    app.build()
    counts.to_stream().to("counts")
    assert "topic: counts" in app.build().describe()
