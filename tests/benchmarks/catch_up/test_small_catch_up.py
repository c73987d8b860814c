"""``make bench-catch-up`` on a small history: what is lost and what is counted add up, and the picture can be read."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from pystreams.ids import TopicPartition
from tests.benchmarks.catch_up.__main__ import save, table
from tests.benchmarks.catch_up.bench import CONTESTANTS, Bench, Outcome
from tests.benchmarks.catch_up.inputs import ORDERS, WINDOW_MS, History
from tests.benchmarks.catch_up.picture import picture
from tests.benchmarks.catch_up.watching import Look, spread_ms
from tests.benchmarks.kafka.cluster import PARTITIONS, Cluster
from tests.benchmarks.kafka.inputs import START_MS, Choice, Expected
from tests.kafka.server import ROOT, KafkaServer

HOUR_MS = 3_600_000


def test_orders_are_out_of_order_by_less_than_the_grace_and_every_window_is_known():
    history = History(20_000, 6)
    orders = [*history.source().write(Choice(1, PARTITIONS), START_MS, Expected())]
    assert len(orders) == 20_000
    latest, worst = Counter[int](), 0
    for _, _, _, partition, _, _, time in orders:
        worst = max(worst, latest[partition] - time)
        latest[partition] = max(latest[partition], time)
    assert 10_000 < worst < 60_000
    assert len(latest) == PARTITIONS
    assert history.sold == Counter((m[1].decode().split(" ")[1], m[6] - m[6] % WINDOW_MS) for m in orders)


def a_look(time_s: float, *times: int) -> Look:
    at = {TopicPartition(ORDERS, number): time for number, time in enumerate(times)}
    return Look(time_s, 0.5, {**at, TopicPartition("x-sold-repartition", 0): times[0]}, 1 << 20, 50 << 20)


LOOKS = [a_look(0.2, 0, -1), a_look(1, 2 * HOUR_MS, 5 * HOUR_MS), a_look(2, 6 * HOUR_MS, 6 * HOUR_MS)]
OUTCOME = Outcome("one & all", 100, 40, 0, 20, 10, 2.0, 1 << 20, 50 << 20, 3 * HOUR_MS, LOOKS)


def test_the_spread_is_that_of_the_moment_at_which_it_is_greatest():
    assert spread_ms(LOOKS, ORDERS, 0, 2) == 3 * HOUR_MS


def test_the_picture_has_a_panel_for_each_and_a_line_for_each_partition():
    drawn = ET.fromstring(picture([OUTCOME, OUTCOME], 0, 6))
    texts = [one.text for one in drawn.iter() if one.tag.endswith("text")]
    assert texts.count("one & all") == 2
    assert texts.count("40 orders lost (40.0%), 2 s") == 2
    lines = [one.attrib["points"] for one in drawn.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2 * 3
    assert all(line.count(",") == len(LOOKS) for line in lines)


def test_the_table_and_the_file_have_every_contestant(tmp_path: Path):
    printed = Console(file=io.StringIO(), width=150)
    printed.print(table([OUTCOME]))
    assert "10 of 20" in printed.file.getvalue()
    save(tmp_path / "results.json", [OUTCOME], 100, 6, 1)
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert run["lost"] == 40


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one", "java"])
def test_what_is_lost_and_what_is_counted_add_up(server: KafkaServer, tmp_path: Path, name: str):
    peer = CONTESTANTS[name].peer
    if (reason := peer.why_not()) is not None:
        pytest.skip(reason)
    peer.build(ROOT / ".pystreams" / "bench")
    history = History(4_000, 6)
    cluster = Cluster(server.bootstrap_servers, [server.pid])
    (one,) = Bench(cluster, tmp_path, history, 1, Console(file=io.StringIO())).run([name])
    assert one.orders == 4_000
    assert one.twice == 0
    assert 0 <= one.windows_incomplete <= one.lost < one.orders
    assert (one.windows_incomplete > 0) == (one.lost > 0)
    assert one.peak_state_bytes > 0
    last = max(time for at, time in one.looks[-1].times.items() if at.topic == ORDERS)
    assert history.begin_ms + 5 * HOUR_MS < last < history.begin_ms + 6 * HOUR_MS
