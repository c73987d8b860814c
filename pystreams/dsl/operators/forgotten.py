"""A word about aggregators that forget to return what they changed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction

log = logging.getLogger(__name__)

#: Step and place of functions that were warned of: once for all tasks of the process.
_warned: set[tuple[str, str]] = set()


def none_warning(environment: OperatorEnvironment, function: UserFunction) -> Callable[[], None]:
    """What to call when ``function`` made None of a record and no aggregate was stored before: almost always a function
    that changes its aggregate in place. Warns once; None deletes the key all the same, as in Java."""
    step = environment.node_name

    def warn() -> None:
        if (step, function.location) in _warned:
            return
        _warned.add((step, function.location))
        log.warning(
            "%s: %s gave None, which deletes the key; a function that changes its aggregate in place must return it",
            step,
            function.location,
        )

    return warn
