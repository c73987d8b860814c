"""File systems that Spark stages on, as they are on real clusters: HDFS, and a store that speaks S3's protocol.

Their programs come from Maven and PyPI and are kept in ``.pystreams``. Both listen on loopback and keep their data in a
folder of the caller's, or in memory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from tests.kafka.server import ROOT, fetch_jars, free_port
from tests.live.support import eventually

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_HERE = Path(__file__).parent
_FETCHED = ROOT / ".pystreams" / "file-systems"
#: Stands in for S3: keeps objects in memory, knows conditional writes and uploads in parts.
_MOTO = "moto[server]==5.2.5"
_START_TIMEOUT_S = 60.0


class FileSystem(NamedTuple):
    """Where one is: the URL of an empty folder, what Arrow wants behind it, Spark's settings that reach it, and what
    Arrow finds in the environment."""

    url: str
    query: str = ""
    conf: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


def why_not() -> str | None:
    """What is missing to run them; None if nothing is."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"HDFS and S3 need {' and '.join(missing)} on the PATH" if missing else None


@contextmanager
def hdfs(folder: Path) -> Iterator[FileSystem]:
    """A name node and a data node."""
    jars = _FETCHED / "hdfs"
    fetch_jars(_HERE / "hdfs" / "pom.xml", jars)
    command = ["java", "-Xmx512m", "-cp", f"{jars}/*:{_SPARK_JARS}/*", str(_HERE / "hdfs" / "Hdfs.java")]
    with (
        (folder / "hdfs.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, str(folder / "hdfs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = next((line.split()[1] for line in process.stdout if line.startswith("port ")), None)
            assert port is not None, (folder / "hdfs.log").read_text(encoding="utf-8")[-3000:]
            yield FileSystem(f"hdfs://127.0.0.1:{port}/tests")
        finally:
            process.kill()


@contextmanager
def s3(folder: Path) -> Iterator[FileSystem]:
    """One bucket."""
    fetch_jars(_HERE / "s3" / "pom.xml", _FETCHED / "s3")
    endpoint = f"http://127.0.0.1:{free_port()}"
    host, _, port = endpoint.removeprefix("http://").partition(":")
    login = {
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with (
        (folder / "s3.log").open("w", encoding="utf-8") as log,
        subprocess.Popen([str(_server()), "-H", host, "-p", port], stdout=log, stderr=log) as process,
    ):
        try:
            bucket = urllib.request.Request(f"{endpoint}/tests", method="PUT")
            eventually(lambda: _answers(bucket), "the bucket is there", _START_TIMEOUT_S)
            prefix = "spark.hadoop.fs.s3a"
            conf = {
                "spark.jars": ",".join(sorted(str(jar) for jar in (_FETCHED / "s3").glob("*.jar"))),
                f"{prefix}.endpoint": endpoint,
                f"{prefix}.endpoint.region": login["AWS_DEFAULT_REGION"],
                f"{prefix}.path.style.access": "true",
                f"{prefix}.access.key": login["AWS_ACCESS_KEY_ID"],
                f"{prefix}.secret.key": login["AWS_SECRET_ACCESS_KEY"],
            }
            query = f"?region={login['AWS_DEFAULT_REGION']}&scheme=http&endpoint_override={host}:{port}"
            yield FileSystem("s3a://tests/folder", query, conf, login)
        finally:
            process.kill()


def _answers(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except OSError:
        return False


def _server() -> Path:
    """The executable, in an environment of its own: what it needs is not for those who develop pystreams."""
    environment = _FETCHED / _MOTO
    whole = environment / "whole"
    if not whole.is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([f"{environment}/bin/pip", "install", "--quiet", _MOTO], check=True)
        whole.touch()
    return environment / "bin" / "moto_server"
