"""A record written by either side is read by the other: equal values, equal partitions, for every primitive serde and
for windowed keys."""

from __future__ import annotations

import math
import random
import struct
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from pystreams.partitioning import partition_for_key
from pystreams.serde import (
    BOOL,
    BYTES,
    FLOAT,
    FLOAT32,
    INT,
    INT16,
    INT32,
    STR,
    UUID,
    VOID,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
)
from pystreams.windowed import Windowed
from tests.interop.java_side import JavaSide
from tests.kafka.support import Cluster

PARTITIONS = 7
RANDOM_VALUES = 60
SIZE_MS = 10_000
INT64_MAX, INT32_MAX, INT16_MAX = (1 << 63) - 1, (1 << 31) - 1, (1 << 15) - 1


class Kind(NamedTuple):
    """A serde of ours, Java's of the same kind, values of both, and how a value travels to and fro as JSON."""

    java: str
    serde: Serde[Any]
    edges: list[Any]
    choose: Callable[[random.Random], Any]
    show: Callable[[Any], Any] = lambda value: value
    parse: Callable[[Any], Any] = lambda json: json


def any_text(choose: random.Random) -> str:
    """Characters of all lengths in UTF-8, and none that is half of one."""
    ranges = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
    return "".join(chr(choose.randint(*choose.choice(ranges))) for _ in range(choose.randint(0, 12)))


def any_bytes(choose: random.Random) -> bytes:
    return choose.randbytes(choose.randint(0, 20))


def show_double(value: float) -> str:
    return struct.pack(">d", value).hex()


def parse_double(text: str) -> float:
    return struct.unpack(">d", bytes.fromhex(text))[0]


def show_float(value: float) -> str:
    return struct.pack(">f", value).hex()


def parse_float(text: str) -> float:
    return struct.unpack(">f", bytes.fromhex(text))[0]


FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]
TEXTS = ["", "a", "\0", "héllo", "日本語", "🚀 go", "\U0010ffff", "\ufeffbom", "x" * 5_000]
RAW = [b"", b"\0", b"\xff" * 300]
#: Smallest, greatest and smallest normal number of four bytes.
FLOAT32_LIMITS = [struct.unpack(">f", struct.pack(">I", bits))[0] for bits in (1, 0x7F7FFFFF, 0x00800000)]

KINDS = [
    Kind("string", STR, TEXTS, any_text),
    Kind(
        "long",
        INT,
        [0, -1, INT64_MAX, -INT64_MAX - 1],
        lambda choose: choose.randint(-INT64_MAX, INT64_MAX) >> choose.randint(0, 62),
    ),
    Kind(
        "integer",
        INT32,
        [0, -1, INT32_MAX, -INT32_MAX - 1],
        lambda choose: choose.randint(-INT32_MAX, INT32_MAX),
    ),
    Kind(
        "short",
        INT16,
        [0, -1, INT16_MAX, -INT16_MAX - 1],
        lambda choose: choose.randint(-INT16_MAX, INT16_MAX),
    ),
    Kind(
        "double",
        FLOAT,
        [*FLOATS, 5e-324, 1.7976931348623157e308],
        lambda choose: choose.uniform(-1, 1) * 10.0 ** choose.randint(-300, 300),
        show_double,
        parse_double,
    ),
    Kind(
        "float",
        FLOAT32,
        [*FLOATS, *FLOAT32_LIMITS],
        lambda choose: parse_float(f"{choose.getrandbits(31) % 0x7F800000:08x}"),
        show_float,
        parse_float,
    ),
    *(
        Kind(java, BYTES, RAW, any_bytes, bytes.hex, bytes.fromhex)
        for java in ("bytearray", "bytes", "bytebuffer")
    ),
    Kind(
        "uuid",
        UUID,
        [uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)],
        lambda choose: uuid.UUID(int=choose.getrandbits(128)),
        str,
        uuid.UUID,
    ),
    Kind("boolean", BOOL, [True, False], lambda choose: choose.random() < 0.5),
]


def windowed(inner: Kind, *, sessions: bool) -> Kind:
    """Windowed keys of another kind's values. A window ends after it starts; a session may end as it starts."""

    def window(key: Any, choose: random.Random) -> Windowed[Any]:
        start = choose.choice([0, choose.randint(0, 1 << 45)])
        return Windowed(
            key, start, start + (choose.choice([0, choose.randint(0, 1 << 30)]) if sessions else SIZE_MS)
        )

    fixed = random.Random(7)
    return Kind(
        f"session:{inner.java}" if sessions else f"time:{SIZE_MS}:{inner.java}",
        SessionWindowedSerde(inner.serde) if sessions else TimeWindowedSerde(inner.serde, SIZE_MS),
        [window(key, fixed) for key in inner.edges],
        lambda choose: window(inner.choose(choose), choose),
        lambda key: [inner.show(key[0]), key[1], key[2]],
        lambda json: Windowed(inner.parse(json[0]), json[1], json[2]),
    )


KINDS += [
    windowed(kind, sessions=sessions)
    for kind in KINDS
    if kind.java in ("string", "long")
    for sessions in (False, True)
]
IDS = [kind.java for kind in KINDS]


def same(a: Any, b: Any) -> bool:
    """Equal, type and bits: 0.0 is not -0.0, and nan is nan."""
    if isinstance(a, float) and isinstance(b, float):
        return show_double(a) == show_double(b)
    return type(a) is type(b) and a == b


@pytest.fixture(scope="module")
def choose() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"random values from seed {seed}")
    return random.Random(seed)


def values_of(kind: Kind, choose: random.Random) -> list[Any]:
    return [*kind.edges, *(kind.choose(choose) for _ in range(RANDOM_VALUES))]


def our_partition(kind: Kind, topic: str, key: Any) -> int:
    """The partition that a sink of ours takes: the key's bytes decide, of windowed keys the inner ones."""
    write = kind.serde.partition_bytes(topic) or kind.serde.key_serializer(topic)
    return partition_for_key(write(key), PARTITIONS)


def write_with_our_producer(cluster: Cluster, kind: Kind, values: list[Any]) -> None:
    write = kind.serde.key_serializer("ours")
    chosen_by_producer = kind.serde.partition_bytes("ours") is None
    with closing(cluster.broker.producer("interop", "interop")) as producer:
        for at, value in enumerate(values, 1):
            partition = None if chosen_by_producer else our_partition(kind, "ours", value)
            producer.send("ours", partition, write(value), write(value), at, ())
        producer.commit({}, None)


def read_raw(cluster: Cluster, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """All records of a topic as (partition, key, value, timestamp)."""
    return [
        (partition.partition, *line[:3])
        for partition in cluster.partitions(topic)
        for line in cluster.lines(partition).values()
    ]


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_either_reads_what_the_other_writes_and_both_choose_the_same_partition(
    cluster: Cluster, java: JavaSide, kind: Kind, choose: random.Random
):
    cluster.create("javas", "ours", partitions=PARTITIONS)
    values = values_of(kind, choose)
    javas = java.ask(
        "write",
        topic="javas",
        key=kind.java,
        value=kind.java,
        records=[[kind.show(value), kind.show(value), at] for at, value in enumerate(values, 1)],
    )
    write_with_our_producer(cluster, kind, values)

    read = kind.serde.deserializer("javas")
    read_here = {at: (place, read(key), read(value)) for place, key, value, at in read_raw(cluster, "javas")}
    ours = java.ask("read", topic="ours", key=kind.java, value=kind.java)
    read_there = {at: (place, kind.parse(key), kind.parse(value)) for place, key, value, at in ours}
    assert len(read_here) == len(read_there) == len(values)
    for at, value in enumerate(values, 1):
        for partition, key, value_found in (read_here[at], read_there[at]):
            assert same(key, value), value
            assert same(value_found, value), value
            assert partition == javas[at - 1] == our_partition(kind, "ours", value), value


def test_null_is_null_on_both_sides(cluster: Cluster, java: JavaSide):
    cluster.create("nulls")
    java.ask("write", topic="nulls", key="string", value="void", records=[["a", None, 1], [None, None, 2]])
    with closing(cluster.broker.producer("interop", "interop")) as producer:
        producer.send("nulls", None, b"b", None, 3, ())
        producer.send("nulls", None, None, b"c", 4, ())
        producer.commit({}, None)
    assert read_raw(cluster, "nulls") == [
        (0, b"a", None, 1),
        (0, None, None, 2),
        (0, b"b", None, 3),
        (0, None, b"c", 4),
    ]
    assert java.ask("read", topic="nulls", key="string", value="string") == [
        [0, "a", None, 1],
        [0, None, None, 2],
        [0, "b", None, 3],
        [0, None, "c", 4],
    ]


def test_half_a_character_is_a_question_mark_to_java_and_refused_here(cluster: Cluster, java: JavaSide):
    cluster.create("halves")
    java.ask("write", topic="halves", key="void", value="string", records=[[None, "a\ud800b", 1]])
    assert read_raw(cluster, "halves") == [(0, None, b"a?b", 1)]
    with pytest.raises(UnicodeEncodeError):
        STR.serializer("halves")("a\ud800b")


def test_what_should_be_void_and_is_not_is_refused_by_both(cluster: Cluster, java: JavaSide):
    cluster.create("not-void")
    cluster.write("not-void", [(None, "text", 1)], value=str)
    with pytest.raises(RuntimeError, match="RecordDeserializationException"):
        java.ask("read", topic="not-void", key="void", value="void")
    with pytest.raises(Exception, match="0 bytes expected for void"):
        cluster.read("not-void", value=VOID)
