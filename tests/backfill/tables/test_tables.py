"""Topics and stores as tables: the same rows from the changelog, the state directory and a snapshot, with types."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pystreams import App, SessionWindows
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.columns.named_types import decoded, type_of
from pystreams.backfill.snapshot import write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.backfill.tables.options import table_of
from pystreams.backfill.tables.table import Table
from pystreams.errors import ConfigError, SerializationError, StateError, TopicError
from pystreams.ids import TopicPartition
from pystreams.serde import BOOL, FLOAT, FLOAT32, INT, INT16, INT32, STR, UUID
from pystreams.state.disk.directory import DirectoryLock
from tests.backfill.kit import Backfill, lines
from tests.backfill.live import append, create
from tests.backfill.programs import PROGRAMS, history
from tests.backfill.sources.files_kit import Rows, as_parquet, in_memory
from tests.backfill.typed_program import typed, typed_history
from tests.live.support import Line, Log, run_to_the_end

NewLog = Callable[[str], Log]

#: What the options name: the programs as they run here.
APPLICATION = "tests.backfill.tables.test_tables:{}"


def rows_of(table: Table, tmp_path: Path) -> list[dict[str, Any]]:
    """All rows, in the schema that the table tells."""
    found = [batch for part in table.parts() for batch in table.read(part, str(tmp_path))]
    assert all(batch.schema == table.schema for batch in found)
    return pa.Table.from_batches(found, table.schema).to_pylist()


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["partition"], row["key_bytes"], str(row.get("window_start"))))


def settings(log: Log) -> dict[str, Any]:
    return {
        "statestore_cache_max_bytes": 0,
        "state_dir": log.path / "state",
        "window_changelog_retention_ms": -1,
    }


words = PROGRAMS["word count"]()
sums = PROGRAMS["windowed sum"]()
words_with_headers = PROGRAMS["word count"](dsl_store_format="headers")
sums_with_headers = PROGRAMS["windowed sum"](dsl_store_format="headers")
ticks = PROGRAMS["punctuated"]()
versions = PROGRAMS["joined versions"]()
globally = App("globally")
globally.global_table("names", key=str, value=str, name="rows")


@pytest.mark.live
@pytest.mark.parametrize(
    "program, name, store, outputs",
    [
        ("word count", "words", "counts", "word-counts"),
        ("windowed sum", "sums", "by-window", "sums"),
        ("word count", "words_with_headers", "counts", "word-counts"),
        ("windowed sum", "sums_with_headers", "by-window", "sums"),
        ("punctuated", "ticks", "totals", "totals"),
        ("joined versions", "versions", "names-by-time", "sums"),
    ],
)
def test_a_store_is_the_same_wherever_it_is_read(
    program: str, name: str, store: str, outputs: str, new_log: NewLog, tmp_path: Path
) -> None:
    log = new_log("log")
    past = history(program, 3, 2)
    create(log, past, [outputs])
    append(log, past)
    given = {**settings(log), "dsl_store_format": "headers" if name.endswith("headers") else "default"}
    app: App = PROGRAMS[program](**given)
    run_to_the_end(log, app)
    source = EmbeddedSource(str(log.path / "log.db"))
    result = Backfill(PROGRAMS[program](**given), source, tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    options = {"store": store, "application": APPLICATION.format(name)}
    changelog = by_key(rows_of(table_of({**options, "embedded_log": str(log.path / "log.db")}), tmp_path))
    state = by_key(rows_of(table_of({**options, "path": str(log.path / "state")}), tmp_path))
    snapshot = by_key(rows_of(table_of({**options, "path": str(tmp_path / "snapshot")}), tmp_path))
    assert len(changelog) > 3
    assert snapshot == changelog
    without_times = [{**row, "timestamp": None} for row in changelog]
    # A plain store does not keep the times of its entries.
    assert state == (without_times if program == "punctuated" else changelog)
    # Nothing is left behind, nothing was changed: it can be read again, and the application can go on.
    assert by_key(rows_of(table_of({**options, "path": str(log.path / "state")}), tmp_path)) == state
    assert list(tmp_path.glob("pystreams-table-*")) == []
    run_to_the_end(log, PROGRAMS[program](**given))
    # A snapshot knows its stores without the application, a changelog by name.
    known_by_application = ("key", "value", "window_end")
    raw = [{k: v for k, v in row.items() if k not in known_by_application} for row in changelog]
    assert by_key(rows_of(table_of({"store": store, "path": str(tmp_path / "snapshot")}), tmp_path)) == raw
    if program == "joined versions":
        # By name alone nobody knows that what came last need not be the latest version.
        return
    named = {"store": store, "application_id": app.name, "embedded_log": str(log.path / "log.db")}
    windowed = {"windowed": str(program == "windowed sum").lower()}
    assert {str(row) for row in raw} <= {
        str(row) for row in rows_of(table_of({**named, **windowed}), tmp_path)
    }


def in_sessions(**given: Any) -> App:
    app = App("visits", **given)
    visits = (
        app.stream("amounts", key=str, value=int).group_by_key().windowed_by(SessionWindows.of(10, grace=100))
    )
    visits.count(name="by-session")
    return app


visiting = in_sessions()


@pytest.mark.live
def test_a_store_of_sessions_has_their_times(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    past = {"amounts": [lines([("a", 1, 5), ("a", 1, 9), ("b", 1, 20), ("a", 1, 40)])]}
    create(log, past, [])
    append(log, past)
    run_to_the_end(log, in_sessions(**settings(log)))
    source = EmbeddedSource(str(log.path / "log.db"))
    result = Backfill(in_sessions(**settings(log)), source, tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    options = {"store": "by-session", "application": APPLICATION.format("visiting")}
    place = {"embedded_log": str(log.path / "log.db")}
    found = rows_of(table_of({**options, **place}), tmp_path)
    times = [
        (row["key"], row["session_start"].timestamp(), row["session_end"].timestamp(), row["value"])
        for row in found
    ]
    assert sorted(times) == [("a", 0.005, 0.009, 2), ("a", 0.04, 0.04, 1), ("b", 0.02, 0.02, 1)]
    snapshot = rows_of(table_of({**options, "path": str(tmp_path / "snapshot")}), tmp_path)
    state = rows_of(table_of({**options, "path": str(log.path / "state")}), tmp_path)
    assert sorted(map(str, snapshot)) == sorted(map(str, found))
    assert sorted(map(str, state)) == sorted(str({**row, "timestamp": None}) for row in found)
    named = {"store": "by-session", "application_id": "visits", "windowed": "session", **place}
    assert [row["session_end"] for row in rows_of(table_of(named), tmp_path)] == [
        row["session_end"] for row in found
    ]


@pytest.mark.live
def test_a_store_has_its_types(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    log.create("lines", "word-counts")
    append(log, {"lines": [lines([(None, "to be or not to be", 5), (None, "be", 2)], value=str)]})
    run_to_the_end(log, PROGRAMS["word count"](**settings(log)))
    place = {"embedded_log": str(log.path / "log.db")}
    table = table_of({"store": "counts", "application": APPLICATION.format("words"), **place})
    assert table.schema.names == ["key", "value", "timestamp", "partition", "key_bytes", "value_bytes"]
    found = {row["key"]: (row["value"], row["timestamp"].timestamp()) for row in rows_of(table, tmp_path)}
    assert found == {"to": (2, 0.005), "be": (3, 0.005), "or": (1, 0.005), "not": (1, 0.005)}
    typed = {"store": "counts", "application_id": "wc", "value_type": "int", **place}
    values = {row["key_bytes"]: row["value"] for row in rows_of(table_of(typed), tmp_path)}
    assert values == {b"to": 2, b"be": 3, b"or": 1, b"not": 1}
    assert "key" not in table_of(typed).schema.names
    wrong = {**typed, "value_type": "int16"}
    with pytest.raises(SerializationError, match="not int16") as raised:
        rows_of(table_of(wrong), tmp_path)
    assert "wc-counts-changelog-0" in raised.value.where


@pytest.mark.live
def test_a_live_store_has_the_columns_of_a_result(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    past = typed_history()
    create(log, past, ["big-orders", "counts-per-minute", "sessions", "chosen-0", "chosen-1"])
    append(log, past)
    run_to_the_end(log, typed(**settings(log)))
    place = str(log.path / "log.db")
    result = Backfill(typed(**settings(log)), EmbeddedSource(place), tmp_path / "staging").run()
    for store in ("revenue", "per-minute", "visits", "last-item", "declared", "own"):
        expected = result.table(store)
        options = {"store": store, "application": "tests.backfill.typed_program"}
        for where in ({"embedded_log": place}, {"path": str(log.path / "state")}):
            table = table_of({**options, **where})
            named = [*expected.schema.names, "key_bytes", "value_bytes"]
            assert table.schema.names == named
            assert all(
                table.schema.field(name) == expected.schema.field(name) for name in expected.schema.names
            )
            found = [{name: row[name] for name in expected.schema.names} for row in rows_of(table, tmp_path)]
            if store == "visits" and "path" in where:
                # A store of sessions does not keep the times of its entries.
                found = [{**row, "timestamp": row["session_end"]} for row in found]
            assert sorted(map(str, found)) == sorted(map(str, expected.to_pylist()))


@pytest.mark.live
def test_a_state_that_is_in_use_is_refused(
    new_log: NewLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pystreams.backfill.tables.state_table._LOCK_TIMEOUT_MS", 20)
    log = new_log("log")
    log.create("lines", "word-counts")
    log.write("lines", [(None, "a", 1)], value=str)
    run_to_the_end(log, PROGRAMS["word count"](**settings(log)))
    table = table_of(
        {"store": "counts", "application": APPLICATION.format("words"), "path": str(log.path / "state")}
    )
    [(_, directory)] = table.parts()
    lock = DirectoryLock(Path(directory))
    with pytest.raises(StateError, match="in use") as raised:
        rows_of(table, tmp_path)
    lock.release()
    assert "stop the application" in raised.value.hint
    assert len(rows_of(table, tmp_path)) == 1


def test_a_topic_is_a_table(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    log.create("in", partitions=2)
    append(
        log,
        {"in": [[Line(b"a", b'{"x": 1}', 1500, (("h", b"1"),)), Line(None, None, 7)], [Line(b"b", b"2", 3)]]},
    )
    options = {
        "topic": "in",
        "key_type": "str",
        "value_type": "json",
        "embedded_log": str(log.path / "log.db"),
    }
    found = rows_of(table_of(options), tmp_path)
    assert [(row["partition"], row["offset"], row["key"], row["value"]) for row in found] == [
        (0, 0, "a", '{"x": 1}'),
        (0, 1, None, None),
        (1, 0, "b", "2"),
    ]
    assert found[0]["timestamp"].timestamp() == 1.5
    assert (found[0]["key_bytes"], found[0]["headers"]) == (b"a", [{"name": "h", "value": b"1"}])
    archive(EmbeddedSource(str(log.path / "log.db")), ["in"], str(tmp_path / "archive"))
    archived = {"topic": "in", "key_type": "str", "value_type": "json", "path": str(tmp_path / "archive")}
    assert rows_of(table_of(archived), tmp_path) == found
    with pytest.raises(TopicError, match="no topic out"):
        rows_of(table_of({**options, "topic": "out"}), tmp_path)


def test_an_archive_with_a_hole_is_a_table_of_what_is_left(tmp_path: Path) -> None:
    partition, folder = TopicPartition("in", 0), str(tmp_path / "archive")
    for start, end in ((0, 4), (7, 9)):
        rows: Rows = {partition: [(offset, 5, None, b"v", ()) for offset in range(start, end)]}
        archive(in_memory(rows), ["in"], folder)
    found = rows_of(table_of({"topic": "in", "path": folder}), tmp_path)
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 7, 8]


def test_times_past_all_years_are_null(tmp_path: Path) -> None:
    last = 253_402_300_799_999
    times = [0, last, last + 1, (1 << 63) - 1]
    rows: Rows = {TopicPartition("in", 0): [(n, time, None, b"v", ()) for n, time in enumerate(times)]}
    as_parquet(rows, tmp_path / "files")
    found = rows_of(table_of({"topic": "in", "path": str(tmp_path / "files")}), tmp_path)
    assert [row["timestamp"] and row["timestamp"].year for row in found] == [1970, 9999, None, None]


@pytest.mark.parametrize(
    "name, serde, values",
    [
        ("str", STR, ["a", "é", ""]),
        ("int", INT, [0, -1, 1 << 62]),
        ("int32", INT32, [0, -1, 1 << 30]),
        ("int16", INT16, [0, -1, 300]),
        ("float", FLOAT, [0.0, -1.5, 1e300]),
        ("float32", FLOAT32, [0.0, -1.5, 2.5]),
        ("bool", BOOL, [True, False, True]),
        ("uuid", UUID, [uuid.UUID(int=n) for n in range(3)]),
    ],
)
def test_columns_are_what_serdes_wrote(name: str, serde: Any, values: list[Any]) -> None:
    data = [serde.serializer("t")(value) for value in values]
    expected = [str(value) for value in values] if name == "uuid" else values
    for given, found in (
        (data, expected),
        ([None, *data, None, data[0]], [None, *expected, None, expected[0]]),
        ([None], [None]),
        ([], []),
    ):
        column = decoded(pa.array(given, pa.binary()), name, "here")
        assert column.type == type_of(name)
        assert column.to_pylist() == found
    with pytest.raises(SerializationError, match=f"not {name}"):
        decoded(pa.array([data[0], b"\xff\xfe\xfd"], pa.binary()), name, "here")


def test_a_byte_that_is_no_bool_is_refused_as_its_serde_refuses_it() -> None:
    with pytest.raises(SerializationError, match="not bool") as raised:
        decoded(pa.array([b"\1", b"\2"], pa.binary()), "bool", "here")
    assert "neither 0 nor 1" in raised.value.why


@pytest.mark.parametrize(
    "options, told",
    [
        ({}, "one of the options topic and store"),
        ({"topic": "a", "store": "b"}, "one of the options topic and store"),
        ({"topic": "a"}, "give the place of the topic"),
        ({"topic": "a", "path": "x", "embedded_log": "y"}, "give the place of the topic, and only one"),
        (
            {"store": "a", "application_id": "x", "path": "y", "embedded_log": "z"},
            "give the place of the store, and only one",
        ),
        ({"topic": "a", "bootstrap_servers": ""}, "give the place of the topic, and only one"),
        ({"topic": "a", "path": "x", "value_typ": "int"}, "no option value_typ"),
        ({"topic": "a", "path": "x", "value_type": "long"}, "no type 'long'"),
        (
            {"topic": "a", "bootstrap_servers": "x:1", "isolation_level": "all"},
            "isolation_level cannot be 'all'",
        ),
        ({"store": "a", "embedded_log": "x"}, "do not name the application of store a"),
        ({"store": "a", "application_id": "x", "path": "y"}, "does not define the types of its stores"),
        ({"store": "a", "application_id": "x", "embedded_log": "y", "windowed": "yes"}, "windowed cannot be"),
        ({"store": "a", "application": "tests.backfill.tables.test_tables:words"}, "has no store a"),
        (
            {"store": "rows", "application": "tests.backfill.tables.test_tables:globally"},
            "option topic, names",
        ),
    ],
)
def test_options_that_cannot_be_are_reported(options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        table_of(options)


def test_a_folder_without_the_store_is_reported(tmp_path: Path) -> None:
    options = {"store": "counts", "application": APPLICATION.format("words"), "path": str(tmp_path)}
    with pytest.raises(StateError, match="no task keeps store counts here"):
        table_of(options).parts()


def test_secrets_of_options_are_not_shown() -> None:
    table = table_of(
        {
            "topic": "a",
            "bootstrap_servers": "x:1",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.password": "hush-hush",
        }
    )
    assert "hush-hush" not in repr(table)
