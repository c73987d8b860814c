"""Errors of queries, snapshots, hand-overs and archives are read as their users see them, too: the whole message.

The texts stand in ``whole_messages_of_stores/``. A command shows some of them, HTTP others, and programs the rest.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from pystreams import App, errors
from pystreams.backfill.sources.lake.delta import files_of
from pystreams.backfill.sources.lake.source import MarkedAsDeletedError
from pystreams.clock import SystemClock
from pystreams.serde import Serde
from pystreams.serving.stores.arrow import ARROW
from pystreams.state.snapshots.manifest import Manifest, OtherFormatError
from pystreams.take_over.hand_over_record import UnderWayError, read_record
from pystreams.topics.committed_batches import SilentPartitionError
from tests.cli.message_kit import kinds_of_errors, normalized, raised
from tests.live.support import caught_up
from tests.serving.queries_kit import Asked, asked

pytestmark = pytest.mark.live

TEXTS = Path(__file__).parent / "whole_messages_of_stores"
#: Only classes that derive from them are raised.
ROOTS = {"StreamsError", "QueryError"}


class Numbers:
    """A format that cannot be read any more once it is broken."""

    broken = False

    def read(self, data: bytes) -> int:
        if self.broken:
            raise ValueError("no number")
        return int(data)


class Visitor:
    """A user who asks an application for its stores: with a command, and over HTTP."""

    def __init__(
        self, application: Asked, numbers: Numbers, command: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.application = application
        self.numbers = numbers
        self.monkeypatch = monkeypatch
        self._command = command

    def get(self, store: str, key: str, *arguments: str, url: str | None = None) -> str:
        """What the command says that fails."""
        url = url or f"http://{self.application.server.address}"
        ended = self._command("get", "apps.counts", store, key, "--url", url, *arguments)
        assert ended.code, ended
        assert "Traceback" not in ended.err
        return str(ended.err[ended.err.index("Error: ") :])

    def page(self, path: str, **headers: str) -> str:
        """What HTTP answers, with its status."""
        page = self.application.get(path, **headers)
        assert page.status >= 400
        return f"{page.status} {json.dumps(page.json, indent=2)}\n"


def stores(app: App, numbers: Numbers) -> None:
    stream = app.stream("in", key=str, value=int)
    stream.group_by_key().count(name="counts")
    loose = stream.map_values(lambda value: {"field": value or "none"}, value=dict[str, Any])
    loose.to_table(name="loose")
    written = Serde.of(lambda value: b"%d" % value, numbers.read)
    stream.map_values(lambda value: value, value=written).to_table(name="numbers")


@pytest.fixture
def visitor(tmp_path: Path, pystreams: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    numbers = Numbers()
    with asked(tmp_path, lambda app: stores(app, numbers)) as application:
        application.log.write("in", [("k0", 0, 0), ("k1", 1, 1)])
        caught_up(application.streams)
        yield Visitor(application, numbers, pystreams, monkeypatch)


def nobody_listens(visitor: Visitor) -> str:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    return visitor.get("counts", "k1", url=f"http://127.0.0.1:{port}")


def the_client_is_closed(visitor: Visitor) -> str:
    visitor.application.streams.close()
    return visitor.page("/stores/counts/keys/k1")


def the_format_is_broken(visitor: Visitor) -> str:
    visitor.numbers.broken = True
    return visitor.get("numbers", "k1")


def no_time_is_left(visitor: Visitor) -> str:
    visitor.monkeypatch.setattr("pystreams.serving.stores.asking.QUERY_S", 0)
    return visitor.page("/stores/counts/keys/k1")


def another_format(_: Visitor) -> str:
    sealed = b'{"format":7,"digest":"","snapshot":{}}'
    return raised(OtherFormatError, lambda: Manifest.from_bytes(sealed, "s3://snapshots/shop/0_1"))


def a_hand_over_is_under_way(visitor: Visitor) -> str:
    silent = Mock(side_effect=SilentPartitionError(3, 4))
    visitor.monkeypatch.setattr("pystreams.take_over.hand_over_record.last_value", silent)
    broker = Mock(description="Kafka at shop-kafka:9092")
    return raised(UnderWayError, lambda: read_record(broker, Mock(), "shop", SystemClock()))


def rows_are_marked_as_deleted(_: Visitor) -> str:
    """By somebody else, in an archive that is a table of Delta."""
    table = Mock(deletion_vectors=lambda: pa.table({"file": ["a.parquet"]}))
    return raised(MarkedAsDeletedError, lambda: files_of(table, "/archive"))


MAKERS: dict[str, Callable[[Visitor], str]] = {
    "AbsentError": lambda visitor: visitor.page("/stores/counts/keys/nobody"),
    "AnswerError": nobody_listens,
    "BadQueryError": lambda visitor: visitor.get("counts", "k1", "--as-of", "2024-01-01"),
    "FailedError": the_format_is_broken,
    "MarkedAsDeletedError": rows_are_marked_as_deleted,
    "NotAcceptableError": lambda visitor: visitor.page("/stores/loose/entries", accept=ARROW),
    "NothingThereError": lambda visitor: visitor.get("counts", "nobody"),
    "OtherFormatError": another_format,
    "TooSlowError": no_time_is_left,
    "UnderWayError": a_hand_over_is_under_way,
    "UnknownStoreError": lambda visitor: visitor.get("count", "k1"),
    "UnreachableError": the_client_is_closed,
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_whole_message(name: str, visitor: Visitor, tmp_path: Path) -> None:
    told = normalized(MAKERS[name](visitor), folder=tmp_path, test=Path(__file__))
    assert told == (TEXTS / f"{name}.txt").read_text(encoding="utf-8")


def test_every_kind_of_error_that_is_not_for_all_has_its_text() -> None:
    assert MAKERS.keys() == kinds_of_errors() - ROOTS - set(vars(errors))
    assert {path.stem for path in TEXTS.iterdir()} == MAKERS.keys()
