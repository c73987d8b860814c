"""How the bench measures: what counts as progress, what is steady, what a report says of it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice

import pytest
from rich.console import Console

from tests.benchmarks.kafka.docs import render
from tests.benchmarks.kafka.inputs import START_MS, Choice, Expected, source
from tests.benchmarks.kafka.observer import Sample, Steady, progress, steady
from tests.benchmarks.kafka.outputs import Output, OutputsDifferError, check_equal, check_total
from tests.benchmarks.kafka.peers import JOBS
from tests.benchmarks.kafka.processes import ProcessTree, Usage
from tests.benchmarks.kafka.report import rows, show
from tests.benchmarks.kafka.running import Result


def sample(time_s: float, **committed: int) -> Sample:
    return Sample(time_s, committed, 2 * sum(committed.values()), Usage(time_s / 2, 0), Usage(time_s / 4, 0))


def result(peer: str, rate: float, *, threads: int = 1, repeat: int = 1, cpu_s: float = 10.0) -> Result:
    return Result(
        job="wordcount",
        peer=peer,
        threads=threads,
        repeat=repeat,
        records=1_000,
        seconds=12.0,
        startup_s=1.0,
        steady=Steady(10.0, 10 * rate, 5, cpu_s, 1.0),
        peak_rss_bytes=1 << 20,
        output_records=1_000,
    )


# Progress


def test_a_job_is_as_far_as_the_topic_that_is_furthest_behind():
    samples = [sample(0), sample(1, lines=80, repartition=100), sample(2, lines=100, repartition=1_000)]
    assert progress(samples) == [0.0, 0.1, 1.0]


def test_a_topic_of_which_nothing_is_ever_read_does_not_count():
    assert progress([sample(0, lines=50, empty=0), sample(1, lines=100, empty=0)]) == [0.5, 1.0]


def test_start_and_end_do_not_count_into_the_steady_part():
    # Nothing for ten seconds; then a commit a second, of which the looks in between see nothing new.
    commits = [min(1_000, 10 * max(0, tenth // 10 - 10)) for tenth in range(1_121)]
    found = steady([sample(tenth / 10, lines=n) for tenth, n in enumerate(commits)], records=1_000)
    assert (found.seconds, found.records) == (pytest.approx(85), pytest.approx(850))
    assert found.records / found.seconds == pytest.approx(10)
    assert found.cpu_s == pytest.approx(85 / 2)
    assert found.broker_cpu_s == pytest.approx(85 / 4)
    assert found.output_records == pytest.approx(2 * 850)


def test_all_in_one_commit_is_measured_over_the_last_look():
    found = steady([sample(0), sample(1), sample(2, lines=10)], records=10)
    assert (found.seconds, found.records) == (1, 10)


# CPU and memory


def test_the_children_of_a_process_count_with_it_and_what_has_ended_still_counts():
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r} + 'input()'])"
    process = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE)
    tree = ProcessTree([process.pid])
    usage = tree.read()
    while usage.cpu_s < 0.3:
        assert process.poll() is None
        usage = tree.read()
    assert process.stdin is not None
    process.stdin.close()
    process.wait()
    assert tree.read().cpu_s >= usage.cpu_s
    assert tree.read().peak_rss_bytes > 5 << 20


def test_a_process_that_is_gone_uses_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert ProcessTree([process.pid]).read() == Usage(0, 0)
    assert ProcessTree([os.getpid()]).read().cpu_s > 0


# Inputs


@pytest.mark.parametrize("job", JOBS)
def test_inputs_are_the_same_for_a_seed_and_others_for_another(job):
    def first(seed: int) -> list[object]:
        return [*islice(source(job).write(Choice(seed, 4), START_MS, Expected()), 15_000)]

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_no_order_has_the_time_of_a_customer():
    written = [*islice(source("join").write(Choice(1, 4), START_MS, Expected()), 20_000)]
    times = {
        topic: {m[-1] for m in written if m[0] == topic} for topic in ("bench-orders", "bench-customers")
    }
    assert all(times.values())
    assert not times["bench-orders"] & times["bench-customers"]
    assert min(times["bench-customers"]) > 0


def test_what_inputs_add_up_to_is_counted():
    expected = Expected()
    written = [*islice(source("windows").write(Choice(1, 4), START_MS, expected), 100)]
    assert expected.total == sum(int.from_bytes(message[1], "big") for message in written)


# Outputs


def table(**values: int) -> Output:
    cells: dict[bytes | None, tuple[int, bytes | None]] = {
        key.encode(): (0, value.to_bytes(8, "big")) for key, value in values.items()
    }
    return Output("out", len(cells), (), cells)


def test_tables_that_differ_are_reported_with_the_first_key():
    check_equal("nowhere:1", table(a=1, b=2), table(b=2, a=1))
    with pytest.raises(OutputsDifferError, match=r"at key b'b'.*\\x02.*\\x03"):
        check_equal("nowhere:1", table(a=1, b=2, c=3), table(a=1, b=3, c=4))
    with pytest.raises(OutputsDifferError, match=r"at key b'c'.*None"):
        check_equal("nowhere:1", table(a=1), table(a=1, c=4))


def test_a_key_in_another_partition_is_a_difference():
    moved = replace(table(a=1), table={b"a": (1, (1).to_bytes(8, "big"))})
    with pytest.raises(OutputsDifferError):
        check_equal("nowhere:1", table(a=1), moved)


def test_skipped_and_doubled_records_are_reported():
    check_total("wordcount", table(a=1, b=2), Expected(total=3))
    with pytest.raises(OutputsDifferError, match="add up to 3, not 4"):
        check_total("wordcount", table(a=1, b=2), Expected(total=4))
    with pytest.raises(OutputsDifferError, match="2 records, not 1"):
        check_total("join", table(a=1, b=2), Expected(records=1))


# Report


def test_ratios_are_to_java_with_as_many_threads_and_of_medians():
    found = rows(
        [
            *(result("pystreams", rate, repeat=n, cpu_s=5) for n, rate in enumerate((300, 200, 100))),
            *(result("java", 100, repeat=n) for n in range(3)),
            result("java", 400, threads=2),
            result("pystreams", 600, threads=2),
        ]
    )
    assert [(row.peer, row.threads, row.ratio) for row in found] == [
        ("pystreams", 1, 2.0),
        ("java", 1, 1.0),
        ("java", 2, 1.0),
        ("pystreams", 2, 1.5),
    ]
    assert (found[0].rate_min, found[0].rate_max, found[0].runs) == (100, 300, 3)
    assert found[0].cpu_ratio == pytest.approx(5 / 2_000 / (10 / 1_000))


def test_the_table_and_the_page_show_every_row():
    found = rows([result("pystreams", 250_000), result("java", 100_000)])
    printed = io.StringIO()
    show(Console(file=printed, width=160), found)
    names = {"seconds": 30.0, "repeats": 2, "seed": 1, "commit_interval_ms": 1_000, "partitions": 4}
    page = render(found, {"processor": "abacus"}, {**names, "begin": 0.1, "end": 0.95}, "2026-01-01")
    for text in (printed.getvalue(), page):
        assert "250,000" in text
        assert "2.50" in text
    assert "pystreams processes 2.5 times as many records as Java" in page
    assert "| processor | abacus |" in page


def test_without_java_there_is_no_ratio():
    (row,) = rows([result("pystreams", 250_000)])
    assert (row.ratio, row.cpu_ratio) == (None, None)
    printed = io.StringIO()
    show(Console(file=printed, width=160), [row])
    assert "None" not in printed.getvalue()
