"""While somebody asks a process, its threads take turns more often: so a request does not wait for one that computes.
Afterwards all is as before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.serving import turns
from pystreams.serving.stores.lines import Line
from pystreams.serving.stores.questions import Question
from pystreams.serving.turns import QUICK_S, QuickTurns
from tests.live.support import eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.queries_kit import asked, counting
from tests.serving.worker_kit import Worker, asked_over_a_line

USUAL_S = 0.004


@pytest.fixture(autouse=True)
def usual_interval() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before_s)


def is_usual() -> bool:
    return sys.getswitchinterval() == pytest.approx(USUAL_S)


def is_quick() -> bool:
    return sys.getswitchinterval() == pytest.approx(QUICK_S)


def test_the_switch_interval_is_short_while_others_ask_for_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with asked(tmp_path, counting) as application:
        monkeypatch.setattr(turns, "LASTS_S", 600.0)
        assert application.get("/live").status == 200
        assert is_usual()
        assert application.key("counts", "nobody").status in (404, 503)
        assert is_quick()
    assert is_usual()


def test_the_interval_is_as_before_when_nobody_asks_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with asked(tmp_path, counting) as application:
        monkeypatch.setattr(turns, "LASTS_S", 0.05)
        application.key("counts", "nobody")
        eventually(is_usual, "nobody asks any more")


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_two_servers_in_a_process_leave_the_interval_as_it_was(first_ends_first: bool):
    async def overlap() -> None:
        first, second = QuickTurns(), QuickTurns()
        first.asked()
        second.asked()
        assert is_quick()
        for one in (first, second) if first_ends_first else (second, first):
            one.end()

    run_apart(overlap())
    assert is_usual()


def test_an_interval_that_the_program_sets_is_kept():
    async def changed_meanwhile() -> None:
        quick = QuickTurns()
        quick.asked()
        sys.setswitchinterval(0.05)
        quick.end()

    run_apart(changed_meanwhile())
    assert sys.getswitchinterval() == pytest.approx(0.05)


def test_an_interval_that_is_shorter_is_kept():
    async def asked_and_ended() -> None:
        quick = QuickTurns()
        quick.asked()
        assert sys.getswitchinterval() == pytest.approx(QUICK_S / 2)
        quick.end()

    sys.setswitchinterval(QUICK_S / 2)
    run_apart(asked_and_ended())
    assert sys.getswitchinterval() == pytest.approx(QUICK_S / 2)


def test_the_switch_interval_of_a_worker_is_short_while_it_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "LASTS_S", 600.0)

    async def is_quick_after_a_question(line: Line) -> bool:
        await line.ask(Question("counts", "a"))
        return is_quick()

    assert asked_over_a_line(Worker(at_once=True), is_quick_after_a_question)
    eventually(is_usual, "the line has ended")
