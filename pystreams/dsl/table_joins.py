"""Builds the join of two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.dsl import table
from pystreams.dsl.context import StepPlace
from pystreams.dsl.materialized import StoreOptions
from pystreams.dsl.operators.table_join import TableJoin, TableJoinMerge
from pystreams.dsl.operators.value_getter import JoinKind
from pystreams.dsl.origins import JoinOrigin
from pystreams.dsl.serdes import check_keys_meet, given_or, returned_by
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.topology.graph import JoinGraphNode

_PREFIX = "KTABLE-MERGE-"


def joined(
    this: table.KTable[Any, Any],
    other: object,
    joiner: Callable[..., Any],
    kind: JoinKind,
    step: str | None,
    options: StoreOptions,
) -> table.KTable[Any, Any]:
    """``this`` joined with ``other``, which must be a table. Source: KTableImpl.doJoin."""
    method = {JoinKind.INNER: "join", JoinKind.LEFT: "left_join", JoinKind.OUTER: "outer_join"}[kind]
    if not isinstance(other, table.KTable):
        raise TopologyError(
            f"{method} of a table takes a table, not {type(other).__name__}",
            hint="read a topic as a table with table(...), or make a stream a table with to_table()",
        )
    check_keys_meet(method, this._place.name, this._place.key, other._place.name, other._place.key)
    name, store_name = this._draw_names(_PREFIX, step, options)
    sources = this._place.copartitioned_with(other._place)
    this_needed, other_needed = kind.value
    if not other_needed:
        this._origin.send_old_values(force=True)
    if not this_needed:
        other._origin.send_old_values(force=True)
    function = UserFunction.of(joiner, "join", f"{method} {name}")
    getters = (this._origin.value_getter(), other._origin.value_getter())
    joins = (
        TableJoin(getters[1], function, kind, right=False),
        TableJoin(getters[0], function, kind, right=True),
    )
    for join, side in zip(joins, (this, other), strict=True):
        join.from_versioned = side._origin.versioned
    merge = TableJoinMerge(store_name)
    names = this._place.context.names
    this_name = names.step("KTABLE-JOINTHIS-", None if step is None else f"{step}-join-this")
    other_name = names.step("KTABLE-JOINOTHER-", None if step is None else f"{step}-join-other")
    key = given_or(options.key, this._place.key)
    value = returned_by(
        options.value,
        f"the value that {name} computes",
        function,
        this._place.value,
        other._place.value,
    )
    spec = None if store_name is None else options.key_value(store_name, key, value)
    node = JoinGraphNode(
        name,
        (
            (this_name, this._place.name, joins[0], getters[1].store_names()),
            (other_name, other._place.name, joins[1], getters[0].store_names()),
        ),
        merge,
        spec,
    )
    this._place.add(node)
    other._place.add(node)
    place = StepPlace(this._place.context, name, node, sources, key, value)
    history_ms = None if spec is None else spec.history_ms
    origin = JoinOrigin(this._origin, other._origin, joins, merge, history_ms=history_ms)
    return table.KTable(place, origin, spec, queryable=spec is not None)
