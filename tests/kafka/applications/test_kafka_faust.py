"""A Faust application writes a topic that pystreams reads, and reads one that pystreams writes: over a real Kafka."""

from __future__ import annotations

import subprocess
import sys

from pystreams.app import App
from tests.kafka.applications.faust_program import Line, Order, Total, order
from tests.kafka.support import Cluster
from tests.live.support import run_to_the_end

ORDERS = 60


def faust(cluster: Cluster, what: str, number: int) -> list[str]:
    """Run the Faust application; what it printed."""
    command = [
        sys.executable,
        "-m",
        "tests.kafka.applications.faust_program",
        cluster.bootstrap_servers,
        what,
        str(number),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def totals(cluster: Cluster) -> App:
    app = cluster.app("ours", statestore_cache_max_bytes=0)
    orders = app.stream("orders", key=str, value=Order)
    lines = orders.flat_map(lambda key, one: [(line.sku, line) for line in one.lines], key=str, value=Line)
    counted = lines.group_by_key(repartition="by-sku").aggregate(
        lambda: Total(sku="", count=0),
        lambda total, line: Total(sku=line.sku, count=total.count + line.count),
        name="totals",
        value=Total,
    )
    counted.to_stream().to("totals")
    return app


def test_the_same_models_on_both_sides(cluster: Cluster) -> None:
    cluster.create("orders", "totals", partitions=2)
    assert faust(cluster, "write", ORDERS) == []
    read = cluster.read("orders", value=Order)
    assert {one.key: one.value for one in read} == {f"order-{n}": order(n) for n in range(ORDERS)}
    assert all(type(one.value.lines[0]) is Line for one in read)

    run_to_the_end(cluster, totals(cluster))
    expected = {f"sku-{n}": sum(range(n, ORDERS, 3)) for n in range(3)}
    expected["sku-0"] += ORDERS
    written = cluster.read("totals", value=Total)
    assert {one.key: one.value.count for one in written} == expected

    # In each partition Faust's agent sees what was written, in that order.
    seen = faust(cluster, "read", len(written))
    assert sorted(seen) == sorted(f"{one.key} Total {one.value.sku} {one.value.count}" for one in written)
    last = {line.split()[0]: int(line.split()[3]) for line in seen}
    assert last == expected
