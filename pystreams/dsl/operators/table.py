"""Operations on tables: edges carry (new, old).

Those without a store are inlined by engine.codegen; here are the operators of those that have one.
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
    """A stream becomes a table (``table()``, ``to_table()``). ``store`` None: nobody needs it materialised.

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
                    forward(key, value, None, True, timestamp, headers)

            return Operator(pass_on)
        store = environment.store(self.store)
        encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
        forward_change, send_old = change_forwarder(environment, store), self.send_old_values
        forward_flushed(environment, store, send_old)
        # With a cache the old value is read even if nobody wants it, as in Java: that may fill the cache and evict.
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
    """Rows that the predicate does not hold for become tombstones. Source: KTableFilter."""

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    predicate: UserFunction
    negate: bool
    store: str | None = None
    send_old_values: bool = False
    #: The table below keeps versions: what is not there may be news all the same.
    from_versioned: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        passes, takes_key, negate = self.predicate.call, self.predicate.takes_key, self.negate

        def kept(key: Any, value: Any) -> Any:
            if value is None:
                return None
            return value if bool(passes(key, value) if takes_key else passes(value)) != negate else None

        # A key that was not there and does not get there is no change, where old values tell so.
        skips_nothing = self.send_old_values and not self.from_versioned
        return materialized_operator(self, environment, kept, skips_nothing=skips_nothing)


@dataclass(eq=False, slots=True)
class TableMapValues(ObjectOperation):
    """The mapper is not called for null. Source: KTableMapValues."""

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
    """An operator that keeps what ``compute`` (key, value) gives in its own store."""
    assert operation.store is not None
    store = environment.store(operation.store)
    encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
    forward_change, send_old = change_forwarder(environment, store), operation.send_old_values
    forward_flushed(environment, store, send_old)

    def process(key: Any, new: Any, _old: Any, _is_latest: bool, timestamp: int, headers: Headers) -> None:
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
    """Forwards the new value alone. Source: KTableImpl.toStream (KStreamMapValues)."""

    keeps_key: ClassVar[bool] = True


@dataclass(eq=False, slots=True)
class TableRepartition(Operation):
    """``KTable.group_by``: forwards the change under the new key; old first where the key differs.

    The mapper gives (key, value). Source: KTableRepartitionMap.
    """

    emits_changes: ClassVar[bool] = True
    mapper: UserFunction
    #: The table keeps versions: changes that are not the latest ones are none of the group.
    from_versioned: bool = False
