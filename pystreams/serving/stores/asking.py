"""Whom to ask for the stores of an application: its client in this process, or several processes that share them."""

from __future__ import annotations

from typing import Protocol

from pystreams.serving.stores.parts import Part, StoreInfo
from pystreams.serving.stores.questions import Question


class Answerer(Protocol):
    """Somebody who has stores, or a part of them. Both methods raise ``QueryError``, and ``OSError`` if a process that
    had to be asked is gone."""

    async def stores(self) -> list[StoreInfo]:
        """All stores of the application, by name, with the partitions that are here."""
        ...

    async def ask(self, question: Question) -> Part:
        """The part of the answer that is here; it may be all of it."""
        ...
