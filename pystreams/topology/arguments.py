"""Checks of the arguments of ``Topology`` and of the DSL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from pystreams.config import offset_reset, reset_duration_ms
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import BYTES, serde_for
from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import BytesSerde
from pystreams.state.spec import StoreSpec
from pystreams.timestamps import resolve_extractor
from pystreams.topology.deferred import DeferredSerde, Origin


def topic_names(topics: str | Iterable[str]) -> tuple[str, ...]:
    """One topic or several as a tuple."""
    if isinstance(topics, str):
        return (topics,)
    if not isinstance(topics, Iterable):
        raise TopologyError(
            f"{topics!r} does not name a topic", hint="give a name, several, or a pattern: re.compile(...)"
        )
    return tuple(topics)


def store_list(stores: str | StoreSpec | Iterable[str | StoreSpec]) -> tuple[str | StoreSpec, ...]:
    """One store or several as a tuple. A text is one name, not an iterable of one-letter names."""
    listed = (stores,) if isinstance(stores, str | StoreSpec) else tuple(stores)
    for store in listed:
        if not isinstance(store, str):
            checked_store(store)
    return listed


def checked_store(store: object) -> StoreSpec:
    """``store``, if it is a ``StoreSpec``. Raises ``TopologyError`` for anything else."""
    if not isinstance(store, StoreSpec):
        raise TopologyError(
            f"{store!r} does not describe a store",
            hint="give a store of Stores: Stores.key_value_store(name, key, value)",
        )
    return store


def topic_chooser(topic: str | Callable[..., str], step: str) -> UserFunction | None:
    """The function that chooses the topic for each record; None if ``topic`` is a name."""
    if isinstance(topic, str):
        return None
    if not callable(topic):
        raise TopologyError(f"{step} takes the name of a topic, or a function that returns it, not {topic!r}")
    return UserFunction.of(topic, "topic", step)


def check_supplier(name: str, supplier: object) -> None:
    """Raise ``TopologyError`` if ``supplier`` is not a class or function that makes processors."""
    if not callable(supplier):
        raise TopologyError(
            f"{name} got {supplier!r}, a single processor; each task needs its own",
            hint="give the class, or a function that makes a new processor at each call",
        )
    UserFunction.of(supplier, "supply", f"processor {name}")


def extractor(given: Any) -> Any:
    """The extractor for the argument ``timestamp_extractor=``."""
    return None if given is None else resolve_extractor(given)


def checked_partitioner(partitioner: Any, step: str) -> Any:
    """``partitioner``: None, or a function of (topic, key, value, partitions). Raises ``TopologyError`` for others."""
    if partitioner is not None:
        UserFunction.of(partitioner, "partition", f"the partitioner of {step}")
    return partitioner


def checked_offset_reset(given: object, step: str) -> str:
    """The offset reset strategy of a source as text; equal durations have equal texts. Raises ``TopologyError`` for an
    unknown strategy and for a negative duration."""
    try:
        strategy = offset_reset(given)
    except ValueError as error:
        raise TopologyError(
            f"auto_offset_reset={given!r} is unknown", where=step, hint=f"choose one of {error}"
        ) from None
    duration_ms = reset_duration_ms(strategy)
    return strategy if duration_ms is None else offset_reset(timedelta(milliseconds=duration_ms))


def source_serde(given: type | AnySerde | None, part: str, name: str) -> AnySerde:
    """The serde of a source's keys or values: bytes, unless a type is given here or as a default."""
    return DeferredSerde(Origin(f"the {part}s of {name}"), BYTES) if given is None else serde_for(given)


def sink_serde(given: type | AnySerde | None, part: str, name: str) -> AnySerde:
    """The serde of a sink's keys or values, whose type must be given here or as a default."""
    return DeferredSerde(Origin(f"the {part}s that {name} writes")) if given is None else serde_for(given)


def default_serde(configured: type | AnySerde | None) -> AnySerde | None:
    """The configured default. ``bytes`` counts as none, because it is the setting's own default; a function that
    returns bytes says so by its type."""
    serde = None if configured is None else serde_for(configured)
    return None if isinstance(serde, BytesSerde) else serde
