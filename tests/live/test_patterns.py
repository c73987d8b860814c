"""A pattern stands for the topics whose whole names match it when the application starts."""

from __future__ import annotations

import re

from tests.live.support import Log, caught_up, run_to_the_end


def test_a_topic_that_comes_later_is_read_from_its_beginning_after_the_next_start(log: Log) -> None:
    app = log.app("patterns")
    app.stream(re.compile("in-[a-z]"), key=str, value=int).to("out")
    log.create("in-a", "in-and-more", "other", "out")
    log.write("in-a", [("a", 1, 1)])
    log.write("in-and-more", [("b", 5, 1)])
    streams = log.start(app)
    caught_up(streams)
    log.create("in-b")
    log.write("in-b", [("b", 2, 2)])
    log.write("in-a", [("a", 3, 3)])
    caught_up(streams)
    assert [record.value for record in log.read("out")] == [1, 3]
    streams.close()
    run_to_the_end(log, app)
    assert [record.value for record in log.read("out")] == [1, 3, 2]
