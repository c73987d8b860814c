"""Advice for users if a new version would lose stored content: for ``diff``, and for a refused start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pystreams.take_over.last_run import Shape
from pystreams.take_over.losses import has_other_partitions
from pystreams.topology.declared_rows import declared_stores
from pystreams.topology.difference import Change
from pystreams.topology.names import is_generated

#: Kinds of stores of which a join has several, with names that are derived from the join's name.
_OF_STREAM_JOINS: Final = frozenset({"join_window", "list"})


def ways_on(losing: Sequence[Change], buffers: Collection[str], before: Shape, now: Shape) -> list[str]:
    """A text for each way to continue; ways that keep the content come first. ``losing`` are the changes of stores and
    repartition topics that must not happen unnoticed; ``buffers`` are lost and accepted together with other stores."""
    stores = [change for change in losing if change.kind == "store"]
    topics = [change for change in losing if change.kind != "store"]
    ways = [*_ways_to_keep_stores(stores, before, now), *_ways_to_keep_fields(losing, now)]
    if any(not has_other_partitions(change, before, now) for change in topics):
        ways.append("let the old version catch up first (run it with --until-caught-up)")
    if stores and not topics:
        options = " ".join(f"--accept-loss {change.name}" for change in stores if change.name not in buffers)
        ways.append(f"accept that this content is lost: run … {options} (or the setting accept_loss)")
    ways.append("compute all again: pystreams reset, another application id, or a backfill")
    return ways


def what_waits(store: str, buffers: Mapping[str, str]) -> str:
    """An addition to a sentence about a store that loses content: the ``buffers`` that are lost with it."""
    waiting = sorted(buffer for buffer, one in buffers.items() if one == store)
    return f" (and with it what waits in {', '.join(waiting)})" if waiting else ""


def _ways_to_keep_stores(stores: Sequence[Change], before: Shape, now: Shape) -> Iterator[str]:
    kinds, kinds_now = _kinds(before), _kinds(now)
    gone = [change for change in stores if change.name not in kinds_now]
    after_steps = [change.name for change in gone if _is_named_after_step(change.name, kinds[change.name])]
    unclear = False
    for change in gone:
        if change.name in after_steps:
            continue
        if change.successor is None or kinds[change.name] in _OF_STREAM_JOINS:
            unclear = True
            continue
        name = _name_argument(change.successor, kinds[change.name])
        yield f'keep the content of {change.name}, if it is now {change.successor}: {name}, was="{change.name}"'
    if unclear and kinds_now.keys() - kinds.keys():
        yield 'keep the content of a store that was only renamed: name="new name", was="old name"'
    if after_steps:
        yield f"give their steps the names back after which {', '.join(after_steps)} are called: step="


def _name_argument(name: str, kind: str) -> str:
    """The argument that gives a store this name; a generated one is replaced by one that stays."""
    given = "new name" if is_generated(name) else name
    if kind == "buffer":
        return f'step="{given.removesuffix("-store")}"'
    return f'name="{given}"'


def _ways_to_keep_fields(losing: Sequence[Change], now: Shape) -> Iterator[str]:
    """The ways to keep renamed fields. The program must declare the former name, because the bytes do not show it."""
    declared = declared_stores(now)
    of_rows: dict[str, str] = {}
    of_models: dict[str, str] = {}
    for change in losing:
        for place, new in change.renamed.items():
            # A field of a row may itself be a model of the user.
            is_argument = change.name in declared and place.removeprefix("value.").isidentifier()
            (of_rows if is_argument else of_models)[place] = new
    if of_rows:
        old = _last_part(next(iter(of_rows)))
        yield (
            f"{_other_names(of_rows)}, keep the argument of aggregate(), {old}=, and rename the field afterwards: "
            ".to_stream().map_values(…)"
        )
    if of_models:
        place, new = next(iter(of_models.items()))
        old = _last_part(place)
        yield (
            f"{_other_names(of_models)}, keep the name in the stored bytes:"
            f' {new} = msgspec.field(name="{old}") in a msgspec.Struct, or'
            f' {new} = Field(validation_alias=AliasChoices("{new}", "{old}")) in a pydantic model'
        )


def _other_names(renamed: Mapping[str, str]) -> str:
    pairs = ", and ".join(f"{place} is now {new}" for place, new in renamed.items())
    return f"a field with another name is another field: if {pairs}"


def _last_part(place: str) -> str:
    return place.rpartition(".")[2]


def _kinds(topology: Shape) -> Mapping[str, str]:
    return {store[0]: store[1] for part in topology for store in part["stores"]}


def _is_named_after_step(name: str, kind: str) -> bool:
    """Whether a store has no name of its own, so that its former name cannot be declared."""
    return (
        kind == "join_buffer" or name.endswith("-subscription-store") or "-SUBSCRIPTION-STATE-STORE-" in name
    )
