"""The metric of dropped records says which step has dropped them."""

from __future__ import annotations

from pystreams import App
from pystreams.testing import TopologyTestDriver


def test_each_step_counts_what_it_drops(tmp_path):
    app = App("dropping", processing_exception_handler="continue", state_dir=tmp_path)
    numbers = app.stream("in", key=str, value=int)
    numbers.map_values(lambda value: 1 // value, value=int, step="divide").group_by_key().count(name="counts")
    with TopologyTestDriver(app) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        topic.pipe_input("a", 0)
        topic.pipe_input("b", 0)
        topic.pipe_input(None, 1)
        topic.pipe_input("c", 1)
        total = driver.metrics.total
        assert total("step-dropped-records-total", processor_node_id="divide") == 2
        assert total("step-dropped-records-total", processor_node_id="KSTREAM-AGGREGATE-0000000002") == 1
        assert total("step-dropped-records-total") == total("dropped-records-total") == 3
