"""Tables that are read without Spark: Parquet files, whose columns have the types that Spark gives them, and frames in
memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.app import App
from pystreams.backfill import DataFrameSource, backfill, plan_backfill
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.sources.frames import sorted_runs
from pystreams.backfill.sources.frames.arrow_tables import in_memory, open_table
from pystreams.backfill.sources.frames.encoding import ENCODED_SCHEMA
from pystreams.backfill.workers.processes import ProcessExecutor
from pystreams.errors import ConfigError, StateError
from tests.backfill.kit import everything

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


def forwarding() -> App:
    app = App("forwarding", statestore_cache_max_bytes=0)
    events = app.stream("events", key=str, value=dict)
    events.to("out")
    events.group_by_key().count(name="of")
    return app


def result_of(frame: Any, staging: Path, **columns: Any) -> Any:
    columns = {"key": "who", "timestamp": "at", "partitions": 2, **columns}
    executor = columns.pop("executor", None)
    return backfill(
        forwarding(),
        sources={"events": DataFrameSource(frame, **columns)},
        staging=staging,
        executor=executor,
        partitions={"out": 2},
    )


def values_of(frame: Any, tmp_path: Path, **columns: Any) -> list[dict[str, Any]]:
    """What the topic's values are, in any order."""
    emitted = result_of(frame, tmp_path / "staging", **columns).emitted("out")
    return [json.loads(value) for value in emitted.column("value").to_pylist()]


def parquet(folder: Path, **files: pa.Table) -> SparkTable:
    """A folder of files, by their names."""
    for name, table in files.items():
        file = folder / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
    return SparkTable("parquet", str(folder))


def rows(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values()), ["ann"]))
    return pa.table({"who": ["ann"] * size, "at": pa.array([AT] * size), **columns})


# Types


def test_moments_of_every_unit_are_the_same_moment(tmp_path: Path) -> None:
    moments = [
        pa.array([AT], pa.timestamp(unit, tz=zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "Asia/Tokyo")
    ]
    table = rows(**{f"m{number}": moment for number, moment in enumerate(moments)})
    assert {str(field.type) for field in in_memory(table).schema if field.name != "who"} == {
        "timestamp[us, tz=UTC]"
    }
    [value] = values_of(table, tmp_path)
    assert {text for name, text in value.items() if name != "who"} == {"2026-11-01T12:00:00Z"}


def test_the_oldest_type_of_moments_is_in_utc(tmp_path: Path) -> None:
    nested = pa.array([{"a": 1, "b": AT.replace(tzinfo=None)}])
    folder = tmp_path / "table"
    folder.mkdir()
    pq.write_table(rows(nested=nested), folder / "a.parquet", use_deprecated_int96_timestamps=True)
    table = open_table(SparkTable("parquet", str(folder)))
    assert str(table.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert table.schema.field("nested").type == pa.struct(
        [("a", pa.int64()), ("b", pa.timestamp("us", tz="UTC"))]
    )
    [value] = values_of(SparkTable("parquet", str(folder)), tmp_path)
    assert value["nested"]["b"] == value["at"] == "2026-11-01T12:00:00Z"


def test_categories_are_their_values(tmp_path: Path) -> None:
    table = rows(kind=pa.array(["x", "y"]).dictionary_encode())
    assert [one["kind"] for one in values_of(table, tmp_path)] == ["x", "y"]
    assert [one["kind"] for one in values_of(parquet(tmp_path / "t", a=table), tmp_path / "f")] == ["x", "y"]


def test_names_of_folders_are_columns(tmp_path: Path) -> None:
    table = parquet(
        tmp_path / "t",
        **{
            "day=2026-11-01/n=7/share=1.5/name=a%20b/a": rows(),
            "day=__HIVE_DEFAULT_PARTITION__/n=8/share=2/name=7/b": rows(),
        },
    )
    schema = open_table(table).schema
    assert [str(schema.field(name).type) for name in ("day", "n", "share", "name")] == [
        "date32[day]",
        "int32",
        "double",
        "string",
    ]
    found = values_of(table, tmp_path)
    chosen = [{name: one[name] for name in ("day", "n", "share", "name")} for one in found]
    assert sorted(chosen, key=lambda one: one["n"]) == [
        {"day": "2026-11-01", "n": 7, "share": 1.5, "name": "a b"},
        {"day": None, "n": 8, "share": 2.0, "name": "7"},
    ]


def test_a_column_that_a_file_lacks_is_null_there(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", a=rows(n=pa.array([1], pa.int32())), b=rows(), c=rows(n=[1 << 40]))
    assert open_table(table).schema.field("n").type == pa.int64()
    numbers = [one["n"] for one in values_of(table, tmp_path)]
    assert sorted(numbers, key=str) == [1, 1 << 40, None]


def test_a_frame_of_pandas_is_a_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["ann", "bob", "cid"], "at": pd.to_datetime([AT] * 3), "n": [1, 2, 3]})
    chosen = frame[frame.n > 1]
    found = sorted(values_of(chosen, tmp_path), key=lambda one: one["n"])
    assert found == [
        {"who": "bob", "at": "2026-11-01T12:00:00Z", "n": 2},
        {"who": "cid", "at": "2026-11-01T12:00:00Z", "n": 3},
    ]


def test_a_table_of_views_is_one_like_others(tmp_path: Path) -> None:
    """Polars gives text as views."""
    table = rows(text=pa.array(["long enough not to be inlined"], pa.string_view()))
    assert values_of(table, tmp_path)[0]["text"] == "long enough not to be inlined"


# Executors


def test_worker_processes_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    table = pa.table(
        {
            "who": [chance.choice("abcdefg") for _ in range(5_000)],
            "at": pa.array([1_700_000_000_000 + chance.randrange(50) for _ in range(5_000)], pa.int64()),
            "n": [chance.randrange(3) for _ in range(5_000)],
        }
    )
    # Many pieces, and many runs in each.
    monkeypatch.setattr("pystreams.backfill.sources.frames.arrow_tables._PIECE_BYTES", 2_000)
    files = tmp_path / "t"
    files.mkdir()
    pq.write_table(table.slice(0, 3_000), files / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(3_000), files / "b.parquet")
    source = SparkTable("parquet", str(files))
    by_processes = result_of(source, tmp_path / "processes", executor=ProcessExecutor(processes=2))
    inline = result_of(table, tmp_path / "inline", executor=InlineExecutor())
    assert everything(by_processes) == everything(inline)
    assert not list(tmp_path.glob("*/*/tables"))


def test_time_ends_history(tmp_path: Path) -> None:
    times = [5, 1, 3, 9, 7, 3]
    table = pa.table({"who": ["ann"] * 6, "at": pa.array(times, pa.int64()), "n": range(6)})
    planned = plan_backfill(
        forwarding(),
        sources={"events": DataFrameSource(table, key="who", timestamp="at", partitions=1)},
        partitions={"out": 1},
        until=5,
    )
    assert [one.end for one in planned.manifest.inputs] == [3]


# What is refused


def refused(make: Callable[[], Any], error: type[Exception] = ConfigError) -> str:
    with pytest.raises(error) as raised:
        make()
    return str(raised.value)


def test_a_folder_of_delta_lake_is_not_read_as_plain_files(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", a=rows())
    (tmp_path / "t" / "_delta_log").mkdir()
    told = refused(lambda: open_table(table))
    assert "is a table of Delta Lake" in told
    assert f"delta:{tmp_path / 't'}" in told


def test_files_of_different_types_are_refused(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", a=rows(n=["text"]), b=rows(n=[1]))
    told = refused(lambda: open_table(table).schema)
    assert "the files of a table have columns of different types" in told
    assert "b.parquet" in told


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t", a=rows())
    (tmp_path / "t" / "notes.txt").write_text("nothing of Parquet")
    assert "notes.txt" in refused(lambda: open_table(table))
    (tmp_path / "t" / "notes.txt").rename(tmp_path / "t" / "_notes.txt")
    assert len(open_table(table).pieces()) == 1


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    assert "has no file" in refused(lambda: open_table(SparkTable("parquet", str(tmp_path / "t"))))
    assert "there is no folder" in refused(lambda: open_table(SparkTable("parquet", str(tmp_path / "u"))))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    table = open_table(parquet(tmp_path / "t", a=rows()))
    (tmp_path / "t" / "a.parquet").unlink()
    told = refused(lambda: list(table.pieces()[0].batches(["who"])), StateError)
    assert "a file of the table cannot be read" in told
    assert "a.parquet" in told


@pytest.mark.parametrize(
    "frame",
    [SparkTable("delta", "/t"), SparkTable("parquet", "/t/*"), SparkTable("parquet", "/t", {"a": "b"})],
)
def test_what_only_spark_can_read_needs_it(frame: SparkTable) -> None:
    assert DataFrameSource(frame, timestamp="at").needs_spark
    assert not DataFrameSource(SparkTable("parquet", "/t"), timestamp="at").needs_spark


# Order

maybe = st.none() | st.binary(max_size=2)
encoded = st.tuples(st.none() | st.integers(0, 3), st.integers(0, 4), maybe, maybe)


@given(st.lists(st.lists(encoded, min_size=1, max_size=12), max_size=4), st.integers(1, 5))
def test_runs_are_merged_in_the_order_that_is_promised(
    tmp_path_factory: pytest.TempPathFactory, given_runs: list[list[Any]], batch: int
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorted_runs, "BATCH_ROWS", batch)
        runs = [
            sorted_runs.write_run(
                folder / f"{number}.arrow",
                [
                    pa.RecordBatch.from_pylist(
                        [
                            {"partition": at % 2, "offset": o, "timestamp": t, "key": k, "value": v}
                            for at, (o, t, k, v) in enumerate(one)
                        ],
                        ENCODED_SCHEMA,
                    )
                ],
                sorted_runs.BY_CONTENT,
            )
            for number, one in enumerate(given_runs)
        ]

    def place(row: tuple[Any, ...]) -> Any:
        offset, timestamp, key, value = row
        return [(one is not None, one) for one in (timestamp, offset, key, value)]

    for partition in range(2):
        found = [
            tuple(row[name] for name in ("offset", "timestamp", "key", "value"))
            for rows in sorted_runs.merged(runs, partition, sorted_runs.BY_CONTENT)
            for row in rows.to_pylist()
        ]
        wanted = [row for one in given_runs for at, row in enumerate(one) if at % 2 == partition]
        assert found == sorted(wanted, key=place)


def test_dates_are_timestamps_too(tmp_path: Path) -> None:
    table = pa.table({"who": ["ann"], "at": [date(2026, 11, 1)]})
    emitted = result_of(table, tmp_path / "staging").emitted("out")
    assert emitted.column("timestamp").to_pylist() == [datetime(2026, 11, 1, tzinfo=UTC)]
