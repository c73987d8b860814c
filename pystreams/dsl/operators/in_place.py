"""Aggregates that users' functions change in place, where somebody is still to see the old one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction
from pystreams.topology.names import changelog_topic

#: Makes a copy of an aggregate; None: nothing needs one.
Copy = Callable[[Any], Any] | None


def copier(environment: OperatorEnvironment, store: Any, *, needed: bool) -> Copy:
    """What copies the values of a store, by way of their bytes. None if copies are not ``needed``, or the values cannot
    be changed in place."""
    serde = store.spec.value_serde
    if not needed or serde.immutable:
        return None
    topic = changelog_topic(environment.application_id, store.name)
    encode, decode = serde.serializer(topic), serde.deserializer(topic)
    return lambda value: None if value is None else decode(encode(value))


def on_a_copy(aggregator: UserFunction, copy: Copy) -> UserFunction:
    """An aggregator that is given a copy of the aggregate."""
    if copy is None:
        return aggregator
    call, made = aggregator.call, copy
    if aggregator.takes_key:
        return replace(aggregator, call=lambda key, old, value: call(key, made(old), value))
    return replace(aggregator, call=lambda old, value: call(made(old), value))


def merging_a_copy(merger: UserFunction, copy: Copy) -> UserFunction:
    """A merger of two aggregates that is given a copy of the second, which others know."""
    if copy is None:
        return merger
    call, made = merger.call, copy
    if merger.takes_key:
        return replace(merger, call=lambda key, one, two: call(key, one, made(two)))
    return replace(merger, call=lambda one, two: call(one, made(two)))
