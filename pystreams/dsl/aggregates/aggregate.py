"""The interface of a declared aggregate: it folds values into a state, merges states, and shows a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from pystreams.dsl.aggregates.selectors import Selector


class Aggregation(ABC):
    """One field of a row of declared aggregates: it knows the type of its values.

    A state is never changed in place. If two lists of records follow each other in the order of a task,
    ``merge(state of one, state of the other)`` is the state of both; if the aggregate is ``order_free``, also of two
    lists in any order.
    """

    #: Whether ``update`` needs the record's timestamp.
    needs_time: ClassVar[bool] = False
    #: The state without values.
    empty: ClassVar[Any] = None

    def __init__(
        self, selector: Selector, state_type: Any, *, shown_type: Any = None, order_free: bool | None
    ) -> None:
        self.selector = selector
        #: The type of states, as they are stored.
        self.state_type = state_type
        #: Whether a state holds more than is shown of it.
        self.hides = shown_type is not None
        #: The type of what users see of a state.
        self.shown_type = state_type if shown_type is None else shown_type
        #: Whether states may be merged in any order, with the same bytes as a result. None: that depends on the
        #: values, so ask ``merges_freely``.
        self.order_free = order_free

    def merges_freely(self, state: Any) -> bool:
        """Whether ``state``, of the values so far, may be merged in any order with others of which this is true."""
        return bool(self.order_free)

    def add(self, state: Any, value: Any, timestamp: int) -> Any:
        """The next state. ``value`` is that of the record. As in SQL, None is ignored, except by the count of
        records."""
        chosen = None if value is None else self.selector.choose(value)
        return state if chosen is None else self.update(state, chosen, timestamp)

    @abstractmethod
    def update(self, state: Any, chosen: Any, timestamp: int) -> Any:
        """The next state, with what the selector has chosen, which is not None."""

    @abstractmethod
    def merge(self, one: Any, two: Any) -> Any:
        """The state of the values of ``one``, followed by those of ``two``."""

    def shown(self, state: Any) -> Any:
        """A state as users see it."""
        return state


class Row(Protocol):
    """The aggregates of one step, whose states together make a value of its table."""

    @property
    def merges(self) -> bool:
        """Whether ``merge`` can be called."""
        ...

    def row(self, states: tuple[Any, ...], /) -> Any:
        """The value with these states."""
        ...

    def merge(self, one: Any, two: Any, /) -> Any:
        """The value of the records of two values."""
        ...
