"""Protects aggregates from users' functions that change them in place, where the old aggregate is still needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.functions import UserFunction
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic

#: Copies an aggregate; None: no copies are needed.
Copy = Callable[[Any], Any] | None


def copier(environment: OperatorEnvironment, store: StoreSpec, *, needed: bool) -> Copy:
    """A function that copies values of a store, through their bytes. None if copies are not ``needed``, or the values
    are immutable."""
    serde = store.value_serde
    if not needed or serde.immutable:
        return None
    topic = changelog_topic(environment.application_id, store.name)
    encode, decode = serde.serializer(topic), serde.deserializer(topic)
    return lambda value: None if value is None else decode(encode(value))


def on_a_copy(aggregator: UserFunction, copy: Copy) -> UserFunction:
    """The aggregator, called with a copy of the aggregate."""
    if copy is None:
        return aggregator
    call, made = aggregator.call, copy
    if aggregator.takes_key:
        return replace(aggregator, call=lambda key, old, value: call(key, made(old), value))
    return replace(aggregator, call=lambda old, value: call(made(old), value))


def merging_a_copy(merger: UserFunction, copy: Copy) -> UserFunction:
    """The merger, called with a copy of the second aggregate, which is still used elsewhere."""
    if copy is None:
        return merger
    call, made = merger.call, copy
    if merger.takes_key:
        return replace(merger, call=lambda key, one, two: call(key, one, made(two)))
    return replace(merger, call=lambda one, two: call(one, made(two)))
