"""While somebody asks a process, its threads take turns more often: so a request does not wait for one that computes.
Afterwards all is as before."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams import App
from pystreams.serving import turns
from pystreams.serving.stores.lines import Line, LineServer
from pystreams.serving.stores.parts import Part, StoreInfo
from pystreams.serving.stores.questions import Question
from pystreams.serving.turns import QUICK_S
from tests.live.support import eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.http_kit import get
from tests.serving.queries_kit import asked

USUAL_S = 0.004


def counts(app: App) -> None:
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")


class Worker:
    """Has a store with nothing in it."""

    async def stores(self) -> list[StoreInfo]:
        return []

    async def ask(self, _question: Question) -> Part:
        return Part()

    def ask_at_once(self, _question: Question) -> Part | None:
        return Part()


@pytest.fixture(autouse=True)
def usual_interval(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(turns, "LASTS_S", 0.3)
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before_s)


def is_usual() -> bool:
    return sys.getswitchinterval() == pytest.approx(USUAL_S)


def is_quick() -> bool:
    return sys.getswitchinterval() == pytest.approx(QUICK_S)


def test_the_switch_interval_is_short_while_requests_come(tmp_path: Path):
    with asked(tmp_path, counts) as application:
        assert is_usual()

        def asked_and_quick() -> bool:
            get(application.server.address, "/live")
            return is_quick()

        eventually(asked_and_quick)
        eventually(is_usual, "nobody asks any more")
        eventually(asked_and_quick)
    assert is_usual()


def test_an_interval_that_is_shorter_is_kept(tmp_path: Path):
    sys.setswitchinterval(QUICK_S / 2)
    with asked(tmp_path, counts) as application:
        get(application.server.address, "/live")
        assert sys.getswitchinterval() == pytest.approx(QUICK_S / 2)
    assert sys.getswitchinterval() == pytest.approx(QUICK_S / 2)


def test_so_it_is_in_a_worker_that_is_asked():
    async def asked_over_a_line() -> bool:
        ours, theirs = socket.socketpair()
        LineServer(theirs, Worker())
        line = Line(ours)
        await line.ask(Question("counts", "a"))
        quick = is_quick()
        line.hang_up()
        return quick

    assert run_apart(asked_over_a_line())
    eventually(is_usual, "the line has ended")
