"""What a program does with a session of Spark Connect. A process has either such sessions or those with a JVM, so the
checks have a process of their own, and share a session:

    python -m tests.backfill.spark.connect_client sc://HOST:PORT FOLDER

It prints as JSON what became of each check: null, or its traceback. An error that no check expects ends it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from pystreams import App
from pystreams.backfill.api import backfill
from pystreams.backfill.application import NamedApplication
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import DataFrameSource, EmbeddedSource, ParquetSource
from pystreams.backfill.spark.archive import SparkArchiver
from pystreams.backfill.spark.arrow import table_of
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from pystreams.errors import ConfigError, ProcessingError, StreamsError
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.live import append, create, left_on
from tests.backfill.programs import history, two_repartitions, word_count
from tests.backfill.typed_program import typed, typed_history
from tests.live.support import Log

Check = Callable[[SparkSession, Path], None]


def equal(session: SparkSession, folder: Path) -> None:
    source = memory(history("two repartitions", 7, partitions=3))
    inline = Backfill(two_repartitions(), source, folder / "inline", commit_records=16).run()
    executor = SparkExecutor(session)

    def again() -> Backfill:
        return Backfill(two_repartitions(), source, folder / "staging", executor=executor, commit_records=16)

    assert everything(again().run()) == everything(inline)
    staged = sorted(path.name for path in (folder / "staging").iterdir())
    # What is there is read, and not computed again.
    assert everything(again().run(resume=True)) == everything(inline)
    assert sorted(path.name for path in (folder / "staging").iterdir() if path.is_dir()) == [
        name for name in staged if name.startswith("slice-")
    ]


def tables(session: SparkSession, folder: Path) -> None:
    source = memory(typed_history())
    application = NamedApplication("tests.backfill.typed_program")
    result = Backfill(application, source, folder / "staging", executor=SparkExecutor(session)).run()
    inline = Backfill(typed(), source, folder / "inline").run()
    for store in ("revenue", "per-minute"):
        found: Any = table_of(result.table(store))
        expected: Any = inline.table(store)
        assert found.schema == expected.schema
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    # The tables are the user's session's, as are the views that are made of them.
    result.emitted("big-orders").createOrReplaceTempView("big_orders")
    count = session.sql("select count(*) as n from big_orders").collect()[0].n
    assert count == inline.emitted("big-orders").num_rows > 0


def frames(session: SparkSession, folder: Path) -> None:
    rows = [(f"line {number % 7} and {number % 3}", number) for number in range(60)]
    frame = session.createDataFrame(rows, "text string, at bigint")
    source = DataFrameSource(frame.repartition(3), value="text", timestamp="at")
    partitions = {"lines": 2, "word-counts": 2}
    from_rows = backfill(
        word_count(),
        sources={"lines": source},
        staging=folder / "staging",
        executor=SparkExecutor(session),
        partitions=partitions,
    )
    counted = {row["key"]: row["value"] for row in table_of(from_rows.table("counts")).to_pylist()}
    words = [word for text, _ in rows for word in text.split()]
    assert counted == {word: words.count(word) for word in words}


def handed_over(session: SparkSession, folder: Path) -> None:
    past = history("word count", 5, partitions=2)
    with closing(Log(folder / "log")) as log:
        create(log, past, ["word-counts"])
        append(log, past)
        source = EmbeddedSource(str(folder / "log" / "log.db"))
        result = Backfill(word_count(), source, folder / "staging", executor=SparkExecutor(session)).run()
        hand_over(result, log.broker)
        left = left_on(log, word_count(), [])
        changelog = {partition.partition: entries for partition, entries in left.changelogs.items()}
        assert changelog == result.changelog("counts")
        archive(source, ["lines"], str(folder / "archive"), archiver=SparkArchiver(session))
        partitions = list(source.ends([p for p in left.offsets if p.topic == "lines"]))
        assert ParquetSource(str(folder / "archive")).ends(partitions) == source.ends(partitions)


def a_failure(session: SparkSession, folder: Path) -> None:
    app = App("divides")
    app.stream("numbers", key=str, value=int).map_values(lambda number: 6 // number).to("out", value=int)
    past = memory({"numbers": [lines([("a", 1, 1), ("b", 0, 2)])]})
    with pytest.raises(ProcessingError) as inline:
        Backfill(app, past, folder / "inline").run()
    with pytest.raises(ProcessingError) as on_spark:
        Backfill(app, past, folder / "staging", executor=SparkExecutor(session)).run()
    assert str(on_spark.value) == str(inline.value)
    assert "ZeroDivisionError" in str(on_spark.value.__cause__)


def other_places(session: SparkSession, folder: Path) -> None:
    executor = SparkExecutor(session)
    with pytest.raises(ConfigError, match="cannot be staged at s3a://key:\\*\\*\\*@bucket/staging"):
        executor.staging("s3a://key:secret@bucket/staging")
    past = memory(history("word count", 5, partitions=2))
    # A path by which each process finds another folder.
    with pytest.raises(ConfigError, match="does not see the staging folder"):
        Backfill(word_count(), past, "/proc/self/cwd/unshared", executor=executor).run()
    assert list((Path.cwd() / "unshared").iterdir()) == [], "nothing was begun"


CHECKS: Final[dict[str, Check]] = {
    one.__name__: one for one in (equal, tables, frames, handed_over, a_failure, other_places)
}


def _outcome(check: Check, session: SparkSession, folder: Path) -> str | None:
    folder.mkdir()
    try:
        check(session, folder)
    except (AssertionError, StreamsError, pytest.fail.Exception):
        return traceback.format_exc()
    return None


def main() -> None:
    url, folder = sys.argv[1:]
    with spark_session(url, app_name="checks") as session:
        outcomes = {name: _outcome(check, session, Path(folder, name)) for name, check in CHECKS.items()}
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
