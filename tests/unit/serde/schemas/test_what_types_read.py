"""What the comparison of two types says is what happens: old values are written, and read as the new type."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from dataclasses import field, is_dataclass, make_dataclass
from dataclasses import fields as fields_of
from typing import Any, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pystreams.errors import SerializationError
from pystreams.serde import JsonSerde, MsgpackSerde, Serde
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Effect, Finding
from pystreams.serde.schemas.comparison import changes_keys, compare
from tests.examples import examples

UTC = dt.UTC


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class MoreSizes(enum.Enum):
    SMALL = "s"
    MEDIUM = "m"
    LARGE = "l"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


#: Types of single values and some of their values: those at the edges.
LEAVES: dict[Any, list[Any]] = {
    type(None): [None],
    bool: [True, False],
    int: [0, 1, -7, 2**62],
    float: [0.0, 1.0, -2.5, 1e300],
    str: ["", "a", "1", "ü"],
    dt.datetime: [dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1, 3, tzinfo=UTC)],  # noqa: DTZ001
    dt.date: [dt.date(2020, 2, 29)],
    dt.time: [dt.time(1, 2, 3)],
    dt.timedelta: [dt.timedelta(days=1, seconds=2)],
    uuid.UUID: [uuid.UUID(int=5)],
    decimal.Decimal: [decimal.Decimal("1.50"), decimal.Decimal(3), decimal.Decimal("-1E+3")],
    bytes: [b"", b"ab", b"abc"],
    Size: list(Size),
    MoreSizes: list(MoreSizes),
    Level: list(Level),
}

CODECS = {"json": JsonSerde, "msgpack": MsgpackSerde}


def findings(was: Serde[Any], now: Serde[Any]) -> list[Finding]:
    return compare(schema_of(was), schema_of(now))


def effect(found: list[Finding]) -> Effect:
    return max((finding.effect for finding in found), default=Effect.READS_ON)


def fails_to_read(was: Serde[Any], now: Serde[Any], value: Any) -> bool:
    data = was.serializer("topic")(value)
    try:
        now.deserializer("topic")(data)
    except SerializationError:
        return True
    return False


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("was", LEAVES, ids=lambda kind: kind.__name__)
def test_single_values_are_read_as_it_says(codec: Any, was: Any) -> None:
    wrong = [
        now.__name__
        for now in LEAVES
        if any(fails_to_read(codec(was), codec(now), value) for value in LEAVES[was])
        != (effect(findings(codec(was), codec(now))) is Effect.FAILS)
    ]
    assert wrong == []


#: pydantic reads numbers as times, which they never were: that counts as unreadable.
MISTAKEN = [(Level, dt.datetime), (Level, dt.time), (Level, dt.timedelta)]


@pytest.mark.parametrize("was", LEAVES, ids=lambda kind: kind.__name__)
def test_single_values_are_read_by_pydantic_as_it_says(was: Any) -> None:
    def model(kind: Any) -> Any:
        return JsonSerde(pydantic.create_model("Model", x=(kind, ...)))

    old = model(was)
    written = [old.type.model_construct(x=value) for value in LEAVES[was]]
    wrong = [
        now.__name__
        for now in LEAVES
        if (was, now) not in MISTAKEN
        and any(fails_to_read(old, model(now), value) for value in written)
        != (effect(findings(old, model(now))) is Effect.FAILS)
    ]
    assert wrong == []


# Types that are made of others: a version, another one, and values of the first.

NAMES = ("a", "b", "c", "d")
KINDS = (int, float, str, bool)


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Any:
    choice = draw(st.integers(0, 9 if depth else 4))
    if choice <= 3:
        return KINDS[choice]
    if choice == 4:
        return draw(st.sampled_from([Size, MoreSizes, dt.date, Any, None, uuid.UUID]))
    inner = draw(types(depth - 1))
    if choice == 5:
        return list[inner]
    if choice == 6:
        return dict[str, inner]
    if choice == 7:
        return inner if inner in (Any, None) else inner | None
    return draw(objects(depth - 1))


@st.composite
def fields(draw: st.DrawFn, depth: int) -> list[tuple[str, Any, bool]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    return [(name, draw(types(depth)), draw(st.booleans())) for name in names]


@st.composite
def objects(draw: st.DrawFn, depth: int = 2, form: str | None = None) -> Any:
    return made(
        draw(fields(depth)),
        form or draw(st.sampled_from(["struct", "dataclass", "typed dict", "omits", "closed", "array"])),
    )


def made(of: list[tuple[str, Any, bool]], form: str) -> Any:
    """A class with these fields: name, type, and whether it may be missing, with a default of its type."""
    needed = [(name, kind) for name, kind, optional in of if not optional]
    others = [(name, kind, default_of(kind)) for name, kind, optional in of if optional]
    if form == "typed dict":
        hints = {name: NotRequired[kind] if optional else kind for name, kind, optional in of}
        return TypedDict("Made", hints)  # type: ignore[operator]
    if form == "dataclass":
        with_default = [(name, kind, field(default_factory=lambda d=d: d)) for name, kind, d in others]
        return make_dataclass("Made", [*needed, *with_default])
    defaults = [
        (name, kind, msgspec.field(default_factory=lambda d=d: d) if kind not in KINDS else d)
        for name, kind, d in others
    ]
    options = {"omits": {"omit_defaults": True}, "closed": {"forbid_unknown_fields": True}}
    options["array"] = {"array_like": True}
    return msgspec.defstruct("Made", [*needed, *defaults], **options.get(form, {}))


def default_of(kind: Any) -> Any:
    simple = {int: 0, float: 0.5, str: "", bool: False, Any: None, None: None, Size: Size.SMALL}
    if kind in simple:
        return simple[kind]
    return next(iter(LEAVES[kind])) if kind in LEAVES else st_value(kind)


def st_value(kind: Any) -> Any:
    """The simplest value of a type that is made of others."""
    return smallest(msgspec.inspect.type_info(kind))


def smallest(kind: Any) -> Any:
    inspect = msgspec.inspect
    if isinstance(kind, inspect.UnionType):
        return None
    if isinstance(kind, inspect.ListType):
        return []
    if isinstance(kind, inspect.DictType):
        return {}
    if isinstance(kind, inspect.TypedDictType):
        return {f.name: smallest(f.type) for f in kind.fields if f.required}
    if isinstance(kind, inspect.StructType | inspect.DataclassType):
        return kind.cls(**{f.name: smallest(f.type) for f in kind.fields if f.required})
    plain = {
        "IntType": 0,
        "FloatType": 0.5,
        "StrType": "",
        "BoolType": False,
        "AnyType": None,
        "NoneType": None,
    }
    name = type(kind).__name__
    if name == "EnumType":
        return next(iter(kind.cls))
    return (
        plain[name]
        if name in plain
        else {"DateType": dt.date(2020, 2, 29), "UUIDType": uuid.UUID(int=5)}[name]
    )


def values(kind: Any) -> st.SearchStrategy[Any]:
    return of_info(msgspec.inspect.type_info(kind))


def of_info(kind: Any) -> st.SearchStrategy[Any]:
    inspect = msgspec.inspect
    simple: dict[str, st.SearchStrategy[Any]] = {
        "IntType": st.integers(-5, 5),
        "FloatType": st.sampled_from([0.5, 1.0, -2.25]),
        "StrType": st.sampled_from(["", "a", "1", "s"]),
        "BoolType": st.booleans(),
        "NoneType": st.none(),
        "AnyType": st.sampled_from([None, 1, "a", [1], {"a": 1}, {}]),
        "DateType": st.just(dt.date(2020, 2, 29)),
        "UUIDType": st.just(uuid.UUID(int=5)),
    }
    name = type(kind).__name__
    if name in simple:
        return simple[name]
    if isinstance(kind, inspect.EnumType):
        return st.sampled_from(list(kind.cls))
    if isinstance(kind, inspect.UnionType):
        return st.one_of([of_info(one) for one in kind.types])
    if isinstance(kind, inspect.ListType):
        return st.lists(of_info(kind.item_type), max_size=3)
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(st.sampled_from(NAMES), of_info(kind.value_type), max_size=3)
    needed = {f.name: of_info(f.type) for f in kind.fields if f.required}
    others = {f.name: of_info(f.type) for f in kind.fields if not f.required}
    parts = st.fixed_dictionaries(needed, optional=others)
    return parts if isinstance(kind, inspect.TypedDictType) else parts.map(lambda given: kind.cls(**given))


def plain(value: Any) -> Any:
    """A value as lists and dicts, with the fields that are left out where it is written."""
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        return list(fields.values()) if value.__struct_config__.array_like else fields
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields_of(value)}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else msgspec.to_builtins(value)


def kept(was: Any, now: Any) -> bool:
    """Whether everything of a plain value is in another. Objects may have more fields, and arrays of fields, too."""
    if isinstance(was, dict):
        return isinstance(now, dict) and all(name in now and kept(was[name], now[name]) for name in was)
    if isinstance(was, list | tuple):
        return isinstance(now, list | tuple) and len(was) <= len(now) and all(map(kept, was, now))
    return bool(was == now)


@examples(80)
@given(data=st.data(), codec=st.sampled_from(list(CODECS)))
def test_what_reads_on_is_read_whole_and_what_fails_can_fail(data: st.DataObject, codec: str) -> None:
    was, now = data.draw(types(), "was"), data.draw(types(), "now")
    check(CODECS[codec](was), CODECS[codec](now), data)


@examples(80)
@given(
    data=st.data(),
    codec=st.sampled_from(list(CODECS)),
    form=st.sampled_from(["struct", "dataclass", "typed dict", "omits", "closed", "array"]),
)
def test_versions_of_one_object_are_read_as_it_says(data: st.DataObject, codec: str, form: str) -> None:
    was = data.draw(fields(1), "was")
    now = list(was)
    for _ in range(data.draw(st.integers(1, 2))):
        change = data.draw(st.sampled_from(["add", "drop", "type", "default", "rename"]))
        at = data.draw(st.integers(0, max(0, len(now) - 1)))
        free = [name for name in NAMES if name not in {one[0] for one in now}]
        if change == "add" and free:
            now.append((free[0], data.draw(types(1)), data.draw(st.booleans())))
        elif now and change == "drop":
            del now[at]
        elif now and change == "type":
            now[at] = (now[at][0], data.draw(types(1)), now[at][2])
        elif now and change == "default":
            now[at] = (now[at][0], now[at][1], not now[at][2])
        elif now and change == "rename" and free:
            now[at] = (free[0], *now[at][1:])
    check(CODECS[codec](made(was, form)), CODECS[codec](made(now, form)), data)


def check(was: Serde[Any], now: Serde[Any], data: st.DataObject) -> None:
    verdict = effect(findings(was, now))
    value = data.draw(values(was.type), "value")  # type: ignore[attr-defined]
    written = was.serializer("topic")(value)
    try:
        read = now.deserializer("topic")(written)
    except SerializationError:
        assert verdict is Effect.FAILS
        return
    if verdict is Effect.READS_ON:
        assert kept(plain(value), plain(read))


@examples(60)
@given(data=st.data(), codec=st.sampled_from(list(CODECS)))
def test_what_cannot_be_read_fails_for_some_value(data: st.DataObject, codec: str) -> None:
    was, now = CODECS[codec](data.draw(types(1), "was")), CODECS[codec](data.draw(types(1), "now"))
    assume(effect(findings(was, now)) is Effect.FAILS)
    # Elements that happen to be read as fields, or fields as elements, were never meant as such.
    told = str(schema_of(was)), str(schema_of(now))
    assume(not any("'list'" in one and "'array'" in other for one, other in (told, told[::-1])))
    some = many_values(msgspec.inspect.type_info(was.type))
    assert any(fails_to_read(was, now, value) for value in some)


def many_values(kind: Any) -> list[Any]:
    """Values of a type such that each thing that can be in it is in one of them."""
    inspect = msgspec.inspect
    simple: dict[str, list[Any]] = {
        "IntType": LEAVES[int],
        "FloatType": LEAVES[float],
        "StrType": LEAVES[str],
        "BoolType": LEAVES[bool],
        "NoneType": [None],
        "AnyType": [None, 1, "a", True, 0.5, [1], {"a": None}, {}],
        "DateType": LEAVES[dt.date],
        "UUIDType": LEAVES[uuid.UUID],
    }
    name = type(kind).__name__
    if name in simple:
        return simple[name]
    if isinstance(kind, inspect.EnumType):
        return list(kind.cls)
    if isinstance(kind, inspect.UnionType):
        return [value for one in kind.types for value in many_values(one)]
    if isinstance(kind, inspect.ListType):
        return [[], *([value] for value in many_values(kind.item_type))]
    if isinstance(kind, inspect.DictType):
        return [{}, *({name: value} for name in ("q", *NAMES) for value in many_values(kind.value_type))]
    whole = {f.name: many_values(f.type) for f in kind.fields}
    first = {name: some[0] for name, some in whole.items()}
    least = {f.name: whole[f.name][0] for f in kind.fields if f.required}
    found = [least, first, *({**first, name: value} for name, some in whole.items() for value in some)]
    return found if isinstance(kind, inspect.TypedDictType) else [kind.cls(**given) for given in found]


@examples(60)
@given(
    data=st.data(),
    codec=st.sampled_from(list(CODECS)),
    form=st.sampled_from(["struct", "dataclass", "typed dict", "omits", "closed", "array"]),
)
def test_keys_that_are_not_said_to_change_have_the_same_bytes(
    data: st.DataObject, codec: str, form: str
) -> None:
    was = data.draw(fields(1), "was")
    now = data.draw(st.permutations(was), "now")
    if was and data.draw(st.booleans(), "another type"):
        now = [(now[0][0], data.draw(types(1), "type"), now[0][2]), *now[1:]]
    old, new = CODECS[codec](made(was, form)), CODECS[codec](made(now, form))
    assume(not changes_keys(findings(old, new)))
    value = data.draw(values(old.type), "value")
    written = old.key_serializer("topic")(value)
    assert new.key_serializer("topic")(new.deserializer("topic")(written)) == written
