"""Versions of a program that sums by key, and what they leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pystreams.app import App
from pystreams.clock import SystemClock
from pystreams.state.disk.directory import StateDirectory
from pystreams.take_over.last_run import KeptTopology, LastRun
from tests.live.support import Line, Log


@dataclass
class One:
    a: int = 0


@dataclass
class Two:
    a: int = 0
    b: int = 0


@dataclass
class Three:
    b: int
    a: int = 0


def summing(
    log: Log, kind: type, name: str = "sums", settings: dict[str, Any] | None = None, **store: Any
) -> App:
    app = log.app("shop", **(settings or {}))
    sums = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(
            lambda: kind(a=0, b=0) if kind is Three else kind(),
            lambda found, value: kind(**{**vars(found), "a": found.a + value}),
            value=kind,
            name=name,
            **store,
        )
    )
    sums.to_stream().map_values(lambda found: found.a, value=int).to("out")
    return app


def kept(log: Log) -> LastRun | None:
    """What the group tells of what ran last."""
    directory = StateDirectory(log.path / "nowhere", "shop")
    return KeptTopology(log.broker, log.admin, directory, "shop", SystemClock()).read()


def write(log: Log, value: int) -> None:
    log.write("in", [(key, value, 1_000) for key in "abcdef"])


def lines(log: Log, topic: str) -> list[Counter[Line]]:
    return [Counter(log.lines(partition).values()) for partition in log.partitions(topic)]


class Killed(BaseException):
    """Nobody catches it: as good as the end of the process, for what is on the disk."""


class DiesOnTheWay:
    """A log that ends the process at a step of a take-over."""

    def __init__(self, inner: Any, at: str) -> None:
        self._inner = inner
        self._at = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def transactional_producer(self, client_id: str, transactional_id: str) -> Any:
        return _Dying(self._inner.transactional_producer(client_id, transactional_id), self._at, "send", 2)

    def group_committer(self, client_id: str, group: str, transactional_id: str) -> Any:
        return _Dying(self._inner.group_committer(client_id, group, transactional_id), self._at, "commit", 2)

    def admin(self) -> Any:
        return _Dying(self._inner.admin(), self._at, "delete_topics", 1)


class _Dying:
    def __init__(self, inner: Any, at: str, method: str, calls: int) -> None:
        self._inner = inner
        self._method = method if method == at else None
        self._left = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        def called(*arguments: Any) -> Any:
            self._left -= 1
            if not self._left:
                raise Killed
            return found(*arguments)

        return called
