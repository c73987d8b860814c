"""Looks now and then at how much is held in columns, so that it is written when memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pystreams.dsl.operators.final_results import Room
from pystreams.dsl.operators.state_columns import BATCH_RECORDS

#: The number of aggregates that are encoded to estimate how large all of them are.
SAMPLE_ROWS: Final = 20
#: The number of records before the first look. It doubles with each look, up to a whole batch.
_FIRST_RECORDS: Final = 64
_FREE_PART: Final = 16


class Looks:
    """When a look is due depends on the number of records alone, and not on how they come in batches."""

    __slots__ = ("_held", "_records_max", "_room", "records")

    def __init__(self, room: Room, held: Callable[[], int]) -> None:
        """``held`` gives how many entries are held."""
        self._room = room
        self._held = held
        self._records_max = _FIRST_RECORDS
        #: The number of records until the next look.
        self.records = 0
        self.begin()

    def due(self, records: int) -> bool:
        """Note that ``records`` were added, at most ``self.records``. Returns whether the next look is due."""
        self.records -= records
        return not self.records

    def full(self, some: Callable[[], Iterable[Any]]) -> bool:
        """Whether too much is held. ``some`` gives a few aggregates, which are like all."""
        held = self._held()
        # The last part stays free: with little room left, looks would come one after the other.
        return self._room.full(some(), held) or held + self._room.fit // _FREE_PART >= self._room.fit

    def begin(self) -> None:
        """After a look: decide when the next one is due. The first ones come early: little is known of sizes."""
        self.records = max(1, min(self._records_max, self._room.fit - self._held()))
        self._records_max = min(BATCH_RECORDS, 2 * self._records_max)
