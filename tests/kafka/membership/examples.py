"""Applications of the worked examples, so that a process of its own can run them, too: ``pystreams run``."""

from __future__ import annotations

from pystreams import App


def joined() -> App:
    """A and B, counted together: a stateful task for each pair of partitions."""
    app = App("joined")
    merged = app.stream("A", key=str, value=int).merge(app.stream("B", key=str, value=int))
    merged.group_by_key().count(name="counts")
    return app


def merged() -> App:
    """A and B, passed on: a stateless task for each pair of partitions."""
    app = App("merged")
    app.stream("A", key=str, value=int).merge(app.stream("B", key=str, value=int)).to("out")
    return app


JOINED, MERGED = joined(), merged()
