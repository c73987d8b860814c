"""The jobs in Spark SQL, without Python at work: what a second code base for history would be, as fast as Spark goes.

python -m tests.benchmarks.backfill.native_sql wordcount ARCHIVE OUTPUT MASTER
"""

from __future__ import annotations

import sys

from pystreams.backfill import spark_session
from tests.benchmarks.backfill.plain_loop import WINDOW_MS
from tests.benchmarks.backfill.timing import told

QUERIES = {
    "wordcount": """
        SELECT encode(word, 'UTF-8') AS key, count(*) AS value
        FROM (SELECT explode(split(decode(value, 'UTF-8'), ' ')) AS word FROM records)
        GROUP BY word
    """,
    "windows": f"""
        SELECT concat(key, unhex(lpad(hex(start), 16, '0'))) AS key, value
        FROM (
            SELECT key, timestamp - timestamp % {WINDOW_MS} AS start,
                   sum(cast(conv(hex(value), 16, 10) AS bigint)) AS value
            FROM records GROUP BY key, start
        )
    """,
}
QUERIES["declared"] = QUERIES["windows"]


def main() -> None:
    """Run one job, and tell how long that took without the start of Spark."""
    job, archive, output, master = sys.argv[1:]
    with spark_session(master, app_name="bench-native-sql", conf={"spark.driver.memory": "2g"}) as spark:
        spark.read.parquet(archive).createOrReplaceTempView("records")
        with told():
            spark.sql(QUERIES[job]).write.parquet(output)


if __name__ == "__main__":
    main()
