"""What one makes in a notebook shows what it is: its name, its types, its state."""

from __future__ import annotations

import pytest

from pystreams import App, KStream, StreamsBuilder, TimeWindows
from pystreams.runtime.streams import Streams


@pytest.fixture
def lines() -> KStream[str, str]:
    return App("words").stream("lines", key=str, value=str, step="read")


def test_a_stream_shows_its_step_and_types(lines: KStream[str, str]) -> None:
    assert repr(lines) == "KStream(read, key=str, value=str)"
    assert repr(lines.map_values(len, step="length")) == "KStream(length, key=str, value=int)"
    assert repr(lines.map_values(dict, step="parse")) == "KStream(parse, key=str, value=JsonSerde(dict))"
    assert (
        repr(StreamsBuilder().stream("in", step="raw"))
        == "KStream(raw, key=bytes by default, value=bytes by default)"
    )


def test_a_table_shows_its_store_too(lines: KStream[str, str]) -> None:
    grouped = lines.group_by_key()
    assert repr(grouped) == "KGroupedStream(read, key=str, value=str)"
    table = grouped.count(name="counts", step="count")
    assert repr(table) == "KTable(count, key=str, value=int, store 'counts')"
    assert repr(table.group_by(lambda k, v: (k, v), repartition="again")) == (
        "KGroupedTable(again, key=not given, value=not given)"
    )
    assert repr(grouped.windowed_by(TimeWindows.tumbling(10))).startswith("TimeWindowedKStream(read, key=str")


def test_applications_show_their_name_and_size() -> None:
    app = App("words")
    assert repr(app) == "App('words', 0 steps)"
    app.stream("lines", value=str).group_by_key(key=str).count(name="counts")
    assert repr(app) == "App('words', 2 steps)"
    assert repr(StreamsBuilder()) == "StreamsBuilder(0 steps)"
    assert repr(app.build()) == "Topology(2 nodes, 1 stores, 1 sub-topologies)"
    assert repr(Streams(app)) == "Streams('words', CREATED, 0 threads)"
