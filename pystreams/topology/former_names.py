"""The former names of renamed stores (``was=`` in the program), in shapes (``fingerprint.shape``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pystreams.state.spec import StoreSpec

_FORMER = "was"


def entry_of_former_names(specs: Iterable[StoreSpec]) -> dict[str, dict[str, str]]:
    """The entry for former names in a part of a shape; empty if no store of the part has one."""
    names = {spec.name: spec.was for spec in specs if spec.was is not None}
    return {_FORMER: names} if names else {}


def without_former_names(shape: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A shape without former names: the one that is kept once the content has been carried over."""
    return [{what: content for what, content in part.items() if what != _FORMER} for part in shape]


def names_to_be(was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """New names of stores by the names that they have in ``was``. Stores that have the new name already are left
    out."""
    known = {store[0] for part in was for store in part["stores"]}
    return {
        old: new
        for part in now
        for new, old in part.get(_FORMER, {}).items()
        if old in known and new not in known
    }


def renamed(shape: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """A shape with stores renamed, in the steps that refer to them, too."""
    return [_renamed_part(part, names) for part in shape] if names else [dict(part) for part in shape]


def _renamed_part(part: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        **part,
        "stores": [[names.get(store[0], store[0]), *store[1:]] for store in part["stores"]],
        # A processor has kind, name, parents, and its parameters.
        "nodes": [
            [*node[:3], *_replaced(node[3:], names)] if node[0] == "processor" else node
            for node in part["nodes"]
        ],
        **({"headers": _replaced(part["headers"], names)} if "headers" in part else {}),
    }


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_replaced(item, names) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(item, names) for name, item in value.items()}
    return value
