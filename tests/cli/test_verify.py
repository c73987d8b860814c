"""pystreams verify compares live stores with history, names what differs, and tells the outcome by its exit code."""

from __future__ import annotations

import json
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.clock import SystemClock
from pystreams.ids import TopicPartition

PROGRAM = """
from dataclasses import dataclass
from pystreams import App, TimeWindows

@dataclass
class Total:
    orders: int = 0
    cents: int = 0

def add(total: Total, order: dict) -> Total:
    return Total(total.orders + 1, total.cents + {factor} * order["cents"])

app = App("shop", window_changelog_retention_ms=-1)
orders = app.stream("orders", key=str, value=dict)
orders.group_by_key().aggregate(Total, add, value=Total, name="totals")
orders.group_by(lambda order: order["item"], key=str).count(name="items")
orders.group_by_key().windowed_by(TimeWindows.tumbling(60_000)).count(name="minutes")
"""
ORDERS = """\
ann={"item": "tea", "cents": 450}
ben={"item": "bread", "cents": 300}
ann={"item": "cake", "cents": 1200}
cem={"item": "tea", "cents": 440}
"""


@pytest.fixture
def shop(folder, pystreams):
    """The program and its topic, and all orders processed."""
    (folder / "shop_to_verify.py").write_text(PROGRAM.format(factor=1), encoding="utf-8")
    pystreams("topics", "create", "orders", "-c", "retention.ms=-1")
    pystreams("produce", "orders", "-k", "=", "--timestamp", "2026-03-01T12:00:00Z", stdin=ORDERS)
    done = pystreams("run", "shop_to_verify.py", "--until-caught-up")
    assert done.code == 0, done.err
    return "shop_to_verify.py"


def write(
    folder: Path, changelog: str, key: bytes, value: bytes | None, timestamp: int = 1_772_366_400_000
) -> None:
    """As a stray program would, by default at the time of the records that are there."""
    with (
        closing(EmbeddedBroker(folder / ".pystreams" / "log.db", SystemClock())) as broker,
        closing(broker.producer("stray", "stray")) as producer,
    ):
        producer.send(changelog, 0, key, value, timestamp, ())
        producer.commit({}, None)


def test_an_honest_application_is_equal(folder, pystreams, shop):
    found = pystreams("verify", shop)
    assert found.code == 0, found.err
    assert found.lines == [
        "store\ttotals\t3\t3\t0\t0\t0\t0\t0\t0",
        "store\tminutes\t3\t3\t0\t0\t0\t0\t0\t0",
        "store\titems\t3\t3\t0\t0\t0\t0\t0\t0",
    ]
    assert found.err.splitlines()[0] == "reading what shop has committed"
    assert "slice 1 of 2  orders  4 records" in found.err
    assert "comparing store items" in found.err
    assert found.err.splitlines()[-1] == "Equal: 9 keys were compared."
    assert sorted(path.name for path in (folder / ".pystreams").iterdir() if path.is_dir()) == [
        "log.db.locks",
        "state",
    ]


def test_differences_are_named_with_both_values(folder, pystreams, shop):
    write(folder, "shop-totals-changelog", b"ann", b'{"orders":2,"cents":1}')
    write(folder, "shop-totals-changelog", b"ben", None)
    write(folder, "shop-totals-changelog", b"eve", b'{"orders":9,"cents":9}')
    write(folder, "shop-items-changelog", b"tea", b"spoilt")
    found = pystreams("verify", shop)
    assert found.code == 1
    assert found.lines[0] == "store\ttotals\t4\t1\t1\t0\t1\t1\t0\t0"
    differences = [line.split("\t")[1:] for line in found.lines if line.startswith("difference\t")]
    assert differences == [
        ["value", "totals", "0", "ann", '{"orders": 2, "cents": 1}', '{"orders": 2, "cents": 1650}'],
        ["only history", "totals", "0", "ben", "-", '{"orders": 1, "cents": 300}'],
        ["only live", "totals", "0", "eve", '{"orders": 9, "cents": 9}', "-"],
        ["value", "items", "0", "tea", "73 70 6f 69 6c 74", "2"],
    ]
    assert found.err.splitlines()[-1] == "Different: 4 of 10 keys (3 in store totals, 1 in store items)."
    assert "Traceback" not in found.err


def test_windows_are_named_by_their_times_and_timestamps_where_nothing_else_differs(folder, pystreams, shop):
    window = b"ann" + struct.pack(">qi", 1_772_366_400_000, 0)
    write(folder, "shop-minutes-changelog", window, struct.pack(">q", 2), timestamp=1_772_366_400_001)
    found = pystreams("verify", shop)
    assert found.code == 1
    (line,) = [line for line in found.lines if line.startswith("difference\t")]
    assert line.split("\t")[1:] == [
        "timestamp",
        "minutes",
        "0",
        "ann 2026-03-01T12:00:00Z…2026-03-01T12:01:00Z",
        "2 at 2026-03-01T12:00:00.001Z",
        "2 at 2026-03-01T12:00:00Z",
    ]


def test_a_changed_step_is_found_and_only_some_differences_are_shown(folder, pystreams, shop):
    (folder / shop).write_text(PROGRAM.format(factor=2), encoding="utf-8")
    found = pystreams("verify", shop, "--limit", "1")
    assert found.code == 1
    assert found.lines[0] == "store\ttotals\t3\t0\t3\t0\t0\t0\t0\t0"
    assert sum(line.startswith("difference\t") for line in found.lines) == 1
    assert found.err.splitlines()[-2:] == [
        "1 of the 3 differences of store totals shown: --limit shows more.",
        "Different: 3 of 9 keys (3 in store totals).",
    ]


def test_the_report_is_json(folder, pystreams, shop):
    write(folder, "shop-totals-changelog", b"ann", b'{"orders":2,"cents":1}')
    write(folder, "shop-totals-changelog", b"ben", None)
    found = pystreams("verify", shop, "--json")
    assert found.code == 1
    report = json.loads(found.out)
    totals = report["stores"].pop("totals")
    assert (report["application_id"], report["equal"]) == ("shop", False)
    assert report["inputs"] == {"orders-0": 4}
    assert report["not_compared"] == {}
    assert totals.pop("differences") == [
        {
            "kind": "value",
            "partition": 0,
            "key": "ann",
            "live": {"value": {"orders": 2, "cents": 1}, "timestamp": "2026-03-01T12:00:00Z"},
            "history": {"value": {"orders": 2, "cents": 1650}, "timestamp": "2026-03-01T12:00:00Z"},
        },
        {
            "kind": "only history",
            "partition": 0,
            "key": "ben",
            "live": None,
            "history": {"value": {"orders": 1, "cents": 300}, "timestamp": "2026-03-01T12:00:00Z"},
        },
    ]
    assert totals == {
        "compared": 3,
        "equal": 1,
        "value_differs": 1,
        "timestamp_differs": 0,
        "only_live": 0,
        "only_history": 1,
        "changed_since": 0,
        "expired": 0,
        "may_differ": [],
    }
    assert report["stores"]["minutes"]["equal"] == 3
    assert (
        json.loads(pystreams("verify", shop, "--json", "--limit", "0").out)["stores"]["totals"]["differences"]
        == []
    )


def test_what_was_computed_is_kept_where_it_is_wanted(folder, pystreams, shop):
    assert pystreams("verify", shop, "--staging", "kept").code == 0
    assert list((folder / "kept").iterdir())
    again = pystreams("verify", shop, "--staging", "kept")
    assert again.code == 1
    assert again.out == ""
    assert again.err[again.err.index("Error: ") :] == (
        "Error: kept holds a backfill already\n"
        "  next:  name another folder with --staging, or leave it out to use a temporary folder\n"
    )


def test_history_comes_from_an_archive_if_the_log_has_lost_it(folder, pystreams, shop):
    assert pystreams("archive", "orders", "--to", "archive", "--master", "none").code == 0
    with (
        closing(EmbeddedBroker(folder / ".pystreams" / "log.db", SystemClock())) as broker,
        closing(broker.admin()) as admin,
    ):
        admin.delete_records({TopicPartition("orders", 0): 2}).wait()
    refused = pystreams("verify", shop)
    assert refused.code == 4
    assert refused.err[refused.err.index("Error: ") :] == (
        "Error: the history of orders-0 has lost its beginning\n"
        "  where: embedded log at .pystreams/log.db\n"
        "  why:   its first offset there is 2, and the application has processed records before it, or may have\n"
        "  next:  read the topic from an archive that has all of it: --source orders=parquet:FOLDER\n"
    ).replace(".pystreams/log.db", str(folder / ".pystreams" / "log.db"))
    assert pystreams("verify", shop, "--source", "orders=parquet:archive").code == 0


def test_an_application_that_has_not_run_is_refused(folder, pystreams):
    (folder / "shop_to_verify.py").write_text(PROGRAM.format(factor=1), encoding="utf-8")
    pystreams("topics", "create", "orders")
    refused = pystreams("verify", "shop_to_verify.py")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err[refused.err.index("Error: ") :] == (
        "Error: there is nothing to compare: shop has not committed any offsets\n"
        "  where: embedded log at .pystreams/log.db\n"
        "  why:   it has not run on this log, or it was reset; Kafka deletes the offsets of a group without members "
        "after offsets.retention.minutes (7 days)\n"
        "  next:  check the log and the application's id, or run the application first\n"
    )


def test_records_that_have_not_reached_the_stores_are_refused(folder, pystreams, shop):
    write(folder, "shop-items-repartition", b"tea", b"{}")
    refused = pystreams("verify", shop, "--wait", "0")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err[refused.err.index("Error: ") :] == (
        "Error: not everything that shop has read has reached its stores\n"
        "  where: embedded log at .pystreams/log.db\n"
        "  why:   records in shop-items-repartition-0, from offset 4 on, are not processed yet\n"
        "  next:  let it catch up, and stop it (pystreams run ... --until-caught-up), or wait longer for a calm moment "
        "(--wait SECONDS)\n"
    )


def test_if_all_keys_have_changed_since_nothing_is_said_to_be_equal(folder, pystreams, shop, monkeypatch):
    """A very busy application, as it looks: the ends of its changelogs lie before all of its records."""
    from pystreams.backfill.verification import verifying

    find = verifying.read_live_cut

    def long_ago(*arguments):
        found = find(*arguments)
        return replace(found, changelog_ends=dict.fromkeys(found.changelog_ends, 0))

    monkeypatch.setattr(verifying, "read_live_cut", long_ago)
    found = pystreams("verify", shop)
    assert found.code == 4
    assert found.lines[0] == "store\ttotals\t0\t0\t0\t0\t0\t0\t3\t0"
    assert found.err.splitlines()[-2:] == [
        "9 keys changed since the moment that was compared, and were left out.",
        "Nothing was compared: verify when the application has less to do, or stop it.",
    ]


def test_where_commits_are_not_atomic_a_crash_may_explain_a_difference(folder, pystreams, shop, monkeypatch):
    monkeypatch.setattr(EmbeddedBroker, "transactional", False)
    assert "killed" not in pystreams("verify", shop).err
    write(folder, "shop-items-changelog", b"tea", struct.pack(">q", 3))
    found = pystreams("verify", shop)
    assert found.code == 1
    assert found.err.splitlines()[-2] == (
        "With processing_guarantee=at_least_once, the changelogs may be ahead of the committed offsets if the "
        "application was killed: run it until it has caught up, and verify again."
    )


def test_options_of_spark_need_spark(pystreams, shop):
    refused = pystreams("verify", shop, "--conf", "spark.driver.memory=4g")
    assert refused.code == 2
    assert refused.err == (
        "Error: --conf cannot be used with --master none\n"
        "  why:   only Spark has this option\n"
        "  next:  name Spark's master (--master 'local[*]'), or leave out --conf\n"
    )
    both = pystreams("verify", shop, "--conf", "spark.driver.memory=4g", "--py-files", "shop.zip")
    assert both.code == 2
    assert both.err == (
        "Error: --conf and --py-files cannot be used with --master none\n"
        "  why:   only Spark has these options\n"
        "  next:  name Spark's master (--master 'local[*]'), or leave out --conf and --py-files\n"
    )


def test_nothing_is_chosen_for_a_verification(pystreams, shop):
    refused = pystreams("verify", shop, "--master", "auto")
    assert refused.code == 2
    assert refused.err == (
        "Error: --master auto is only for backfill and archive\n"
        "  next:  name one, such as none, or Spark's master (--master 'local[*]')\n"
    )


def test_ctrl_c_leaves_nothing(folder, pystreams, shop, monkeypatch):
    from pystreams.backfill.compute.inline import InlineExecutor

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(InlineExecutor, "compute", stopped)
    found = pystreams("verify", shop)
    assert found.code == 130
    assert found.err.splitlines()[-1] == "Stopped. Nothing was changed."
    assert not list((folder / ".pystreams").glob("verify-*"))


def test_a_table_without_offsets_is_refused_before_what_else_is_missing(pystreams, shop):
    # Neither Spark nor the number of partitions is asked for first: both would be in vain.
    refused = pystreams("verify", shop, "--source", "orders=table:lake.orders?key=customer&timestamp=at")
    assert refused.code == 2
    assert refused.err == (
        "Error: the records of a source have no offsets, so history cannot end where the application has come to\n"
        "  where: the table of topic orders\n"
        "  next:  if the application was handed over from this table, give the boundary of that backfill, behind which "
        "the log counts: --boundary TIME, boundary=; otherwise read history from the log, from an archive, or name "
        "the table's columns partition and offset\n"
    )
    spark = pystreams(
        *("verify", shop, "--source", "orders=table:lake.orders?key=customer&timestamp=at"),
        *("--boundary", "2026-02-01"),
    )
    assert spark.code == 2
    assert "--master 'local[*]'" in spark.err
    needless = pystreams("verify", shop, "--boundary", "2026-02-01")
    assert needless.code == 2
    assert "a boundary is only for topics whose history is in a table without offsets" in needless.err
