"""On executors that are processes of their own, with code that is shipped to them, the result is the same, also when
executors are killed at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import history

#: An application that is nowhere but in the file that is shipped. In each of its two slices a worker kills the executor
#: that it belongs to, once: a JVM, the parent of the process from which Spark's Python workers are forked.
APPLICATION = """
import os
import signal
from pathlib import Path

from pystreams import App

MARKS = {marks!r}


def kill_executor(where):
    mark = Path(MARKS) / where
    if not MARKS or mark.exists():
        return
    executor = Path(f"/proc/{{os.getppid()}}/stat").read_text().rpartition(")")[2].split()[1]
    command = Path(f"/proc/{{executor}}/cmdline").read_text()
    assert "ExecutorBackend" in command, command
    mark.write_text(executor)
    os.kill(int(executor), signal.SIGKILL)


def words_of(line):
    kill_executor("first") if " w7 " in line else None
    return line.split()


def counted(count):
    kill_executor("second") if count > 8 else None
    return count


app = App("wc")
words = app.stream("lines", value=str).flat_map_values(words_of).group_by(lambda word: word)
counts = words.count(name="counts").to_stream().map_values(counted)
counts.to("word-counts", value=int)
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
from tests.backfill.spark.daemons import QUICK_JVM

shipped, staging = sys.argv[1:]
sys.path.insert(0, str(Path(shipped).parent))
settings = {**SETTINGS, "spark.executor.memory": "1g", "spark.executor.extraJavaOptions": QUICK_JVM}
with spark_session("local-cluster[2,1,1200]", app_name="cluster", conf=settings) as session:
    executor = SparkExecutor(session, py_files=[shipped])
    source = memory(history("word count", 5, partitions=3))
    application = NamedApplication("shipped_word_count:app")
    Backfill(application, source, Path(staging), executor=executor, commit_records=16).run()
"""


@pytest.mark.slow
def test_executors_with_shipped_code_give_what_an_inline_run_gives_also_if_they_are_killed(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    shipped, marks = tmp_path / "code" / "shipped_word_count.py", tmp_path / "marks"
    shipped.parent.mkdir()
    marks.mkdir()
    shipped.write_text(APPLICATION.format(marks=str(marks)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER, str(shipped), str(tmp_path / "spark")],
        env={**os.environ, "SPARK_WORKER_DIR": str(tmp_path / "workers")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = [(marks / where).read_text(encoding="utf-8") for where in ("first", "second")]
    assert killed[0] != killed[1]
    source = memory(history("word count", 5, partitions=3))
    namespace: dict[str, Any] = {}
    # The same, which kills nobody here.
    exec(APPLICATION.format(marks=""), namespace)
    app = namespace["app"]
    inline = Backfill(app, source, tmp_path / "inline", commit_records=16).run()
    staged = Backfill(app, source, tmp_path / "spark", executor=executor, commit_records=16).run(resume=True)
    assert everything(staged) == everything(inline)
