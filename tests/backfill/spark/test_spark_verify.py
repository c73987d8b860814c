"""On Spark a verification finds what it finds in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pystreams.backfill import EmbeddedSource, SparkExecutor, verify
from pystreams.state.formats import pack_int64
from tests.backfill.verification.verification_kit import ran, verified, written
from tests.live.support import Line, Log


@pytest.mark.parametrize("name", ["word count", "joined streams", "joined versions"])
def test_workers_compare_as_one_process_does(
    name: str, executor: SparkExecutor, new_log: Callable[[str], Log], tmp_path: Path
) -> None:
    log = new_log("log")
    app = ran(log, name, 2)
    source = EmbeddedSource(str(log.path / "log.db"))
    honest = verify(app, log.broker, sources=source, staging=tmp_path / "honest", executor=executor)
    assert honest.equal
    assert honest == verified(log, app)
    topics = sorted(log.admin.partition_counts())
    changelog = next(one for one in topics if one.endswith("-changelog") and "topology" not in one)
    written(log, changelog, [Line(b"k" * 16, pack_int64(7), 390)], partition=1)
    found = verify(app, log.broker, sources=source, staging=tmp_path / "stray", executor=executor)
    assert found == verified(log, app)
    assert found.counts.only_live == 1
