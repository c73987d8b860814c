"""While tasks run, the driver hears how many records they have processed, of how many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.driver import Planned, Progress, run
from pystreams.backfill.spark.classic import addresses_of
from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count


def test_the_driver_hears_of_every_task(tmp_path: Path, executor: SparkExecutor) -> None:
    backfill = Backfill(
        word_count(), memory(history("word count", 5, 2)), tmp_path / "spark", executor=executor
    )
    planned = Planned(
        backfill.loaded, backfill.application, backfill.plan, backfill.manifest, backfill.source
    )
    heard: list[Progress] = []
    result = run(planned, executor, str(tmp_path / "spark"), progress=heard.append)
    last = {(one.slice, one.task): one for one in heard if one.finished}
    assert set(last) == {(slice, task) for slice in (0, 1) for task in (0, 1)}
    for (slice, task), one in last.items():
        assert one.records == one.expected == result.outcome(result.plan.slices[slice], task).records


class Context:
    """A driver's ``SparkContext``, as far as its addresses go."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master = master
        self._conf = {name.replace("_", "."): value for name, value in conf.items()}

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return self._conf


@pytest.mark.parametrize(
    "context,addresses",
    [
        (Context("local[2]", spark_driver_host="my-laptop"), ("127.0.0.1", "127.0.0.1")),
        (Context("spark://host:7077", spark_driver_host="10.0.0.1"), ("10.0.0.1", "10.0.0.1")),
        (
            Context("k8s://host", spark_driver_host="driver-svc.ns.svc", spark_driver_bindAddress="10.1.2.3"),
            ("10.1.2.3", "driver-svc.ns.svc"),
        ),
        (Context("yarn", spark_driver_host="[fd00::1]"), ("fd00::1", "fd00::1")),
    ],
    ids=["local", "cluster", "Kubernetes", "IPv6"],
)
def test_the_driver_listens_where_it_is_and_is_reached_by_the_name_that_workers_know(
    context: Any, addresses: tuple[str, str]
) -> None:
    assert addresses_of(context) == addresses
