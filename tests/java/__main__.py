"""Makes the archives of Java's classes, unless they are there, as ``make test`` does; without them it takes longer.

python -m tests.java
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.java import KAFKA, QUICK, SPARK, quick_maven
from tests.kafka.server import KafkaServer, KafkaServerError, why_not

#: A session that does what tests do: a query, an aggregation, a function in Python, and tables of Parquet.
_SESSION: Final = """
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
numbers = session.range(10).selectExpr("id % 2 AS key", "id")
numbers.groupBy("key").sum("id").collect()
numbers.mapInArrow(lambda batches: batches, numbers.schema).write.parquet("numbers")
session.read.parquet("numbers").count()
session.stop()
"""


def main() -> None:
    if why_not() is not None or (SPARK.is_file() and KAFKA.is_file()):
        return
    quick_maven()
    print("Archiving the classes of Spark and Kafka, which is needed once ...", flush=True)
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(_make, _spark, SPARK), pool.submit(_make, _kafka, KAFKA)]:
            made.result()


def _make(make: Callable[[Path], None], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        archive = Path(folder) / target.name
        try:
            make(archive)
            archive.rename(target)
        except (OSError, subprocess.SubprocessError, KafkaServerError) as error:
            print(f"Java starts without {target.name}, and so more slowly: {error}", flush=True)


def _at_exit(archive: Path) -> tuple[str, ...]:
    return (*QUICK, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable")


def _spark(archive: Path) -> None:
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": " ".join(_at_exit(archive)),
    }
    # Java, which ends after Python, holds the pipe open until the archive is written.
    subprocess.run(
        [sys.executable, "-c", _SESSION],
        cwd=archive.parent,
        env=os.environ | settings,
        check=True,
        capture_output=True,
        timeout=300,
    )


def _kafka(archive: Path) -> None:
    server = KafkaServer(archive.parent / "data", jvm_options=_at_exit(archive))
    server.start()
    server.stop()


if __name__ == "__main__":
    main()
