"""Stands in for a worker that has not reported for a while, where its stores are asked for."""

from __future__ import annotations

from typing import NoReturn

from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.stores.parts import StoreInfo, StorePart
from pystreams.serving.stores.questions import Question


class SilentWorker:
    """Implements ``Answerer``: refuses each question at once, because its process would not answer in time."""

    def __init__(self, number: int, silent_ms: float) -> None:
        self._number = number
        self._silent_ms = silent_ms

    async def stores(self) -> list[StoreInfo]:
        self._refuse()

    async def ask(self, question: Question) -> StorePart:
        self._refuse()

    def ask_at_once(self, question: Question) -> StorePart | None:
        return None

    def _refuse(self) -> NoReturn:
        raise UnreachableError(
            f"worker {self._number} does not answer",
            why=f"it has not reported for {self._silent_ms / 1000:.0f} s: its process stands still, or a function of "
            "the application blocks the interpreter",
            hint="ask again later; if it stays silent, it is replaced",
        )
