"""A real Dagster materializes the asset of the page about nights: reports, tries, folders that follow each other."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.schedulers.environments import program
from tests.schedulers.nights import Nights

#: Materializes one partition, and prints what has become of it.
MATERIALIZE = """\
import json
import sys

import dagster as dg
from shop_assets import revenue

with dg.DagsterInstance.ephemeral() as instance:
    done = dg.materialize([revenue], partition_key=sys.argv[1], instance=instance, raise_on_error=False)
    events = [event.event_type_value for event in done.all_events]
    made = done.asset_materializations_for_node("revenue")
    metadata = {name: one.value for name, one in made[0].metadata.items()} if made else None
    print(json.dumps({"success": done.success, "retries": events.count("STEP_UP_FOR_RETRY"), "metadata": metadata}))
"""


def run(nights: Nights, name: str, *arguments: str) -> str:
    """What a program of Dagster's environment prints on standard output."""
    done = subprocess.run(
        [program("dagster", name), *arguments],
        cwd=nights.folder,
        env={**nights.environment, "DAGSTER_DISABLE_TELEMETRY": "yes"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0
    return done.stdout


def materialize(nights: Nights, night: str) -> Any:
    return json.loads(run(nights, "python", "-c", MATERIALIZE, night).splitlines()[-1])


def test_the_definitions_are_valid(nights: Nights) -> None:
    run(nights, "dagster", "definitions", "validate", "-f", "shop_assets.py")


def test_each_partition_continues_the_one_before_and_has_its_report(nights: Nights) -> None:
    for number, night in enumerate(("2026-03-03", "2026-03-05"), 1):
        nights.produce("cleo", float(number))
        metadata = {"rows": 1, "records": 1, "staging": f"staging/{night}"}
        assert materialize(nights, night) == {"success": True, "retries": 0, "metadata": metadata}
    assert nights.rows() == [("ann", 16.5), ("ann", 19.0), ("ben", 3.0), ("cleo", 1.0), ("cleo", 3.0)]


def test_a_partition_whose_run_is_killed_is_tried_again(nights: Nights) -> None:
    nights.produce("cleo", 1.0)
    nights.kill_once()
    done = materialize(nights, "2026-03-03")
    assert (done["success"], done["retries"]) == (True, 1)
    assert nights.rows() == [("ann", 16.5), ("ann", 19.0), ("ben", 3.0), ("cleo", 1.0)]


def test_a_partition_that_is_older_than_the_last_one_is_not_tried_again(nights: Nights) -> None:
    assert materialize(nights, "2026-03-01") == {"success": False, "retries": 0, "metadata": None}
    assert nights.staged == ["2026-03-01", "2026-03-02"]
