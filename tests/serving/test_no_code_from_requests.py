"""No request makes a serde of the application read the bytes that it brings: whoever may read stores cannot run code by
a pickle. Keys are asked for in JSON all the same, and pages go on."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path

import faust
import pytest

from pystreams import App, Serde
from pystreams.serde import FaustSerde
from pystreams.serde.base import AnySerde
from pystreams.serving.stores.questions import EntryPlace, cursor_of
from tests.live.support import caught_up
from tests.serving.queries_kit import Asked, asked

#: Faust warns of its pickles.
pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore:The pickle codec")]

COUNT = 5


class Flight(faust.Record):
    number: int


class Trap:
    """Whoever unpickles it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.write_text, (self.path, "unpickled")


SERDES: dict[str, AnySerde] = {
    "Faust's pickles": FaustSerde(Flight, "pickle"),
    "functions": Serde.of(pickle.dumps, pickle.loads),
}


@pytest.fixture(params=SERDES)
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asked]:
    serde = SERDES[request.param]

    def latest(app: App) -> None:
        app.table("in", key=serde, value=int, name="latest")

    keys = [
        Flight(number=number) if request.param == "Faust's pickles" else number for number in range(COUNT)
    ]
    with asked(tmp_path, latest) as application:
        application.log.write("in", [(key, number, 5) for number, key in enumerate(keys)], key=serde)
        caught_up(application.streams)
        yield application


def pickles(path: Path) -> list[bytes]:
    data = pickle.dumps(Trap(path))
    return [data, base64.b64encode(data)]


def test_a_key_of_a_request_is_not_unpickled(application: Asked, tmp_path: Path) -> None:
    written = tmp_path / "written"
    for data in pickles(written):
        encoded = base64.b64encode(data).decode()
        for text in (encoded, f'{{"base64":"{encoded}"}}'):
            page = application.key("latest", text)
            assert (page.status, page.json["code"]) == (400, "bad-query")
            assert application.get(f"/stores/latest/entries?from={text}").status == 400
    assert not written.exists()


def test_a_cursor_of_a_request_is_not_unpickled(application: Asked, tmp_path: Path) -> None:
    written = tmp_path / "written"
    for data in pickles(written):
        cursor = cursor_of(EntryPlace(data))
        assert application.get(f"/stores/latest/entries?cursor={cursor}").status == 200
        assert application.get(f"/stores/latest/keys/1?cursor={cursor}").status == 400
    assert not written.exists()


def test_pages_go_on_with_a_cursor_that_is_not_read(application: Asked) -> None:
    found = application.all("/stores/latest/entries?limit=2")
    assert sorted(entry["value"] for entry in found) == list(range(COUNT))


def test_a_key_with_a_json_form_is_found(application: Asked) -> None:
    found = application.all("/stores/latest/entries")
    for entry in found:
        text = str(entry["key"]).replace("'", '"')
        assert application.key("latest", text).json == entry
