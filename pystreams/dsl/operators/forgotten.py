"""Warns of aggregators that do not return the aggregate that they have changed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction

log = logging.getLogger(__name__)

#: Step and place of the functions that have caused a warning: one warning per function and process.
_warned: set[tuple[str, str]] = set()


def none_warning(environment: OperatorEnvironment, function: UserFunction) -> Callable[[], None]:
    """A function to call when an aggregator returned None and there was no aggregate before: almost always it changes
    its aggregate in place. It warns once. As in Java, None deletes the key all the same."""
    step = environment.node_name

    def warn() -> None:
        if (step, function.location) in _warned:
            return
        _warned.add((step, function.location))
        log.warning(
            "%s: %s returned None, which deletes the key; a function that changes its aggregate must also return it",
            step,
            function.location,
        )

    return warn
