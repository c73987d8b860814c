"""The store of a side of a join keeps every record, and logs it with its headers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.record import ContextCell, Headers
from pystreams.serde import STR
from pystreams.state.formats import SEQUENCE_MAX, split_window_key
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.join_window import JoinWindowStore
from pystreams.state.task_stores import TaskStores

Change = tuple[bytes, bytes | None, int | None, Headers]


class Side:
    """An open store, with what it has logged."""

    def __init__(self, directory: Path, *, persistent: bool) -> None:
        spec = StoreSpec(
            "side",
            "join_window",
            STR,
            STR,
            persistent=persistent,
            window_size_ms=20,
            retention_ms=30,
            retain_duplicates=True,
        )
        self.cell = ContextCell()
        self.logged: list[Change] = []
        self.state = TaskStores.open(
            directory,
            [spec],
            cell=self.cell,
            log_of=lambda _: lambda *change: self.logged.append(change),
        )
        self.store: JoinWindowStore[Any, Any] = self.state.stores["side"]  # type: ignore[assignment]

    def put(self, key: str, value: str | None, timestamp: int, headers: Headers = ()) -> None:
        self.cell.record = ("in", 0, 0, timestamp, headers)
        self.store.write(key.encode(), timestamp, value)

    def between(self, key: str, time_from: int, time_to: int) -> list[tuple[int, str]]:
        return list(self.store.between(key.encode(), time_from, time_to))


@pytest.fixture(params=[True, False], ids=["on disk", "in memory"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    side = Side(tmp_path / "0_0", persistent=request.param)
    yield side
    side.state.close()


def test_records_of_one_key_and_time_are_all_there_in_their_order(side: Side) -> None:
    for value in ("1", "2", "3"):
        side.put("a", value, 10)
    side.put("b", "4", 10)
    side.put("a", "5", 9)
    assert side.between("a", 0, 20) == [(9, "5"), (10, "1"), (10, "2"), (10, "3")]
    assert side.between("a", 10, 10) == [(10, "1"), (10, "2"), (10, "3")]


def test_the_changelog_has_the_records_headers_and_a_number_for_each(side: Side) -> None:
    side.put("a", "1", 10, (("h", b"x"),))
    side.put("a", None, 11, (("g", None),))
    assert side.logged == [
        (b"a" + bytes.fromhex("000000000000000a 00000001"), b"1", 10, (("h", b"x"),)),
        (b"a" + bytes.fromhex("000000000000000b 00000002"), None, 11, (("g", None),)),
    ]


def test_what_is_older_than_the_retention_is_not_found(side: Side) -> None:
    side.put("a", "old", 10)
    side.put("a", "new", 40)
    assert side.between("a", 0, 100) == [(40, "new")]


def test_it_goes_on_counting_where_it_is_set_to(side: Side) -> None:
    side.store.go_on(SEQUENCE_MAX, 50)
    side.put("a", "1", 60)
    side.put("a", "2", 60)
    assert [split_window_key(change[0])[2] for change in side.logged] == [0, 1]
    side.store.go_on(7, 0)
    assert (side.store.sequence, side.store.stream_time) == (7, 60)
