"""How many random examples a property is tried with: few in a run of all tests, many with ``make prove-properties``."""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import settings

#: The factor by which ``make prove-properties`` multiplies all numbers of examples.
TIMES: Final = int(os.environ.get("PYSTREAMS_TESTS_EXAMPLES", "1"))


def examples(few: int, **others: Any) -> settings:
    """Settings for a property that a run of all tests tries with ``few`` examples. ``others``: further arguments of
    ``hypothesis.settings``."""
    return settings(max_examples=few * TIMES, **others)
