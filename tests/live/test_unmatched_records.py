"""A metric counts the records of a stream that found no row in the table they are joined with."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.live.support import Log, run_to_the_end

PRICES = [("a", 1, 0), ("b", 2, 0)]
#: Two find their row, three do not; a null key is dropped by an inner join, and has no row in a left join.
ORDERS = [("x", 1, 10), ("a", 1, 11), ("y", 1, 12), (None, 1, 13), ("b", 1, 14), ("z", 1, 15)]


def add(one: int, other: int | None) -> int:
    return one + (other or 0)


@pytest.mark.parametrize("left,unmatched,dropped", [(False, 3, 1), (True, 4, 0)])
@pytest.mark.parametrize("table", ["table", "versions", "global"])
def test_the_records_that_found_no_row_are_counted(
    log: Log, table: str, left: bool, unmatched: int, dropped: int
) -> None:
    log.create("orders", "prices", "out")
    log.write("prices", PRICES)
    log.write("orders", ORDERS)
    app = log.app("priced")
    orders = app.stream("orders", key=str, value=int)
    join = orders.left_join if left else orders.join
    if table == "global":
        rows = app.global_table("prices", key=str, value=int)
        joined = join(rows, add, key_fn=lambda key, value: key, step="price")
    else:
        history = {"history": timedelta(days=1), "name": "rows"} if table == "versions" else {}
        joined = join(app.table("prices", key=str, value=int, **history), add, step="price")
    joined.to("out")
    streams = run_to_the_end(log, app)
    assert streams.metrics.total("unmatched-records-total", processor_node_id="price") == unmatched
    assert streams.left_out == ({"dropped": dropped} if dropped else {})
    (found,) = streams.joins
    assert (found.step, found.records, found.found) == ("price", unmatched, True)
