"""Declared aggregates among the arguments of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from inspect import isfunction
from keyword import iskeyword
from typing import Any, NamedTuple

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.given_model import check_types, types_of_model
from pystreams.dsl.aggregates.rows import Rows, RowSerde, StoredRowSerde, model_name
from pystreams.dsl.aggregates.selectors import Selecting
from pystreams.dsl.materialized import StoreName, StoreOptions
from pystreams.errors import TopologyError
from pystreams.serde.base import AnySerde


@dataclass(frozen=True, slots=True, repr=False)
class Aggregate:
    """A declared aggregate, as ``agg.sum("cents")`` returns it. ``spelled`` is how it was written; ``bind`` makes it
    for the values of a stream."""

    spelled: str
    bind: Callable[[Selecting], Aggregation]

    def __repr__(self) -> str:
        return self.spelled


class Declared(NamedTuple):
    """The parts of declared aggregates that a step needs."""

    rows: Rows
    #: The serde of the store.
    stored: AnySerde
    #: The serde of the table's values.
    shown: AnySerde
    #: The options of the store, which has other values than the table.
    options: StoreOptions


_TAKEN = {
    *(option.name for option in fields_of(StoreOptions)),
    "step",
    "initializer",
    "aggregator",
    "merger",
    "merge",
}
_EXAMPLE = 'aggregate(total=agg.sum("cents"), n=agg.count())'


def split(
    arguments: Mapping[str, Any], step: object, merge: object = None, **functions: Any
) -> tuple[dict[str, Aggregate], dict[str, Any]]:
    """The declared aggregates among the arguments of ``aggregate``, and the other arguments. ``functions`` are its
    parameters that declared aggregates replace, as they replace ``merge``. Raises ``TopologyError`` for both, and for
    neither."""
    for name, given in [("step", step), ("merge", merge), *arguments.items(), *functions.items()]:
        _check(name, given, unnamed=name in functions)
    fields = {name: given for name, given in arguments.items() if isinstance(given, Aggregate)}
    there = [name for name, given in functions.items() if given is not None]
    if fields and merge is not None:
        there.append("merge")
    if fields and there:
        raise TopologyError(
            f"aggregate got declared aggregates ({', '.join(fields)}) and {' and '.join(there)}",
            why="declared aggregates know how they begin, and how values are added",
            hint=f"give one or the other: {_EXAMPLE}, or functions alone",
        )
    if not fields and len(there) < len(functions):
        missing = " and ".join(name for name in functions if name not in there)
        raise TopologyError(
            f"aggregate needs {missing}, or declared aggregates",
            hint=f"aggregate({', '.join(functions)}), or {_EXAMPLE}",
        )
    return fields, {name: given for name, given in arguments.items() if name not in fields}


def refuse(arguments: Mapping[str, Any], whose: str, instead: str) -> None:
    """Raise ``TopologyError`` if there are declared aggregates among the arguments of a step that takes none."""
    names = [name for name, given in arguments.items() if isinstance(given, Aggregate)]
    if names:
        raise TopologyError(
            f"{whose} takes no declared aggregates ({', '.join(names)})",
            why="they are for the records of one grouped stream, windowed or not",
            hint=instead,
        )


def declared(
    fields: Mapping[str, Aggregate], options: StoreOptions, store: StoreName, values: AnySerde
) -> Declared:
    """The rows with these fields. ``values`` is the serde of the stream's values."""
    given = options.value
    types: Mapping[str, Any] = dict.fromkeys(fields) if given is None else types_of_model(given, fields)
    bound = {
        name: fields[name].bind(Selecting(f"{name}={fields[name]!r}", values, type_))
        for name, type_ in types.items()
    }
    if given is not None:
        check_types(given, types, bound)
    rows = Rows(model_name(store.name) if store.by_user else "Rows", bound, given)
    shown = RowSerde(rows)
    stored = StoredRowSerde(rows) if rows.hide else shown
    return Declared(rows, stored, shown, replace(options, value=None))


def _check(name: str, given: object, *, unnamed: bool) -> None:
    """Raise ``TopologyError`` for a declared aggregate that cannot be a field. ``unnamed``: the name is not the user's,
    but that of a parameter."""
    if getattr(given, "__module__", None) == "pystreams.agg" and isfunction(given):
        raise TopologyError(
            f"aggregate got the function agg.{given.__name__} as {name}",
            hint=f"call it: {name}=agg.{given.__name__}(...)",
        )
    if not isinstance(given, Aggregate):
        return
    if unnamed:
        raise TopologyError(f"aggregate got {given!r} without a name", hint=f"name the field: {_EXAMPLE}")
    if name in _TAKEN:
        raise TopologyError(
            f"{name}={given!r} cannot be a field, because aggregate has an argument {name}=",
            hint=f"name the field in another way: {name}_={given!r}",
        )
    if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
        raise TopologyError(
            f"{name!r} cannot be the name of a field ({given!r})",
            hint="a field has a name of Python that does not begin with _",
        )
