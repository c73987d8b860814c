"""Rewritings of the topology save topics, and only where they are allowed."""

from __future__ import annotations

import pytest

from pystreams import App, ConfigError, StreamsBuilder, StreamsConfig, TopologyError
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.topology.built import BuiltTopology


def built(optimization: str, *, by_processor: bool = False) -> BuiltTopology:
    """Two aggregations and a join behind one change of key, and a table."""
    app = App("shop", topology_optimization=optimization)
    sales = app.stream("sales", key=str, value=int).select_key(lambda key, value: key[:1], key=str)
    if by_processor:
        sales = sales.process(PassOn, key=str, value=int)
    sales.group_by_key().count(name="sold")
    sales.group_by_key().reduce(max, name="greatest")
    names = app.table("names", key=str, value=str, name="by-letter")
    sales.join(names, lambda value, name: f"{name}{value}", value=str).to("named")
    return app.build().build("shop")


class PassOn(Processor[str, int, str, int]):
    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record)


def topics(found: BuiltTopology) -> set[str]:
    changelogs = {topic for sub in found.subtopologies for topic in sub.changelogs.values()}
    return {*found.internal_topics, *changelogs}


def test_without_leave_nothing_is_rewritten() -> None:
    assert topics(built("none")) == {
        "shop-sold-repartition",
        "shop-greatest-repartition",
        "shop-KSTREAM-KEY-SELECT-0000000001-repartition",
        "shop-sold-changelog",
        "shop-greatest-changelog",
        "shop-by-letter-changelog",
    }


def test_what_stands_behind_one_change_of_key_shares_a_repartition_topic() -> None:
    found = built("merge.repartition.topics")
    assert list(found.internal_topics) == ["shop-sold-repartition"]
    assert "shop-by-letter-changelog" in topics(found)


def test_the_joined_topic_is_partitioned_as_the_shared_one() -> None:
    found = built("merge.repartition.topics")
    assert {"shop-sold-repartition", "names"} in [
        set(group) for sub in found.subtopologies for group in sub.copartition_groups
    ]


def test_a_table_may_be_restored_from_its_topic() -> None:
    found = built("reuse.ktable.source.topics")
    assert "shop-by-letter-changelog" not in topics(found)
    assert {"by-letter": "names"} in [sub.source_changelogs for sub in found.subtopologies]


def test_all_is_all_of_them_and_several_are_named_with_commas() -> None:
    expected = {"shop-sold-repartition", "shop-sold-changelog", "shop-greatest-changelog"}
    assert topics(built("all")) == expected
    assert topics(built("reuse.ktable.source.topics, merge.repartition.topics")) == expected


def test_a_topology_that_is_built_twice_is_rewritten_once() -> None:
    builder = StreamsBuilder()
    sales = builder.stream("sales", key=str, value=int).select_key(lambda key, value: key[:1], key=str)
    for name in ("one", "two"):
        sales.group_by_key().count(name=name)
    config = StreamsConfig.of(application_id="shop", topology_optimization="all")
    assert builder.build(config).describe() == builder.build(config).describe()


def test_what_kafka_streams_cannot_merge_is_refused_with_the_reason() -> None:
    with pytest.raises(TopologyError, match=r"repartition topics after .* cannot be merged"):
        built("merge.repartition.topics", by_processor=True)


@pytest.mark.parametrize(
    "given", ["", "some", "all,none", "merge.repartition.topics,none", "merge repartition"]
)
def test_an_unknown_rewriting_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="expected none, all, or some of reuse"):
        App("shop", topology_optimization=given)
