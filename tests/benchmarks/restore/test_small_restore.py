"""``make bench-restore`` on few keys: every record of the changelog is restored by everyone, and all is measured."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.session import FOLDER, Session
from tests.benchmarks.restore import bench
from tests.benchmarks.restore.__main__ import summary, table
from tests.benchmarks.restore.bench import Bench, Restored

pytestmark = pytest.mark.slow


def prepared(session: Session, keys: int) -> Bench:
    made = Bench(session, keys)
    made.prepare()
    return made


@pytest.mark.parametrize("name", ["pystreams", "java"])
def test_each_restores_the_whole_changelog(session: Session, name: str) -> None:
    peer = PEERS[name]
    if (reason := peer.why_not()) is not None:
        pytest.skip(reason)
    peer.build(FOLDER)
    one = prepared(session, 20_001).restore(peer)
    assert (one.peer, one.records) == (name, 20_001)
    assert 0 < one.seconds < 60
    assert one.cpu_s > 0
    assert one.peak_rss_bytes >= one.start_rss_bytes > 10 << 20


def test_tasks_process_while_others_are_restored(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_SETTLE_S", 0.3)
    beside = prepared(session, 550_000).beside(PEERS["pystreams"], 0.3)
    assert beside.during > 0
    assert beside.alone > 0


def test_the_table_has_a_line_for_each_restore() -> None:
    printed = Console(file=io.StringIO(), width=120)
    printed.print(table([Restored("java", 0, 1_000, 2.0, 1.5, 200 << 20, 300 << 20)]))
    (line,) = [line for line in printed.file.getvalue().splitlines() if "java" in line]  # type: ignore[attr-defined]
    assert line.replace("│", "").split() == ["java", "1", "1,000", "2.0", "500", "1.5", "200", "300"]


def test_the_summary_compares_what_was_restored_in_one_pair() -> None:
    seconds = {"pystreams": [1.0, 4.0, 1.0], "java": [2.0, 2.0, 1.5]}
    restored = [
        Restored(peer, repeat, 1_000, taken, 1.0, 80 << 20, (100 + repeat) << 20)
        for peer, all_taken in seconds.items()
        for repeat, taken in enumerate(all_taken)
    ]
    rate, memory = summary(restored)
    assert rate == "Rate beside Java's: 1.50 (median of 3 pairs, 0.50 to 2.00)"
    assert memory.startswith("Memory of pystreams: at most 102 MiB, ")
    (alone,) = summary(restored[:1])
    assert alone.startswith("Memory of pystreams: at most 100 MiB"), (
        "without Java there is no rate to compare"
    )
