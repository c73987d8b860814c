"""What the sides of a foreign-key join tell each other has Java's bytes, in each version; other bytes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import SerializationError
from pystreams.serde import STR
from pystreams.serde.subscriptions import (
    Instruction,
    Response,
    ResponseSerde,
    Subscription,
    SubscriptionSerde,
    combined_key,
    primary_key_of,
    value_hash,
)

WRITE, READ = SubscriptionSerde().serializer("t"), SubscriptionSerde().deserializer("t")
WRITE_ANSWER, READ_ANSWER = ResponseSerde(STR).serializer("t"), ResponseSerde(STR).deserializer("t")

hashes = st.none() | st.binary(min_size=16, max_size=16)
int32s = st.integers(-(2**31), 2**31 - 1)


def test_the_hash_is_javas() -> None:
    assert value_hash(b"A1").hex() == "44463afc8a9a7f494453388baa434425"
    # Recorded with Kafka Streams 4.3.1.
    assert value_hash(b"k|1").hex() == "6f36062235febe808a0098aef3a6ced7"


def test_a_subscription_has_javas_bytes() -> None:
    subscription = Subscription(value_hash(b"k|1"), Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, b"a", 0)
    assert WRITE(subscription).hex() == "01036f36062235febe808a0098aef3a6ced76100000000"
    assert WRITE(Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"a", 2)).hex() == "81016100000002"


def test_the_first_version_is_read_and_kept() -> None:
    found = READ(bytes.fromhex("800161"))
    assert found == Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"a", None, 0)
    assert WRITE(found).hex() == "800161"


@given(hashes, st.sampled_from(Instruction), st.binary(), int32s)
def test_subscriptions_come_back(
    hash_: bytes | None, instruction: Instruction, key: bytes, partition: int
) -> None:
    subscription = Subscription(hash_, instruction, key, partition)
    assert READ(WRITE(subscription)) == subscription


@given(hashes, st.none() | st.text(min_size=1))
def test_answers_come_back(hash_: bytes | None, value: str | None) -> None:
    assert READ_ANSWER(WRITE_ANSWER(Response(hash_, value))) == Response(hash_, value)


def test_an_answer_of_no_bytes_is_none_as_in_java() -> None:
    assert READ_ANSWER(WRITE_ANSWER(Response(None, ""))).value is None


@given(st.binary(), st.binary())
def test_a_combined_key_begins_with_its_foreign_key(foreign: bytes, primary: bytes) -> None:
    combined = combined_key(foreign, primary)
    assert combined.startswith(combined_key(foreign, b""))
    assert primary_key_of(combined) == primary


@pytest.mark.parametrize("data", ["", "01", "0103", "81016100", "8109610000000a", "0203" + 20 * "00"])
def test_other_bytes_are_no_subscription(data: str) -> None:
    with pytest.raises(SerializationError, match="topic t"):
        READ(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["", "00", "0001", "81", "0100000000000000000000000000000000"])
def test_other_bytes_are_no_answer(data: str) -> None:
    with pytest.raises(SerializationError, match="topic t"):
        READ_ANSWER(bytes.fromhex(data))
