"""Counts the records of a join that find nothing, so that the user hears of a join in which no record ever does.

Counting costs nothing once a join has found something: until then it calls the functions that are made here, afterwards
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pystreams.topology.names import topic_of_store

_KEYS: Final = (
    "whether the keys of both have one type and form, whether both topics are partitioned alike by them"
)
_ROWS: Final = "and whether the table has rows"


class Partner(NamedTuple):
    """The partner that the records of a join look for (``a row in table customers``), and a hint if none finds one.

    ``looking`` are the records that look for it, in the plural.
    """

    sought: str
    hint: str
    looking: str = "records"

    @property
    def found(self) -> str:
        """The end of a sentence: ``records found a row in table customers``."""
        return f"{self.looking} found {self.sought}"

    @classmethod
    def in_table(cls, stores: tuple[str, ...]) -> Partner:
        """A row with the record's key."""
        rows = "whether the table has rows, and whether these are earlier than the records"
        return cls(_row(stores), f"{_KEYS}, {rows}")

    @classmethod
    def in_global_table(cls, store: str) -> Partner:
        """A row with the key that ``key_fn`` returns."""
        return cls(_row((store,)), f"whether key_fn returns keys of the table's type and form, {_ROWS}")

    @classmethod
    def of_foreign_key(cls, stores: tuple[str, ...]) -> Partner:
        """A row with the key that ``foreign_key`` returns."""
        hint = f"whether foreign_key returns keys of the table's type and form, {_ROWS}"
        return cls(_row(stores), hint, "look-ups")

    @classmethod
    def in_other_table(cls) -> Partner:
        """A row with the same key."""
        return cls("a row in the other table", f"{_KEYS}, and whether both tables have rows", "changes")

    @classmethod
    def in_other_stream(cls) -> Partner:
        """A record with the same key, within the windows."""
        return cls(
            "a record in the other stream",
            f"{_KEYS}, and whether their times are as close as the windows ask",
        )


def _row(stores: tuple[str, ...]) -> str:
    return f"a row in table {' and '.join(map(topic_of_store, stores))}"


class Misses:
    """``records`` counts those of a join in one task that found nothing, ``found`` says whether any found something.
    ``every``: the join counts each of them; otherwise they are counted until one finds something. ``passes``: a record
    that finds nothing is joined with None (left join)."""

    __slots__ = ("every", "found", "passes", "records")

    def __init__(self, *, every: bool = True, passes: bool = False) -> None:
        self.every = every
        self.found = False
        self.passes = passes
        self.records = 0

    def until_found(
        self, look_up: Callable[..., Any], go_on: Callable[[Callable[..., Any]], None]
    ) -> Callable[..., Any]:
        """The function that the join calls instead of ``look_up`` until something is found; then ``go_on`` is called,
        after which the join must call ``look_up`` itself."""

        def first(*arguments: Any) -> Any:
            found = look_up(*arguments)
            if found is not None or self.found:
                self.found = True
                go_on(look_up)
            elif not self.every:
                self.records += 1
            return found

        return first

    def counting(self, encode: Callable[[Any], bytes], go_on: Callable[[], None]) -> Callable[[Any], bytes]:
        """For joins that read all records of a key: the function that a join calls instead of ``encode``, which it
        calls once for each record, until something is found; then ``go_on`` is called."""

        def counted(key: Any) -> bytes:
            if self.found:
                go_on()
            else:
                self.records += 1
            return encode(key)

        return counted

    def noting(
        self, join: Callable[[Any, Any, Any], Any], go_on: Callable[[], None]
    ) -> Callable[[Any, Any, Any], Any]:
        """The function that such a join calls instead of ``join`` until then."""

        def noted(key: Any, own: Any, other: Any) -> Any:
            if other is not None:
                self.found = True
                go_on()
            return join(key, own, other)

        return noted
