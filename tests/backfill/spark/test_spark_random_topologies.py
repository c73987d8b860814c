"""Random topologies on Spark, each to one kind of end, go on as live does; ``make prove-backfill`` runs all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.random_topologies import CERTAIN, RESTARTED
from tests.backfill.spark.kinds import ON_EMBEDDED, TOPOLOGIES, Place, check, of_operators
from tests.backfill.trials import Written, read
from tests.live.support import Log

pytestmark = pytest.mark.live

#: A driver with a Spark of its own takes long; that it dies before the commit is seen by ``make prove-backfill``.
#: Workers are killed in the topologies of ``of_operators``.
SHORT = ["driver-in-commit", "run-again", "resumed", "incremental"]


def _recorded() -> list[Written]:
    by_kind: dict[str, Written] = {}
    for written in read(TOPOLOGIES)[: len(ON_EMBEDDED)]:
        by_kind.setdefault(written.kind, written)
    return [*(by_kind[kind] for kind in SHORT), *of_operators()]


@pytest.mark.slow
@pytest.mark.parametrize("written", _recorded(), ids=lambda written: written.name)
def test_whatever_happens_it_goes_on_as_live(
    written: Written, tmp_path: Path, executor: SparkExecutor
) -> None:
    with closing(Log(tmp_path / "log")) as log:
        assert check(written, Place(log, tmp_path), executor) in {RESTARTED, CERTAIN}
