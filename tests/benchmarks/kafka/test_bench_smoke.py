"""``make bench`` on tiny inputs: all outputs of a job are equal, whoever wrote them; the report is sane."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.kafka.bench import Bench, Options
from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.report import as_json, rows, show
from tests.benchmarks.kafka.session import FOLDER, Session

RECORDS = 20_000

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("job", "names", "threads"),
    [
        ("stateless", ("pystreams", "plain"), (1,)),
        # Those of pystreams are in tests/benchmarks/exactly_once.
        ("wordcount", ("java",), (1,)),
        ("windows", ("pystreams",), (1, 2)),
        ("join", ("pystreams", "java"), (1,)),
    ],
)
def test_all_runs_of_a_job_write_the_same_and_are_measured(
    session: Session, job: str, names: tuple[str, ...], threads: tuple[int, ...]
):
    peers = tuple(PEERS[name] for name in names if PEERS[name].why_not() is None)
    for peer in peers:
        peer.build(FOLDER)
    options = Options((job,), peers, threads, repeats=1, records=RECORDS, commit_interval_ms=100)
    # Raises if an output differs from another or from what the inputs add up to.
    results = Bench(session, options).run()

    assert [(r.peer, r.threads) for r in results] == [(p.name, n) for n in threads for p in peers]
    for result in results:
        assert result.records == RECORDS
        assert 0 < result.steady.seconds < result.seconds
        assert 0 < result.steady.records <= RECORDS
        assert result.output_records > 0
        assert result.peak_rss_bytes > 10 << 20
    show(session.console, rows(results))
    assert len(json.loads(json.dumps(as_json(results)))["runs"]) == len(results)
