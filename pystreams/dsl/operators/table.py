"""Operations on tables: edges carry (new, old).

Those without a store are inlined by engine.codegen. This module also has the operators of those with a store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.topology.nodes import Operation


@dataclass(eq=False, slots=True)
class TableSource(ObjectOperation):
    """Makes a stream a table (``table()``, ``to_table()``). ``store`` None: no step needs it materialized.

    Source: KTableSource, KTableSource$KTableSourceProcessor.
    """

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str | None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        drop = environment.drop
        if self.store is None:
            forward = environment.forward

            def pass_on(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
                if key is None:
                    drop("null key")
                else:
                    forward(key, value, None, timestamp, headers, True)

            return Operator(pass_on)
        store = environment.store(self.store)
        encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
        forward_change, send_old = change_forwarder(environment, store), self.send_old_values
        forward_flushed(environment, store, send_old)
        # As in Java, with a cache the old value is always read: reading may fill the cache and evict entries.
        reads = cached or send_old

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                drop("null key")
                return
            key_bytes = encode_key(key)
            entry = read(key_bytes) if reads else None
            write(key_bytes, value, timestamp)
            if not cached:
                old = None if entry is None or not send_old else entry[0]
                forward_change(key, value, old, timestamp, headers)

        return Operator(process)


@dataclass(eq=False, slots=True)
class TableFilter(ObjectOperation):
    """Rows for which the predicate is not true become tombstones. Source: KTableFilter."""

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    predicate: UserFunction
    negate: bool
    store: str | None = None
    send_old_values: bool = False
    #: The parent table is versioned: a tombstone matters even if there was no row before.
    from_versioned: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        passes, takes_key, negate = self.predicate.call, self.predicate.takes_key, self.negate

        def kept(key: Any, value: Any) -> Any:
            if value is None:
                return None
            return value if bool(passes(key, value) if takes_key else passes(value)) != negate else None

        # With old values, a row that fails the predicate now and before is known to be no change.
        skips_nothing = self.send_old_values and not self.from_versioned
        return materialized_operator(self, environment, kept, skips_nothing=skips_nothing)


@dataclass(eq=False, slots=True)
class TableMapValues(ObjectOperation):
    """Maps the values of rows; the mapper is not called for null. Source: KTableMapValues."""

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    mapper: UserFunction
    store: str | None = None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        mapper, takes_key = self.mapper.call, self.mapper.takes_key

        def mapped(key: Any, value: Any) -> Any:
            if value is None:
                return None
            return mapper(key, value) if takes_key else mapper(value)

        return materialized_operator(self, environment, mapped, skips_nothing=False)


class Materializable(Protocol):
    """An operation on tables that may have a store of its own."""

    @property
    def store(self) -> str | None: ...
    @property
    def send_old_values(self) -> bool: ...


def materialized_operator(
    operation: Materializable,
    environment: OperatorEnvironment,
    compute: Callable[[Any, Any], Any],
    *,
    skips_nothing: bool,
) -> Operator:
    """An operator that stores the results of ``compute`` (key, value) in its own store."""
    assert operation.store is not None
    store = environment.store(operation.store)
    encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
    forward_change, send_old = change_forwarder(environment, store), operation.send_old_values
    forward_flushed(environment, store, send_old)

    def process(key: Any, new: Any, _old: Any, timestamp: int, headers: Headers, _is_latest: bool) -> None:
        value = compute(key, new)
        key_bytes = encode_key(key)
        entry = read(key_bytes) if send_old else None
        if entry is None and value is None and skips_nothing:
            return
        write(key_bytes, value, timestamp)
        if not cached:
            forward_change(key, value, None if entry is None else entry[0], timestamp, headers)

    return Operator(process)


@dataclass(eq=False, slots=True)
class TableToStream(Operation):
    """Forwards only the new value. Source: KTableImpl.toStream (KStreamMapValues)."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class TableRepartition(Operation):
    """``KTable.group_by``: forwards the change under the new key; the old value goes first if the keys differ.

    The mapper returns (key, value). Source: KTableRepartitionMap.
    """

    emits_changes: ClassVar[bool] = True
    mapper: UserFunction
    #: The table is versioned: changes that are not of the latest version do not affect the group.
    from_versioned: bool = False
