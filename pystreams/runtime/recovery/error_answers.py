"""What a thread does about an error: a table from the error's ``action`` to a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from pystreams.errors import Action, StreamsError

A = TypeVar("A", bound=Callable[..., None])


class ErrorAnswers(Generic[A]):
    """The answers of one thread. An error whose action has none ends the thread."""

    def __init__(self, by_action: Mapping[Action, A]) -> None:
        self._by_action = by_action

    def to(self, error: StreamsError) -> A:
        """The answer to an error. Raises the error if there is none."""
        answer = self._by_action.get(error.action)
        if answer is None:
            raise error
        return answer
