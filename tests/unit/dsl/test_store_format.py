"""``dsl_store_format`` is for the stores on disk of the language's steps, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App, JoinWindows, Processor, SessionWindows, Stores, StreamsConfig, TimeWindows
from pystreams.errors import ConfigError
from pystreams.topology.built import BuiltTopology
from pystreams.topology.fingerprint import shape, without_headers


class Idle(Processor[str, str, str, str]):
    """Has a store of its own."""


def built(store_format: str) -> BuiltTopology:
    app = App("shop", dsl_store_format=store_format)
    words = app.stream("words", key=str, value=str)
    grouped = words.group_by_key()
    grouped.count(name="counts")
    grouped.count(name="counts-in-memory", persistent=False)
    grouped.windowed_by(TimeWindows.tumbling(10)).count(name="windows")
    grouped.windowed_by(SessionWindows.of(5)).count(name="sessions")
    app.table("rows", key=str, value=str, name="rows")
    app.table("versions", key=str, value=str, name="history", history=1000)
    app.global_table("everywhere", key=str, value=str, name="everywhere")
    other = app.stream("others", key=str, value=str)
    words.left_join(other, lambda one, two: f"{one}{two}", windows=JoinWindows.of(5), name="join", value=str)
    words.process(Idle, stores=[Stores.timestamped_key_value_store("own", str, str)])
    words.process(Idle, stores=[Stores.session_store("own-too", str, str, retention=10, headers=True)])
    return app.build().build("shop")


def with_headers(found: BuiltTopology) -> set[str]:
    specs = [*found.stores, *(one.spec for one in found.global_stores)]
    return {spec.name for spec in specs if spec.headers}


def test_stores_of_steps_on_disk_keep_headers_if_they_are_asked_to() -> None:
    assert with_headers(built("DEFAULT")) == {"own-too"}
    assert with_headers(built("headers")) == {
        *("counts", "windows", "sessions", "rows", "everywhere", "own-too"),
        *("join-this-join-store", "join-outer-other-join-store"),
    }


def test_the_format_is_not_part_of_the_fingerprint_but_of_the_shape() -> None:
    default, headers = built("DEFAULT"), built("HEADERS")
    assert default.fingerprint == headers.fingerprint
    assert shape(default) != shape(headers)
    assert without_headers(shape(default)) == without_headers(shape(headers))


@pytest.mark.parametrize("given", ["PLAIN", "header", 1, True])
def test_another_format_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="DEFAULT or HEADERS"):
        StreamsConfig.of(application_id="shop", dsl_store_format=given)


def test_javas_name_and_small_letters_do() -> None:
    config = StreamsConfig.from_mapping({"application.id": "shop", "dsl.store.format": "headers"})
    assert config.dsl_store_format == "HEADERS"
