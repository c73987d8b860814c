"""Stores are read over HTTP: a key, its windows, sessions and versions, and all entries page by page, in JSON."""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
import uuid
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pyarrow as pa
import pytest
from pydantic import BaseModel

from pystreams import MsgpackSerde, Serde, SessionWindows, TimeWindows
from pystreams.partitioning import partition_for_key
from pystreams.serving.stores.arrow import ARROW
from pystreams.serving.stores.asking import Together
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.questions import Question
from pystreams.times import show_time
from tests.live.support import caught_up, eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.queries_kit import asked

pytestmark = pytest.mark.live

NAMES = [f"k{n}" for n in range(12)]


def counted(app):
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("counts"), counted, partitions=3) as application:
        for number, name in enumerate(NAMES):
            application.log.write("in", [(name, number, number)] * (number + 1), partition=number % 3)
        caught_up(application.streams)
        yield application


def test_stores_are_listed_with_their_kinds_types_and_partitions(counts):
    store = {"name": "counts", "kind": "timestamped_key_value", "key": "str", "value": "int"}
    store |= {"partitions": 3, "here": [0, 1, 2]}
    eventually(lambda: counts.get("/stores").json["stores"][0]["here"] == [0, 1, 2])
    assert counts.get("/stores").json == {"stores": [store]}
    assert counts.get("/stores/counts").json == store


def test_a_key_has_its_value_and_the_time_of_its_last_change(counts):
    page = counts.key("counts", "k7")
    assert (page.status, page.json) == (200, {"key": "k7", "value": 8, "timestamp": 7})
    assert page.headers["cache-control"] == "no-store"


def test_a_key_that_is_absent_is_distinguished_from_a_store_that_is_not_there(counts):
    page = counts.key("counts", "nobody")
    assert (page.status, page.json["code"]) == (404, "absent")
    page = counts.key("count", "k7")
    assert (page.status, page.json["code"]) == (404, "unknown-store")
    assert page.json["why"] == "there are: counts"
    assert page.json["hint"] == "did you mean counts?"


@pytest.mark.parametrize("freshness", ["latest", "committed"])
def test_an_absent_key_is_looked_for_where_it_can_be(tmp_path, freshness):
    def both(app):
        numbers = app.stream("in", key=str, value=int)
        numbers.group_by_key().count(name="anywhere")
        numbers.group_by(lambda key, value: key, key=str).count(name="in-its-partition")

    def looked_in(store: str, key: str) -> set[int]:
        page = application.key(store, key, f"?freshness={freshness}")
        assert (page.status, page.json["code"]) == (404, "absent")
        ((_, offsets),) = msgspec.json.decode(page.headers["pystreams-position"]).items()
        return set(map(int, offsets))

    with asked(tmp_path, both, partitions=3) as application:
        for number in range(30):
            application.log.write("in", [(f"k{number}", number, number)])
        caught_up(application.streams)
        eventually(lambda: application.log.all_committed("asked", "in", "asked-in-its-partition-repartition"))
        # What a producer of others makes of a key is not known.
        assert looked_in("anywhere", "nobody") == {0, 1, 2}
        for number in range(10):
            key = f"nobody-{number}"
            assert looked_in("in-its-partition", key) == {partition_for_key(key.encode(), 3)}


@pytest.mark.parametrize("key", ["", "/", "a/b", "..", "a b", "ü", "?x=1", "%41", "k\0", "a" * 5_000])
def test_any_text_can_be_a_key(counts, key):
    counts.log.write("in", [(key, 1, 1)])
    caught_up(counts.streams)
    page = counts.key("counts", key)
    assert (page.status, page.json["key"]) == (200, key)


def test_pages_together_have_all_entries_once_in_the_order_of_their_keys(tmp_path):
    with asked(tmp_path, counted, partitions=3) as application:
        for number, name in enumerate(NAMES):
            application.log.write("in", [(name, number, number)], partition=number % 3)
        caught_up(application.streams)
        pages = list(application.pages("/stores/counts/entries?limit=5"))
        assert [[entry["key"] for entry in page] for page in pages] == [
            sorted(NAMES)[:5],
            sorted(NAMES)[5:10],
            sorted(NAMES)[10:],
        ]
        found = application.all("/stores/counts/entries?from=k1&to=k3&limit=2")
        assert [entry["key"] for entry in found] == ["k1", "k10", "k11", "k2", "k3"]
        assert application.get("/stores/counts/entries?from=x").json == {"entries": [], "cursor": None}


@pytest.mark.parametrize(
    "query,why",
    [
        ("limit=0", "limit='0' is not a number of entries"),
        ("limit=10001", "limit='10001' is not a number of entries"),
        ("limit=" + "9" * 5_000, "is not a number of entries"),
        ("limit=%C2%B2", "is not a number of entries"),
        ("cursor=nonsense", "the cursor is not one of a page"),
        ("form=a", "there is no parameter 'form'"),
        ("from=a&from=b", "parameter from is given twice"),
        ("from=b&to=a", "the first key of the range sorts after the last one"),
        ("from_time=yesterday", "from_time='yesterday' is not a time"),
        ("from_time=-5", "is not a time"),
        ("from_time=0", "which has no windows"),
    ],
)
def test_a_wrong_parameter_is_named(counts, query, why):
    page = counts.get(f"/stores/counts/entries?{query}")
    assert (page.status, page.json["code"]) == (400, "bad-query")
    assert why in page.json["error"]


def test_a_misspelt_parameter_is_guessed(counts):
    assert counts.get("/stores/counts/entries?form=a").json["hint"] == "did you mean from?"


def test_a_page_comes_as_arrow_if_that_is_asked_for(counts):
    url = f"http://{counts.server.address}/stores/counts/entries?from=k1&to=k2&limit=3"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": ARROW}), timeout=60) as answer:
        assert answer.headers["content-type"] == ARROW
        assert answer.headers["pystreams-cursor"]
        table = pa.ipc.open_stream(answer.read()).read_all()
    assert table.to_pylist() == [
        {"key": "k1", "value": 2, "timestamp": 1},
        {"key": "k10", "value": 11, "timestamp": 10},
        {"key": "k11", "value": 12, "timestamp": 11},
    ]


# Types


class Flight(msgspec.Struct, frozen=True):
    carrier: str
    number: int


@dataclass
class Seat:
    row: int
    letter: str


class Bag(BaseModel):
    weight: float


IDENTITY = uuid.UUID("00000000-0000-4000-8000-000000000001")

TYPES = [
    (int, -7, "-7", -7),
    (float, 0.5, "0.5", 0.5),
    (bool, True, "true", True),
    (bytes, b"\xff\xfe\xfd", base64.urlsafe_b64encode(b"\xff\xfe\xfd").decode(), "//79"),
    (uuid.UUID, IDENTITY, str(IDENTITY), str(IDENTITY)),
    (Flight, Flight("UA", 1), '{"carrier": "UA", "number": 1}', {"carrier": "UA", "number": 1}),
    (Seat, Seat(1, "A"), '{"row":1,"letter":"A"}', {"row": 1, "letter": "A"}),
    (Bag, Bag(weight=2.5), '{"weight":2.5}', {"weight": 2.5}),
    (list, ["a", 1], '["a", 1]', ["a", 1]),
    (MsgpackSerde(Flight), Flight("UA", 1), '{"carrier":"UA","number":1}', {"carrier": "UA", "number": 1}),
]


@pytest.mark.parametrize("type_,key,text,shown", TYPES, ids=[str(case[0]) for case in TYPES])
def test_a_key_is_written_and_values_are_shown_in_the_encoding_of_their_type(
    tmp_path, type_, key, text, shown
):
    def latest(app):
        app.table("in", key=type_, value=type_, name="latest")

    with asked(tmp_path, latest) as application:
        application.log.write("in", [(key, key, 5)], key=type_, value=type_)
        caught_up(application.streams)
        page = application.key("latest", text)
        assert (page.status, page.json) == (200, {"key": shown, "value": shown, "timestamp": 5})
        page = application.key("latest", "{")
        assert (page.status, page.json["code"]) == (400, "bad-query")
        assert "is not a key of this store" in page.json["error"]
        plain = type_ in (int, float, bool, bytes, uuid.UUID)
        assert ("percent-encoded" in page.json.get("url", "")) is not plain
        assert "percent" not in page.json["hint"]


def test_what_has_no_json_form_is_shown_as_its_bytes(tmp_path):
    number = Serde.of(lambda value: str(value.real).encode(), lambda data: complex(data.decode()))

    def latest(app):
        app.table("in", key=str, value=number, name="latest")

    with asked(tmp_path, latest) as application:
        application.log.write("in", [("a", 2 + 0j, 5)], value=number)
        caught_up(application.streams)
        assert application.key("latest", "a").json["value"] == {"base64": base64.b64encode(b"2.0").decode()}


# Kinds of stores


def test_a_key_of_a_window_store_has_its_windows_by_their_start(tmp_path):
    def hourly(app):
        windows = TimeWindows.tumbling(timedelta(milliseconds=10), grace=timedelta(days=1))
        app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(name="hourly")

    with asked(tmp_path, hourly) as application:
        application.log.write("in", [("a", 1, time) for time in (1, 2, 11, 35)] + [("b", 1, 12)])
        caught_up(application.streams)
        windows = application.key("hourly", "a").json["entries"]
        assert windows == [
            {"key": "a", "start": 0, "end": 10, "value": 2, "timestamp": 2},
            {"key": "a", "start": 10, "end": 20, "value": 1, "timestamp": 11},
            {"key": "a", "start": 30, "end": 40, "value": 1, "timestamp": 35},
        ]
        assert application.key("hourly", "a", "?from_time=5&to_time=20").json["entries"] == windows[1:2]
        assert application.all("/stores/hourly/keys/a?limit=1") == windows
        assert application.all("/stores/hourly/keys/a?limit=2&to_time=1970-01-01") == windows[:1]
        everything = application.all("/stores/hourly/entries?limit=1")
        assert [(entry["key"], entry["start"]) for entry in everything] == [
            ("a", 0),
            ("a", 10),
            ("a", 30),
            ("b", 10),
        ]
        assert [
            entry["key"] for entry in application.all("/stores/hourly/entries?from_time=10&to_time=10")
        ] == ["a", "b"]
        assert application.key("hourly", "nobody").status == 404


# A cache still has the expired window, and does not show it.
@pytest.mark.parametrize("cached", [False, True], ids=["uncached", "cached"])
@pytest.mark.parametrize("freshness", ["latest", "committed"])
def test_windows_that_have_expired_are_distinguished_from_windows_that_never_were(
    tmp_path, freshness, cached
):
    def by_second(app):
        windows = TimeWindows.tumbling(timedelta(seconds=1), grace=timedelta(seconds=59))
        grouped = app.stream("in", key=str, value=int).group_by_key()
        store = {"cached": cached, "changelog_config": {"retention.ms": "-1"}}
        grouped.windowed_by(windows).count(name="counts", **store)

    def why(key: str, parameters: str = "") -> str:
        page = application.key("counts", key, f"?freshness={freshness}{parameters}")
        assert (page.status, page.json["code"]) == (404, "absent")
        assert page.json.get("kept_from_ms", 0) == store.kept_from_ms(key)
        return page.json["why"]

    with asked(tmp_path, by_second, partitions=1, commit_interval_ms=20) as application:
        store = application.streams.store("counts", freshness=freshness)
        application.log.write("in", [("a", 1, 1_000)])
        caught_up(application.streams)
        assert why("nobody") == "all of it was read"
        application.log.write("in", [("b", 1, 3_600_500)])
        caught_up(application.streams)
        # The latest window began at 3_600_000, and they are kept for a minute.
        eventually(lambda: store.kept_from_ms("a") == 3_540_001, store.kept_from_ms("a"))
        expired = "nothing from before 1970-01-01T00:59:00.001Z is kept any longer"
        assert expired in why("a")
        assert expired in why("b", "&to_time=3599999")
        entries = application.get(f"/stores/counts/entries?freshness={freshness}").json["entries"]
        assert [entry["key"] for entry in entries] == ["b"]
        assert application.key("counts", "b").status == 200


def test_a_key_of_a_session_store_has_its_sessions(tmp_path):
    def visits(app):
        windows = SessionWindows.of(timedelta(milliseconds=5), grace=timedelta(days=1))
        app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(name="visits")

    with asked(tmp_path, visits) as application:
        application.log.write("in", [("a", 1, time) for time in (1, 3, 20)] + [("b", 1, 2)])
        caught_up(application.streams)
        sessions = application.key("visits", "a").json["entries"]
        assert sessions == [
            {"key": "a", "start": 1, "end": 3, "value": 2},
            {"key": "a", "start": 20, "end": 20, "value": 1},
        ]
        assert application.key("visits", "a", "?from_time=10").json["entries"] == sessions[1:]
        assert [entry["key"] for entry in application.all("/stores/visits/entries?limit=1")] == [
            "a",
            "a",
            "b",
        ]


def test_sessions_that_have_expired_are_distinguished_from_sessions_that_never_were(tmp_path):
    def visits(app):
        windows = SessionWindows.of(timedelta(seconds=1), grace=timedelta(seconds=59))
        grouped = app.stream("in", key=str, value=int).group_by_key()
        grouped.windowed_by(windows).count(name="visits", cached=False)

    with asked(tmp_path, visits, partitions=1, commit_interval_ms=20) as application:
        application.log.write("in", [("a", 1, 1_000)])
        caught_up(application.streams)
        assert application.key("visits", "nobody").json["why"] == "all of it was read"
        application.log.write("in", [("b", 1, 3_600_500)])
        caught_up(application.streams)
        page = application.key("visits", "a")
        kept_from_ms = application.streams.store("visits").kept_from_ms("a")
        assert 1_000 < kept_from_ms <= 3_600_500
        assert page.json["kept_from_ms"] == kept_from_ms
        assert page.json["why"] == (
            f"all of it was read; nothing from before {show_time(kept_from_ms)} is kept any longer"
        )


def test_a_key_of_a_versioned_store_has_its_versions(tmp_path):
    def prices(app):
        app.table("in", key=str, value=int, name="prices", history=timedelta(days=1))

    with asked(tmp_path, prices) as application:
        application.log.write("in", [("a", 1, 10), ("a", 2, 20), ("a", None, 30)])
        caught_up(application.streams)
        versions = application.key("prices", "a").json["entries"]
        assert versions == [
            {"key": "a", "value": 1, "timestamp": 10, "valid_to": 20},
            {"key": "a", "value": 2, "timestamp": 20, "valid_to": 30},
        ]
        assert application.key("prices", "a", "?as_of=15").json == versions[0]
        assert application.key("prices", "a", "?as_of=30").status == 404
        page = application.get("/stores/prices/entries")
        assert (page.status, "key by key" in page.json["error"]) == (400, True)


def test_every_instance_and_every_worker_has_all_of_a_global_store(tmp_path):
    def everything(app):
        app.global_table("in", key=str, value=int, name="all")

    with asked(tmp_path, everything) as application:
        application.log.write("in", [("a", 1, 10)])
        page = eventually(lambda: (seen := application.key("all", "a")).status == 200 and seen)
        assert page.json == {"key": "a", "value": 1, "timestamp": 10}
        assert [entry["key"] for entry in application.all("/stores/all/entries")] == ["a"]
        assert application.key("all", "b").json["code"] == "absent"
        workers = {number: LocalStores(application.streams) for number in (1, 2)}
        part = run_apart(Together(lambda: workers).ask(Question("all", limit=1)))
        assert ([entry.place.key for entry in part.entries], part.more) == ([b"a"], False)


def test_a_store_of_an_application_that_does_not_run_is_not_reachable(tmp_path):
    with asked(tmp_path, counted) as application:
        application.log.write("in", [("a", 1, 10)])
        caught_up(application.streams)
        application.streams.close()
        page = application.key("counts", "a")
        assert (page.status, page.json["code"]) == (503, "unreachable")
        assert page.headers["retry-after"] == "1"
        assert "stores cannot be read through this client any more" in page.json["error"]


def test_what_a_serde_cannot_read_is_not_worth_another_try(tmp_path):
    broken = threading.Event()

    def read(data: bytes) -> int:
        if broken.is_set():
            raise ValueError("no number")
        return int(data)

    def latest(app):
        app.table("in", key=str, value=Serde.of(lambda value: b"%d" % value, read), name="latest")

    with asked(tmp_path, latest) as application:
        application.log.write("in", [("a", 2, 5)], value=Serde.of(lambda value: b"%d" % value, int))
        caught_up(application.streams)
        broken.set()
        for freshness in ("latest", "committed"):
            page = application.key("latest", "a", f"?freshness={freshness}")
            assert (page.status, page.json["code"]) == (500, "failed")
            assert "no number" in page.json["why"]
            assert "retry-after" not in page.headers


def test_json_is_what_pages_are(counts):
    assert json.loads(counts.get("/stores").text)["stores"]
    assert counts.get("/stores").headers["content-type"] == "application/json"
