"""Iceberg and Delta, and the Spark for which they are made: 4.1, while the development environment has a newer one.

They come from Maven and PyPI and are kept in ``.pystreams/lake``: 500 MB. ``make test-lake`` fetches them and runs the
tests of this folder on that Spark.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from pystreams.backfill.sources import SparkTable
from tests.kafka.server import ROOT, fetch_jars

SPARK = "4.1.4"
FORMATS = ("iceberg", "delta")

_FETCHED = ROOT / ".pystreams" / "lake"
#: A folder that goes before the environment's own packages.
PACKAGES = _FETCHED / f"spark-{SPARK}"
JARS = _FETCHED / "jars"


def why_not() -> str | None:
    """What is missing for the tests in this process; None if nothing is."""
    if not pyspark.__version__.startswith("4.1."):
        return f"Iceberg and Delta are made for Spark 4.1, and this is {pyspark.__version__}: make test-lake"
    return None if JARS.is_dir() else "Iceberg and Delta have not been fetched: make test-lake"


def fetch() -> None:
    """Fetch what is missing. Raises ``KafkaServerError`` if Maven cannot, ``CalledProcessError`` if pip cannot."""
    fetch_jars(Path(__file__).with_name("pom.xml"), JARS)
    if PACKAGES.is_dir():
        return
    partial = _FETCHED / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(partial), f"pyspark=={SPARK}"], check=True)
    # Under its own name only once it is whole.
    partial.rename(PACKAGES)


def jars() -> str:
    """As Spark wants them."""
    return ",".join(sorted(map(str, JARS.glob("*.jar"))))


def settings(folder: Path) -> Mapping[str, str]:
    """Spark's settings: small, with a catalog ``lake`` of Iceberg's, whose tables are in a folder."""
    extensions = (
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "io.delta.sql.DeltaSparkSessionExtension",
    )
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.jars": jars(),
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "warehouse"),
        # In a file, which pyiceberg uses as well. Both know it by this name.
        "spark.sql.catalog.shared": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.shared.type": "jdbc",
        "spark.sql.catalog.shared.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.shared.warehouse": f"file://{folder}",
    }


def table_of(format: str, lake: Path, name: str) -> SparkTable:
    """A table of that name in the lake."""
    return SparkTable(format, f"lake.shop.{name}" if format == "iceberg" else str(lake / name))
