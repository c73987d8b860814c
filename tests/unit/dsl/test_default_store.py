"""``default_dsl_store`` says where stores of the language's steps are that do not say it themselves."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import (
    JoinWindows,
    Processor,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyTestDriver,
)
from pystreams.errors import ConfigError
from pystreams.state.spec import StoreSpec
from pystreams.topology.topology import Topology


class Idle(Processor[str, str, str, str]):
    def process(self, record: Any) -> None:
        """Nothing."""


def first(one: str, _two: str | None) -> str:
    return one


def builder() -> StreamsBuilder:
    """Every kind of store that the language makes, some with a place of their own."""
    app = StreamsBuilder()
    words = app.stream("words", key=str, value=str)
    grouped = words.group_by_key()
    grouped.count(name="counts")
    grouped.count(name="on-disk", persistent=True)
    grouped.count(name="last", persistent=False, max_entries=5)
    grouped.windowed_by(TimeWindows.tumbling(10)).count(name="windows")
    grouped.windowed_by(SlidingWindows.of(10)).count(name="sliding")
    grouped.windowed_by(SessionWindows.of(5)).count(name="sessions")
    grouped.cogroup(first).aggregate(str, name="cogroup")
    rows = app.table("rows", key=str, value=str, name="rows")
    rows.filter(len, name="some")
    versions = app.table("versions", key=str, value=str, name="versions", history=1000)
    words.join(versions, first, grace=10, step="waits").to("waited")
    app.global_table("everywhere", key=str, value=str, name="everywhere")
    other = app.stream("others", key=str, value=str)
    words.left_join(other, first, windows=JoinWindows.of(5), name="join")
    words.join(other, first, windows=JoinWindows.of(5), name="join-on-disk", persistent=True)
    people = app.table("people", key=str, value=str, name="people")
    rows.join(people, first, foreign_key=str.upper, step="by-name", name="named")
    words.process(Idle, stores=[Stores.key_value_store("own", str, str)])
    return app


def stores(topology: Topology) -> dict[str, StoreSpec]:
    return {**topology.stores, **topology.global_stores}


def settings(**given: Any) -> StreamsConfig:
    return StreamsConfig.of(application_id="shop", **given)


def in_memory(topology: Topology) -> set[str]:
    return {name for name, spec in stores(topology).items() if not spec.persistent}


def test_stores_are_in_memory_unless_they_say_otherwise() -> None:
    """Those with versions never are: Java has none in memory. Stores of the program's own say it themselves."""
    assert in_memory(builder().build(settings())) == {"last"}
    assert in_memory(builder().build(settings(default_dsl_store="in_memory"))) == {
        *("counts", "last", "windows", "sliding", "sessions", "cogroup", "rows", "some", "everywhere"),
        *("join-this-join-store", "join-outer-other-join-store", "join-left-shared-join-store"),
        *("people", "named", "by-name-subscription-store"),
    }


def test_those_that_have_headers_in_memory_have_them() -> None:
    found = stores(builder().build(settings(default_dsl_store="in_memory", dsl_store_format="HEADERS")))
    assert {name for name, spec in found.items() if spec.headers} == {
        *("join-this-join-store", "join-outer-other-join-store", "by-name-subscription-store"),
        *("join-on-disk-this-join-store", "join-on-disk-other-join-store", "on-disk"),
    }


@pytest.mark.parametrize(
    "given", [{"default_dsl_store": "in_memory"}, {"dsl_store_format": "HEADERS"}], ids=["memory", "headers"]
)
def test_a_topology_that_was_built_without_settings_follows_those_that_it_runs_with(given: Any) -> None:
    topology = builder().build()
    before = dict(stores(topology))
    with TopologyTestDriver(topology, given) as driver:
        spec = driver.store("counts").spec
    assert (spec.persistent, spec.headers) == ("default_dsl_store" not in given, "dsl_store_format" in given)
    assert stores(topology) == before


def test_javas_name_and_values_do() -> None:
    config = StreamsConfig.from_mapping({"application.id": "shop", "default.dsl.store": "in_memory"})
    assert config.default_dsl_store == "in_memory"
    assert settings().default_dsl_store == "rocksDB"
    with pytest.raises(ConfigError, match="its name is default_dsl_store"):
        settings(dsl_store_suppliers_class="InMemory")
    with pytest.raises(ConfigError, match="rocksDB or in_memory"):
        settings(default_dsl_store="memory")
