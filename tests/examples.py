"""How many random examples a property is tried with, and which of many combinations a test goes through: few in a run
of all tests, many with ``make prove-properties`` and all with ``make test-every-case``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from hypothesis import settings

T = TypeVar("T")

#: The factor by which ``make prove-properties`` multiplies all numbers of examples.
TIMES: Final = int(os.environ.get("PYSTREAMS_TESTS_EXAMPLES", "1"))

_EVERY_CASE: Final = os.environ.get("PYSTREAMS_TESTS_CASES") == "every"


def examples(few: int, **others: Any) -> settings:
    """Settings for a property that a run of all tests tries with ``few`` examples. ``others``: further arguments of
    ``hypothesis.settings``."""
    return settings(max_examples=few * TIMES, **others)


def chosen(cases: Iterable[T], usual: Callable[[T], bool]) -> list[T]:
    """Of the combinations of a test's parameters the ``usual`` ones, which have each value of each parameter; all of
    them with ``make test-every-case``."""
    return [case for case in cases if _EVERY_CASE or usual(case)]
