"""Aggregations of which only the last result of each key is observed, as in history: dictionaries hold them, and the
store gets each when it is final, or when there are too many.

The result is that of one commit with an unbounded cache. Nothing is serialized for a record, and no cache is asked.
Keys of types other than str are held under their bytes, because 1, 1.0 and True are equal in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, TypeAlias

from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_place import copier
from pystreams.errors import FoldingError, StreamsError, summarize
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic

NULL_KEY_OR_VALUE = "null key or value"
#: Why a step is not folded: the steps after it also need the results that it has replaced.
OLD_VALUES = "the steps after it see old values"

#: The memory of an entry beside its aggregate: dictionary, key, list, context. An aggregate takes several times the
#: bytes of its encoding.
_ENTRY_BYTES = 300
_OBJECT_FACTOR = 4
#: Sizes are looked at for the first time when this number of entries is held, and then with each doubling.
_FIRST_ENTRIES = 64
_SAMPLE_ENTRIES = 20

#: An aggregate (None: it is deleted), its timestamp, and the context of the record that changed it last.
Entry: TypeAlias = list[Any]

#: The first aggregate of a key, from the key and the value.
Begin: TypeAlias = Callable[[Any, Any], Any]


def beginning(environment: OperatorEnvironment, initializer: UserFunction, aggregator: UserFunction) -> Begin:
    """The function that makes the first aggregate of a key, and warns if that is None; of a null value it may be."""
    initialize, aggregate, takes_key = initializer.call, aggregator.call, aggregator.takes_key
    gave_none = none_warning(environment, aggregator)

    def begin(key: Any, value: Any) -> Any:
        first = aggregate(key, initialize(), value) if takes_key else aggregate(initialize(), value)
        if first is None and value is not None:
            gave_none()
        return first

    return begin


def fold_keys(
    environment: OperatorEnvironment, store: Any, begin: Begin, function: UserFunction, bytes_max: int
) -> Folded:
    """An aggregation by key; ``function`` gives the next aggregate. It holds about ``bytes_max`` bytes at most: the
    keys that were used last."""
    update, takes_key, drop = function.call, function.takes_key, environment.drop
    cell, encode_key, read, write = environment.cell, store.encode_key, store.read, store.write
    copy = copier(environment, store.spec, needed=True)
    reads = has_entries(store)
    # A key that is used is in the young generation. When this is full, those that are only in the old one are written.
    young: dict[Any, Entry] = {}
    old: dict[Any, Entry] = {}
    room = Room(environment, store.spec, bytes_max // 2)

    def process(key: Any, value: Any, timestamp: int, _headers: Headers) -> None:
        if key is None or value is None:
            drop(NULL_KEY_OR_VALUE)
            return
        address = key if key.__class__ is str else encode_key(key)
        entry = young.get(address) or found(address)
        before = entry[0]
        try:
            if before is None:
                entry[1] = timestamp
                aggregate = begin(key, value)
            else:
                aggregate = update(key, before, value) if takes_key else update(before, value)
            if copy is not None and (before is None or aggregate is value):
                aggregate = copy(aggregate)
        except Exception as error:
            raise failed_while_holding(environment, error) from error
        entry[0] = aggregate
        if timestamp > entry[1]:
            entry[1] = timestamp
        entry[2] = cell.record

    def found(address: Any) -> Entry:
        """The entry of a key that is not in the young generation, which it joins."""
        if len(young) >= room.entries and room.full(aggregates_of(young), len(young)):
            turn()
        entry = old.pop(address, None)
        if entry is None:
            item = read(key_bytes(address, encode_key)) if reads else None
            entry = [None, -1, None] if item is None else [*item, None]
        young[address] = entry
        return entry

    def turn() -> None:
        nonlocal young, old, reads
        context = cell.record
        with writing(environment):
            for address, (aggregate, timestamp, cell.record) in old.items():
                write(key_bytes(address, encode_key), aggregate, timestamp)
        cell.record = context
        reads = reads or bool(old)
        young, old = {}, young

    def flush() -> None:
        turn()
        turn()

    return Folded(process, flush)


def aggregates_of(held: Mapping[Any, Entry]) -> Iterator[Any]:
    """The kept aggregates."""
    return (entry[0] for entry in held.values())


class Room:
    """How many entries fit into ``bytes_max``, estimated by the size of a few of them."""

    def __init__(self, environment: OperatorEnvironment, store: StoreSpec, bytes_max: int) -> None:
        #: The number of entries that fit, as far as is known.
        self.fit = min(_FIRST_ENTRIES, max(1, bytes_max // _ENTRY_BYTES))
        #: Ask ``full`` when this number of entries is held.
        self.entries = self.fit
        self._bytes_max = bytes_max
        self._environment = environment
        self._encode = store.value_serde.serializer(changelog_topic(environment.application_id, store.name))

    def full(self, some: Iterable[Any], held: int) -> bool:
        """Whether no more than ``held`` entries fit, if these aggregates are like all."""
        sample = [aggregate for aggregate in islice(some, _SAMPLE_ENTRIES) if aggregate is not None]
        try:
            encoded = sum(len(self._encode(aggregate)) for aggregate in sample) / max(1, len(sample))
        except Exception as error:
            raise failed_while_holding(self._environment, error) from error
        self.fit = max(1, int(self._bytes_max / (_ENTRY_BYTES + _OBJECT_FACTOR * encoded)))
        self.entries = self.fit if self.fit <= held else min(self.fit, 2 * held)
        return self.fit <= held


@contextmanager
def writing(environment: OperatorEnvironment) -> Iterator[None]:
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        raise failed_while_holding(environment, error) from error


def failed_while_holding(environment: OperatorEnvironment, error: Exception) -> FoldingError:
    """The error for a failure that names no record. A function may have changed its aggregate before it failed; and if
    an aggregate cannot be written, the record that changed it is not known. The handlers need the state before."""
    return FoldingError(
        f"step {environment.node_name} has failed while it held its results back",
        why=summarize(error),
        hint="compute with exact updates (--exact-updates): then the error names the record",
    )


def key_bytes(address: Any, encode_key: Callable[[Any], bytes]) -> bytes:
    return encode_key(address) if address.__class__ is str else address


def has_entries(store: Any) -> bool:
    with closing(store.logged()) as entries:
        return next(entries, None) is not None
