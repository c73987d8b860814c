"""``default_dsl_store`` may change between two runs: what was elsewhere comes back from its changelog."""

from __future__ import annotations

from pystreams import App, JoinWindows
from tests.live.support import Log, run_to_the_end


def shop(log: Log, store: str) -> App:
    app = log.app("shop", default_dsl_store=store, window_changelog_retention_ms=-1)
    orders = app.stream("orders", key=str, value=int)
    orders.group_by_key().reduce(lambda total, n: total + n, name="totals").to_stream().to("totals")
    returned = app.stream("returned", key=str, value=int)
    windows = JoinWindows.of(1_000)
    orders.left_join(returned, lambda n, back: n - (back or 0), windows=windows, value=int).to("kept")
    return app


def test_state_in_memory_and_on_disk_take_turns(log: Log) -> None:
    log.create("orders", "returned", "totals", "kept", partitions=2)
    runs = ("in_memory", "in_memory", "rocksDB", "in_memory", "rocksDB")
    for n, store in enumerate(runs):
        log.write("orders", [(key, 10 + n, n) for key in ("ann", "bob", "carl")])
        run_to_the_end(log, shop(log, store))
        assert any(log.path.glob("state/shop/*/rocksdb")) == ("rocksDB" in runs[: n + 1])
    # The last record meets the orders of all runs.
    log.write("returned", [("ann", 1, 9)])
    run_to_the_end(log, shop(log, "in_memory"))
    assert log.table("totals") == dict.fromkeys(("ann", "bob", "carl"), sum(range(10, 15)))
    assert [record.value for record in log.read("kept")] == [9 + n for n in range(5)]
