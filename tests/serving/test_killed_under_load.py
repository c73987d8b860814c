"""Others ask for keys all the time: each answer is right for the position that it names, also if a supervisor gives it
again without asking its worker. If one of two instances is killed meanwhile, whoever has to wait waits no longer than
until the other instance has taken over."""

from __future__ import annotations

import http.client
import json
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.workers.workers_kit import WorkersRun
from tests.kafka.support import Cluster
from tests.live.support import Log, eventually
from tests.serving.http_kit import get

pytestmark = [pytest.mark.live, pytest.mark.slow]

PROGRAM = """
from pystreams import App

app = App(
    "counting", poll_ms=10, commit_interval_ms=100, session_timeout_ms=3_000, heartbeat_interval_ms=500,
    processing_guarantee="exactly_once_v2",
)
app.stream("in", key=str, value=int).group_by_key().count(name="counts")
"""

PARTITIONS = 4
KEYS = [f"k{number}" for number in range(40)]
#: Questions for one key come in these forms in turn.
COMMITTED = "freshness=committed"
FORMS = ("freshness=latest", COMMITTED)
ASKING = 4
#: A supervisor is asked for so few that it gives each answer several times between two commits.
ASKED_OFTEN = KEYS[:8]
PAUSE_S = 0.01
#: As in the program.
SESSION_S = 3.0
#: How much longer everything may take on a busy machine.
SLACK_S = 20.0


class Asked(NamedTuple):
    """A question for a key, and its answer: when (monotonic), the status, and for 200 the count and the position."""

    key: str
    form: str
    at_s: float
    took_s: float
    status: int
    count: int
    position: dict[str, dict[str, int]]


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    if getattr(request, "param", "embedded") == "kafka":
        yield request.getfixturevalue("cluster")
    else:
        log = Log(tmp_path)
        yield log
        log.close()


class Load:
    """Writes records and asks an instance for their keys, each from threads of its own, from ``with`` to its end."""

    def __init__(
        self, log: Log, address: str, *, keys: Sequence[str] = KEYS, forms: Sequence[str] = FORMS
    ) -> None:
        """``keys`` are asked for in these forms; all are written."""
        self.asked: list[Asked] = []
        self._questions = [(key, form) for key in keys for form in forms]
        self._log = log
        self._address = address
        self._end = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._until_end, args=(self._write(),), name="writes")]
        self._threads += [
            threading.Thread(target=self._until_end, args=(self._ask_from(number),), name=f"asks-{number}")
            for number in range(ASKING)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        assert self._errors == []

    def answers(self, key: str, since_s: float) -> bool:
        """Whether both forms of a question for the key that came after a moment have got the count."""
        last = {one.form: one.status for one in self.asked.copy() if one.key == key and one.at_s > since_s}
        return last == dict.fromkeys(FORMS, 200)

    def _until_end(self, steps: Generator[None, None, None]) -> None:
        try:
            with closing(steps):
                # The pause is the rate: that is what a load is about.
                while not self._end.wait(PAUSE_S):
                    next(steps)
        except BaseException as error:  # noqa: BLE001 - the test fails with it
            self._errors.append(error)

    def _write(self) -> Generator[None, None, None]:
        at = 0
        while True:
            at += 1
            self._log.write("in", [(KEYS[at % len(KEYS)], 1, at)])
            yield

    def _ask_from(self, number: int) -> Generator[None, None, None]:
        questions = self._questions
        turn = number * len(questions) // ASKING
        with closing(http.client.HTTPConnection(self._address, timeout=60)) as connection:
            while True:
                self.asked.append(ask(connection, *questions[turn % len(questions)]))
                turn += 1
                yield


def ask(connection: http.client.HTTPConnection, key: str, form: str) -> Asked:
    at_s = time.monotonic()
    connection.request("GET", f"/stores/counts/keys/{key}?{form}")
    answer = connection.getresponse()
    body = json.loads(answer.read())
    position = json.loads(answer.headers.get("Pystreams-Position", "{}"))
    return Asked(key, form, at_s, time.monotonic() - at_s, answer.status, body.get("value", 0), position)


def instance(log: Log, folder: Path, stack: ExitStack, *options: str) -> tuple[WorkersRun, str]:
    """A process of its own, and its address."""
    folder.mkdir()
    (folder / "counting.py").write_text(PROGRAM, encoding="utf-8")
    where = (
        {"PYSTREAMS_BOOTSTRAP_SERVERS": log.bootstrap_servers}
        if isinstance(log, Cluster)
        else {"PYSTREAMS_EMBEDDED_LOG": str(log.path / "log.db")}
    )
    run = WorkersRun(folder, "counting", "--http", "0", *options, **where)
    stack.callback(run.close)
    return run, run.says(r"Metrics, health and stores are at http://(\S+):")[1]


def offsets_by_key(log: Log) -> dict[str, tuple[int, list[int]]]:
    """By key, its partition and the offsets of its records."""
    found: dict[str, tuple[int, list[int]]] = {}
    for place in log.partitions("in"):
        for offset, line in log.lines(place).items():
            assert line.key is not None
            found.setdefault(line.key.decode(), (place.partition, []))[1].append(offset)
    return found


def are_right(log: Log, asked: Sequence[Asked]) -> None:
    """Each count is that of the records before its position, and of what is committed no answer is older than one that
    had come before its question."""
    of_key = offsets_by_key(log)
    #: By partition, for answers as of the last commit: when each came, its position, and when it was asked for.
    committed: defaultdict[int, list[tuple[float, int, float]]] = defaultdict(list)
    for one in asked:
        if one.status == 200:
            partition, offsets = of_key[one.key]
            position = one.position["in"][str(partition)]
            assert one.count == sum(offset < position for offset in offsets), one
            if one.form == COMMITTED:
                committed[partition].append((one.at_s + one.took_s, position, one.at_s))
    for answers in committed.values():
        answers.sort()
        came_s = [came for came, _, _ in answers]
        newest = list(accumulate((position for _, position, _ in answers), max))
        for answer in answers:
            _, position, asked_s = answer
            before = bisect_left(came_s, asked_s)
            assert before == 0 or position >= newest[before - 1], answer


def test_what_a_supervisor_gives_again_is_as_new_as_what_its_worker_has_committed(log: Log, tmp_path: Path):
    log.create("in", partitions=PARTITIONS)
    log.write("in", [(key, 1, 0) for key in KEYS])
    with ExitStack() as stack:
        options = ("--workers", "1", "-s", "commit_interval_ms=300")
        _, address = instance(log, tmp_path / "supervisor", stack, *options)
        for key in ASKED_OFTEN:
            path = f"/stores/counts/keys/{key}?{COMMITTED}"
            eventually(lambda path=path: get(address, path).status == 200, f"{key} is counted")
        with Load(log, address, keys=ASKED_OFTEN, forms=[COMMITTED]) as load:

            def counts(key: str) -> set[int]:
                return {one.count for one in load.asked.copy() if one.key == key}

            for key in ASKED_OFTEN:
                eventually(lambda key=key: len(counts(key)) >= 6, f"{key} has had some counts")
    print(f"{len(load.asked):,} answers in {load.asked[-1].at_s - load.asked[0].at_s:.1f} s")
    assert {one.status for one in load.asked} == {200}
    are_right(log, load.asked)


@pytest.mark.both_logs
def test_answers_are_right_and_come_soon_after_the_change_of_hands(log: Log, tmp_path: Path):
    log.create("in", partitions=PARTITIONS)
    log.write("in", [(key, 1, 0) for key in KEYS])
    with ExitStack() as stack:
        (_, address), (victim, its_address) = (
            instance(log, tmp_path / name, stack) for name in ("survivor", "victim")
        )

        def has(of: str) -> list[int]:
            return get(of, "/stores/counts").json["here"]

        def is_there(key: str, form: str) -> bool:
            return get(address, f"/stores/counts/keys/{key}?{form}").status == 200

        eventually(lambda: len(has(address)) == len(has(its_address)) == PARTITIONS / 2, "both have a half")
        for key in KEYS:
            eventually(lambda key=key: all(is_there(key, form) for form in FORMS), f"{key} is counted")
        with Load(log, address) as load:
            start_s = time.monotonic()
            for key in KEYS:
                eventually(lambda key=key: load.answers(key, start_s), f"{key} is answered")
            killed_s = time.monotonic()
            victim.process.kill()
            eventually(lambda: len(has(address)) == PARTITIONS, "the other one has taken over")
            changed_s = time.monotonic()
            for key in KEYS:
                eventually(lambda key=key: load.answers(key, changed_s), f"{key} is answered again")

    assert {one.status for one in load.asked} <= {200, 503}
    are_right(log, load.asked)
    change_s = changed_s - killed_s
    slowest_s = max(one.took_s for one in load.asked)
    last_refused_s = max((one.at_s for one in load.asked if one.status == 503), default=killed_s) - killed_s
    print(
        f"{len(load.asked):,} answers, the change of hands {change_s:.1f} s, the slowest answer {slowest_s:.1f} s, "
        f"the last refusal for a question {last_refused_s:.1f} s after the kill"
    )
    assert change_s < SESSION_S + SLACK_S
    assert last_refused_s < change_s + SLACK_S
    waiting = [one.at_s + one.took_s for one in load.asked if one.at_s < changed_s]
    assert max(waiting) < changed_s + SLACK_S
