"""Gives aggregators the timestamps of records."""

from __future__ import annotations

from dataclasses import replace

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction


def with_record_time(aggregator: UserFunction, environment: OperatorEnvironment) -> UserFunction:
    """The aggregator as a function of aggregate and value, if it ``takes_time`` after them: that of the record."""
    if not aggregator.takes_time:
        return aggregator
    call, cell = aggregator.call, environment.cell
    return replace(aggregator, call=lambda old, value: call(old, value, cell.record[3]), takes_time=False)
