"""State machines as data: a mapping from each state to the states that may follow it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)


class IllegalTransitionError(RuntimeError):
    """A change of state that the state machine does not allow: a bug in pystreams."""

    def __init__(self, owner: object, old: Enum, new: Enum) -> None:
        super().__init__(f"{owner} cannot go from {old.name} to {new.name}")
        self.old = old
        self.new = new


def check_transition(
    owner: object, successors: Mapping[State, frozenset[State]], old: State, new: State
) -> State:
    """``new``, if it may follow ``old``. Raises ``IllegalTransitionError``, which names ``owner``."""
    if new not in successors[old]:
        raise IllegalTransitionError(owner, old, new)
    return new
