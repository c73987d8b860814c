"""Foreign-key joins of tables: a row of the left table refers to a row of the right table, which has another key.

The left side subscribes to the right row (``SubscriptionSend``). The right side stores the subscription
(``SubscriptionReceive``) and answers: at once (``SubscriptionJoin``), and whenever its row changes
(``ForeignTableJoin``). The left side joins its row with the answer, unless the row has changed meanwhile
(``ResponseJoin``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import record_forwarder
from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.dsl.operators.table_join import OUT_OF_ORDER
from pystreams.dsl.operators.value_getter import ValueGetter, joiner_of_three
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.serde.base import AnySerde
from pystreams.serde.subscriptions import (
    Instruction,
    Response,
    Subscription,
    combined_key,
    primary_key_of,
    value_hash,
)
from pystreams.topology.nodes import ResolveSerde

_DELETIONS = frozenset({Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE})
_DELETE_SILENTLY = Instruction.DELETE_KEY_NO_PROPAGATE
_DELETE_AND_PROPAGATE = Instruction.DELETE_KEY_AND_PROPAGATE
_ANSWER = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
_ANSWER_IF_THERE = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE

#: A value that differs from every hash.
_NOT_ASKED = b""

#: The instructions for a change of a row, each with its foreign key.
Instructions = list[tuple[Any, Instruction]]


@dataclass(frozen=True, slots=True)
class JoinSerdes:
    """The serdes of keys and values on both sides of a join. ``topic`` is the topic of subscriptions, without the
    application's id. As in Java, serdes get artificial topic names, because these bytes are not records of a topic."""

    topic: str
    primary_key: AnySerde
    foreign_key: AnySerde
    value: AnySerde

    def resolved(self, resolve: ResolveSerde) -> JoinSerdes:
        return replace(
            self,
            primary_key=resolve(self.primary_key, "key"),
            foreign_key=resolve(self.foreign_key, "key"),
            value=resolve(self.value, "value"),
        )

    def codecs(self, environment: OperatorEnvironment) -> _Codecs:
        topic = f"{environment.application_id}-{self.topic}"
        return _Codecs(
            self.primary_key.key_serializer(f"{topic}-pk"),
            self.primary_key.deserializer(f"{topic}-pk"),
            self.foreign_key.key_serializer(f"{topic}-fk"),
            self.value.serializer(f"{topic}-vh"),
        )


class _Codecs(NamedTuple):
    encode_primary: Callable[[Any], bytes]
    decode_primary: Callable[[bytes], Any]
    encode_foreign: Callable[[Any], bytes]
    encode_value: Callable[[Any], bytes]


@dataclass(eq=False, slots=True)
class _Side(ObjectOperation):
    """A step that has the serdes of its join."""

    serdes: JoinSerdes

    def with_serdes(self, resolve: ResolveSerde) -> _Side:
        return replace(self, serdes=self.serdes.resolved(resolve))


@dataclass(eq=False, slots=True)
class SubscriptionSend(_Side):
    """Sends a subscription for each change of the left table. Source: SubscriptionSendProcessorSupplier."""

    takes_changes: ClassVar[bool] = True
    extractor: UserFunction
    left: bool
    #: The left table is versioned: only changes of the latest version count.
    from_versioned: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        encode_primary, _, encode_foreign, encode_value = self.serdes.codecs(environment)
        call, takes_key = self.extractor.call, self.extractor.takes_key
        forward, partition = environment.forward, environment.partition

        def foreign_key(key: Any, value: Any) -> Any:
            if value is None:
                return None
            return call(key, value) if takes_key else call(value)

        def differ(one: Any, other: Any) -> bool:
            return one is None or encode_foreign(one) != encode_foreign(other)

        forward_record = record_forwarder(environment)

        def ask_again(key: Any, value: Any, timestamp: int, headers: Headers) -> bool:
            foreign = foreign_key(key, value)
            if foreign is None:
                return False
            hash_, primary_key = value_hash(encode_value(value)), encode_primary(key)
            subscription = Subscription(hash_, _ANSWER, primary_key, partition)
            asked[primary_key] = hash_
            forward_record(foreign, subscription, timestamp, headers)
            return True

        asking = _asking(environment, self.serdes)
        asking.again, asked, left = ask_again, asking.asked, self.left
        if left:
            instruct = _left_instructions(foreign_key, differ)
        else:
            instruct = _inner_instructions(foreign_key, differ, environment.drop)

        latest_only, drop = self.from_versioned, environment.drop

        def process(key: Any, new: Any, old: Any, timestamp: int, headers: Headers, latest: bool) -> None:
            if latest_only and not latest:
                drop(OUT_OF_ORDER)
                return
            instructions = instruct(key, new, old)
            if not instructions:
                return
            hash_ = None if new is None else value_hash(encode_value(new))
            primary_key = encode_primary(key)
            if not left and instructions[-1][1] is not _ANSWER_IF_THERE:
                asked[primary_key] = hash_
            for foreign, instruction in instructions:
                forward(foreign, Subscription(hash_, instruction, primary_key, partition), timestamp, headers)

        return Operator(process)


class _Asking:
    """The state that the steps of an inner join share in a task."""

    __slots__ = ("again", "asked")

    def __init__(self) -> None:
        #: Subscribes again for the current row. Returns False if the row has no foreign key.
        self.again: Callable[[Any, Any, int, Headers], bool] = lambda *_: False
        #: By primary key: the hash of the last subscription that is certainly answered, until the answer arrives. It is
        #: lost at a restart: a row may then subscribe once more than necessary.
        self.asked: dict[bytes, bytes | None] = {}


def _asking(environment: OperatorEnvironment, serdes: JoinSerdes) -> _Asking:
    return environment.shared(f"{serdes.topic} asking", _Asking)


def _misses(environment: OperatorEnvironment, serdes: JoinSerdes) -> Misses:
    """Counts the subscriptions that have found no row; a subscription may find its row later."""
    return environment.shared(f"{serdes.topic} misses", lambda: Misses(every=False))


def _left_instructions(
    foreign_key: Callable[[Any, Any], Any], differ: Callable[[Any, Any], bool]
) -> Callable[[Any, Any, Any], Instructions]:
    """The instructions of a left join. Every change needs an answer, because every row has a result. For a row without
    a foreign key the answer is null."""

    def instruct(key: Any, new: Any, old: Any) -> Instructions:
        if new is None and old is None:
            return []
        old_key, new_key = foreign_key(key, old), foreign_key(key, new)
        if old_key is not None and differ(new_key, old_key):
            return [(old_key, _DELETE_SILENTLY), (new_key, _ANSWER)]
        return [(new_key, _ANSWER)]

    return instruct


def _inner_instructions(
    foreign_key: Callable[[Any, Any], Any], differ: Callable[[Any, Any], bool], drop: Callable[[str], None]
) -> Callable[[Any, Any, Any], Instructions]:
    """The instructions of an inner join. A null answer is needed only if there may be a result to delete."""

    def instruct(key: Any, new: Any, old: Any) -> Instructions:
        old_key = foreign_key(key, old)
        new_key = foreign_key(key, new)
        if new_key is None:
            if new is not None:
                drop("null foreign key")
            return [] if old_key is None else [(old_key, _DELETE_AND_PROPAGATE)]
        if old_key is not None and differ(new_key, old_key):
            return [(old_key, _DELETE_SILENTLY), (new_key, _ANSWER)]
        return [(new_key, _ANSWER_IF_THERE)]

    return instruct


@dataclass(eq=False, slots=True)
class SubscriptionReceive(_Side):
    """Stores the subscriptions to rows of the right table, by (foreign key, the bytes of the primary key). Source:
    SubscriptionReceiveProcessorSupplier."""

    store: str

    def open(self, environment: OperatorEnvironment) -> Operator:
        encode_foreign = self.serdes.codecs(environment).encode_foreign
        write = environment.store(self.store).write
        drop, forward = environment.drop, environment.forward

        def process(key: Any, value: Subscription | None, timestamp: int, headers: Headers) -> None:
            if value is None:
                raise ValueError("a subscription of a foreign-key join is null")
            if key is not None:
                combined = combined_key(encode_foreign(key), value.primary_key)
                write(combined, None if value.instruction in _DELETIONS else value, timestamp)
            elif value.instruction is not _ANSWER:
                drop("null foreign key")
                return
            forward((key, value.primary_key), value, timestamp, headers)

        return Operator(process)


@dataclass(eq=False, slots=True)
class SubscriptionJoin(_Side):
    """Answers a subscription. Source: SubscriptionJoinProcessorSupplier.

    Unlike Java, it ignores changes that a cache still holds back: if such a row were deleted before the next flush, a
    subscriber that had got it would not learn about the deletion.
    """

    table: ValueGetter

    def open(self, environment: OperatorEnvironment) -> Operator:
        decode_primary = self.serdes.codecs(environment).decode_primary
        get, forward_record = self.table.open(environment, flushed=True), record_forwarder(environment)
        misses = _misses(environment, self.serdes)
        environment.count_misses(misses, Partner.of_foreign_key(self.table.store_names()))

        def go_on(look_up: Callable[..., Any]) -> None:
            nonlocal get
            get = look_up

        get = misses.until_found(get, go_on)

        def process(key: tuple[Any, bytes], value: Subscription, timestamp: int, headers: Headers) -> None:
            foreign, primary_key = key
            entry = None if foreign is None else get(foreign)
            found = None
            if entry is not None:
                found, found_timestamp = entry
                if found_timestamp > timestamp:
                    timestamp = found_timestamp
            instruction = value.instruction
            if instruction is _DELETE_SILENTLY or (instruction is _ANSWER_IF_THERE and entry is None):
                return
            if instruction is _DELETE_AND_PROPAGATE:
                found = None
            answer = Response(value.hash, found, value.primary_partition)
            forward_record(decode_primary(primary_key), answer, timestamp, headers)

        return Operator(process)


@dataclass(eq=False, slots=True)
class ForeignTableJoin(_Side):
    """Sends a changed row of the right table to all its subscribers. If a subscription cannot be deserialized, the
    handler decides, and the others get their answers (in Java the later ones do not).

    Source: ForeignTableJoinProcessorSupplier.
    """

    takes_changes: ClassVar[bool] = True
    store: str
    #: The right table is versioned: only changes of the latest version count.
    from_versioned: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        codecs = self.serdes.codecs(environment)
        decode_primary, encode_foreign = codecs.decode_primary, codecs.encode_foreign
        subscriptions = environment.store(self.store).without_headers()
        drop, forward, failed = environment.drop, environment.forward, environment.failed_waiting
        latest_only, misses = self.from_versioned, _misses(environment, self.serdes)

        def first_answer(*answer: Any) -> None:
            """Called for the first match: from then on, misses are not counted any more."""
            nonlocal forward
            misses.found = True
            forward = environment.forward
            forward(*answer)

        forward = first_answer

        def process(key: Any, new: Any, _old: Any, timestamp: int, headers: Headers, latest: bool) -> None:
            if key is None:
                drop("null key")
                return
            if latest_only and not latest:
                drop(OUT_OF_ORDER)
                return
            prefix = combined_key(encode_foreign(key), b"")
            with subscriptions.prefix_scan(prefix) as found:
                while True:
                    asking = None
                    try:
                        combined, (subscription, _) = next(found)
                        asking = primary_key_of(combined)
                        primary_key = decode_primary(asking)
                    except StopIteration:
                        return
                    except Exception as error:  # noqa: BLE001 - a serde of the user's raises what it likes
                        failed(error, None, None, (asking, None))
                        continue
                    answer = Response(subscription.hash, new, subscription.primary_partition)
                    forward(primary_key, answer, timestamp, headers)

        return Operator(process)


@dataclass(eq=False, slots=True)
class ResponseJoin(_Side):
    """Joins an answer with the row that subscribed, if the row is unchanged. Source: ResponseJoinProcessorSupplier.

    An answer to an older row is dropped. But a null answer may be the only message that the result must be deleted,
    because the change of the row since then needed no answer. Java then keeps the result for ever; here the current row
    subscribes again.
    """

    table: ValueGetter
    joiner: UserFunction
    left: bool

    def open(self, environment: OperatorEnvironment) -> Operator:
        get, get_flushed = self.table.open(environment), self.table.open(environment, flushed=True)
        codecs = self.serdes.codecs(environment)
        encode_primary, encode_value = codecs.encode_primary, codecs.encode_value
        join, left = joiner_of_three(self.joiner, swapped=False), self.left
        drop, forward = environment.drop_as_usual, environment.forward
        asking = _asking(environment, self.serdes)
        asked = asking.asked

        def settle(key: Any, timestamp: int, headers: Headers) -> None:
            """Handle a null answer to an older row: the current row subscribes again, or its result is deleted."""
            flushed = get_flushed(key)
            hash_ = None if flushed is None else value_hash(encode_value(flushed[0]))
            if asked.get(encode_primary(key), _NOT_ASKED) == hash_:
                return
            if flushed is not None:
                value, since = flushed
                # The time may be unknown, for a row that a step above computes or holds back.
                if asking.again(key, value, timestamp if since < 0 else since, headers):
                    return
            forward(key, None, timestamp, headers)

        def process(key: Any, answer: Response | None, timestamp: int, headers: Headers) -> None:
            if answer is None:
                raise ValueError("an answer of a foreign-key join is null")
            if asked and asked.get(primary_key := encode_primary(key), _NOT_ASKED) == answer.hash:
                del asked[primary_key]
            entry = get(key)
            value, hash_ = (None, None) if entry is None else (entry[0], value_hash(encode_value(entry[0])))
            if hash_ != answer.hash:
                drop()
                if answer.value is None and not left:
                    settle(key, timestamp, headers)
            elif answer.value is None and (entry is None or not left):
                forward(key, None, timestamp, headers)
            else:
                forward(key, join(key, value, answer.value), timestamp, headers)

        return Operator(process)


def to_primary_partition(_topic: str, _key: Any, answer: Response, _partitions: int) -> int | None:
    """The partition of the row that subscribed. Answers to subscriptions of older versions are partitioned by key."""
    return answer.primary_partition
