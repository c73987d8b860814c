"""On executors that are processes of their own, with code that is shipped to them, the result is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import history, word_count

#: An application that is nowhere but in the file that is shipped.
APPLICATION = """
from pystreams import App

app = App("wc")
words = app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word)
words.count(name="counts").to_stream().to("word-counts")
"""

DRIVER = """
import sys
from pathlib import Path
from pystreams.backfill.application import NamedApplication
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history
from tests.backfill.spark.conftest import SETTINGS

shipped, staging = sys.argv[1:]
sys.path.insert(0, str(Path(shipped).parent))
settings = {**SETTINGS, "spark.executor.memory": "1g"}
with spark_session("local-cluster[2,1,1200]", app_name="cluster", conf=settings) as session:
    executor = SparkExecutor(session, py_files=[shipped])
    source = memory(history("word count", 5, partitions=3))
    application = NamedApplication("shipped_word_count:app")
    Backfill(application, source, Path(staging), executor=executor, commit_records=16).run()
"""


@pytest.mark.slow
def test_executors_with_shipped_code_give_what_an_inline_run_gives(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    shipped = tmp_path / "code" / "shipped_word_count.py"
    shipped.parent.mkdir()
    shipped.write_text(APPLICATION, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER, str(shipped), str(tmp_path / "spark")],
        env={**os.environ, "SPARK_WORKER_DIR": str(tmp_path / "workers")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    source = memory(history("word count", 5, partitions=3))
    inline = Backfill(word_count(), source, tmp_path / "inline", commit_records=16).run()
    staged = Backfill(word_count(), source, tmp_path / "spark", executor=executor).run(resume=True)
    assert everything(staged) == everything(inline)
