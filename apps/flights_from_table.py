"""The flights of 2013 from a table that knows no offsets: January to October from there, the rest from the log, live.

    flights in Parquet, Iceberg or Delta ── pystreams backfill ──┐ state, offsets, results
    the log (keeps all since 31 October) ─── pystreams run ◄─────┘ goes on at the boundary

Beside it the same application runs over the whole year, live, on a log of its own. At the end both have the same result
for each airline and day. The order of the updates may differ: the table does not know which of two flights of the same
hour came first. `make table-demo` runs it with Parquet, which needs no Spark. For Iceberg and Delta, Spark needs their
package:

    python -m apps.flights_from_table --table iceberg --conf spark.jars.packages=PACKAGE
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from apps.flights import FLIGHTS, MEAN_DELAYS, Flight
from apps.flights_backfill import CUT, Home, Result, fill, make_empty, results, run_command, say, truncate
from apps.flights_feed import data_folder, read_flights
from pystreams import open_log
from pystreams.backfill import spark_session
from pystreams.times import read_time

#: The log has the flights from this day on. It reaches back before the boundary, so that none is missing there.
KEPT = "2013-10-31"


class Format(StrEnum):
    """The formats of the table."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"
    DELTA = "delta"


def main(
    folder: Annotated[Path, typer.Option(help="The folder for all files of the demo.")] = Path(
        ".pystreams/table-demo"
    ),
    table: Annotated[Format, typer.Option(help="The format of the table.")] = Format.PARQUET,
    master: Annotated[str, typer.Option(help="Where the backfill runs.")] = "auto",
    conf: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark.")] = None,
) -> None:
    """Backfill ten months of flights from a table, go on live, and compare with a year that was live throughout."""
    began = perf_counter()
    make_empty(folder)
    live, handed = Home(folder / "live"), Home(folder / "handed-over")
    spark = settings(table, folder, conf or [])
    place = place_of(table, folder)
    say("1. The whole year, live from the beginning: the reference")
    fill(live)
    live.run()
    say(f"2. January to October as a table without offsets: {table} {place}")
    print(f"{write_table(table, place, spark, master):,} flights written.")
    say(f"3. The same flights in another log, which has deleted what is older than {KEPT}")
    fill(handed)
    print(f"{truncate(handed.log, KEPT):,} flights are only in the table now.")
    say("4. The table up to the boundary, and the log behind it, handed over to the application on that log")
    run_command(
        *("backfill", "apps.flights", "--source", f"{FLIGHTS}={table}:{place}?key=carrier&timestamp=at"),
        *("--boundary", CUT, "--emit", "topic", "--hand-over", "embedded"),
        *("--staging", str(folder / "staging"), "--master", master, *handed.at),
        *(word for name, value in spark.items() for word in ("--conf", f"{name}={value}")),
    )
    say("5. The application goes on, live")
    handed.run()
    say("6. Compare the last result of each airline and day")
    seconds = perf_counter() - began
    if not compare(live.log, handed.log):
        sys.exit(1)
    print(f"Done in {seconds:.0f} s. Everything is in {folder}: look around.")


def place_of(table: Format, folder: Path) -> str:
    """The table's name, or its folder."""
    return "demo.shop.flights" if table is Format.ICEBERG else str(folder / "flights")


def settings(table: Format, folder: Path, given: Sequence[str]) -> Mapping[str, str]:
    """Spark's settings for the format, and those that were given."""
    own: Mapping[Format, Mapping[str, str]] = {
        Format.ICEBERG: {
            "spark.sql.catalog.demo": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.demo.type": "hadoop",
            "spark.sql.catalog.demo.warehouse": str((folder / "warehouse").absolute()),
        },
        Format.DELTA: {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    }
    return {**own.get(table, {}), **dict(map(_pair, given))}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"--conf {text} is not a pair: NAME=VALUE")
    return name, value


def write_table(table: Format, place: str, spark: Mapping[str, str], master: str) -> int:
    """Write the flights before the cut, as a job that knows no Kafka would: a row each, without offsets. Returns their
    number. Exits if Spark cannot write them."""
    cut_ms = read_time(CUT)
    flights = [one for one in read_flights(data_folder()) if one[2] < cut_ms]
    columns = {
        "carrier": [carrier for carrier, _, _ in flights],
        "at": pa.array([time_ms for _, _, time_ms in flights], pa.timestamp("ms", "UTC")),
        **{name: [getattr(flight, name) for _, flight, _ in flights] for name in _fields()},
    }
    rows = pa.table(columns)
    if table is Format.PARQUET:
        Path(place).mkdir()
        pq.write_table(rows, Path(place) / "flights.parquet")
    else:
        try:
            on = "local[*]" if master == "auto" else master
            with spark_session(on, app_name="flights as a table", conf=spark) as session:
                session.createDataFrame(rows).write.format(table).save(place)
        except (PySparkException, Py4JJavaError) as error:
            sys.exit(
                f"Spark cannot write a table of {table}: {str(error).splitlines()[0]}\n"
                "Its package must be made for this version of Spark: --conf spark.jars.packages=PACKAGE"
            )
    return len(flights)


def _fields() -> list[str]:
    return [field.name for field in msgspec.structs.fields(Flight)]


def compare(one: Path, other: Path) -> bool:
    """Print whether the last results on two logs are the same."""
    left, right = last_results(one), last_results(other)
    for key in {**left, **right}:
        if left.get(key) != right.get(key):
            print(f"Different for {key!r}:")
            print(f"  live from the beginning: {left.get(key)}")
            print(f"  handed over:             {right.get(key)}")
            return False
    if not left:
        print(f"Nothing to compare: {MEAN_DELAYS} has no results.")
        return False
    print(f"The same: {len(left):,} results, byte for byte.")
    return True


def last_results(log: Path) -> dict[bytes | None, Result]:
    """The last record of each key of the results' topic."""
    with open_log(log) as opened:
        partitions = range(opened.describe_topic(MEAN_DELAYS).partitions)
        return {record.key: record for partition in partitions for record in results(opened, partition)}


if __name__ == "__main__":
    typer.run(main)
