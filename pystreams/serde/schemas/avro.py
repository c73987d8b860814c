"""Avro schemas: their normal form, and how records of one schema are read by another, as in fastavro.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, TypeAlias

from pystreams.serde.schemas.finding import Effect, Finding, Schema, fails, gone_field, loses, reads_on, worst
from pystreams.serde.schemas.type_comparison import compare_types
from pystreams.serde.schemas.wording import listed, shown

#: An Avro schema as parsed JSON: a name, a union as a list, or anything else as a dict.
Avro: TypeAlias = "str | list[Any] | dict[str, Any]"

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = ("record", "error", "enum", "fixed")
_LOGICAL = ("logicalType", "precision", "scale")

_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
}


def normal_form(schema: Avro, namespace: str = "") -> Avro:
    """A schema with full names, without documentation and other properties that do not affect the bytes."""
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else _full(schema, namespace)
    if isinstance(schema, list):
        return [normal_form(one, namespace) for one in schema]
    kind = schema["type"]
    logical = {name: schema[name] for name in _LOGICAL if name in schema}
    if isinstance(kind, dict | list):
        return normal_form(kind, namespace)
    if kind in _NAMED:
        return {**_named(schema, namespace), **logical}
    for parts in ("items", "values"):
        if parts in schema:
            return {"type": kind, parts: normal_form(schema[parts], namespace)}
    return {"type": kind, **logical} if logical else normal_form(kind, namespace)


def _named(schema: dict[str, Any], namespace: str) -> dict[str, Any]:
    name = _full(schema["name"], schema.get("namespace", namespace))
    within = name.rpartition(".")[0]
    aliases = [_full(alias, within) for alias in schema.get("aliases", ())]
    normal: dict[str, Any] = {"type": "record" if schema["type"] == "error" else schema["type"], "name": name}
    normal |= {"aliases": aliases} if aliases else {}
    normal |= {key: schema[key] for key in ("symbols", "size", "default") if key in schema}
    if "fields" in schema:
        normal["fields"] = [_field(field, within) for field in schema["fields"]]
    return normal


def _field(field: dict[str, Any], namespace: str) -> dict[str, Any]:
    kept: dict[str, Any] = {key: field[key] for key in ("name", "default", "aliases") if key in field}
    return {**kept, "type": normal_form(field["type"], namespace)}


def _full(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def compare_avro(was: Schema, now: Schema) -> list[Finding]:
    """The effect on records that one ``AvroSerde`` wrote and another reads."""
    if was.get("references") != now.get("references"):
        return fails("refers to other schemas, whose contents are not known here")
    if was["schema"] is None or now["schema"] is None:
        if was["schema"] is not now["schema"]:
            return fails("has a schema in one version only: records may have any other schema")
        found: list[Finding] = []
    else:
        found = _Resolution(was["schema"], now["schema"]).of(was["schema"], now["schema"])
    if was["as"] is None or now["as"] is None or worst(found) is Effect.FAILS:
        return found
    # The schema determines the bytes. Fields that the values' type does not have are lost when values are read.
    found_paths = {finding.path for finding in found}
    of_types = compare_types(was["as"], now["as"], "json")
    gone = [one for one in of_types if one.effect is Effect.LOSES and one.path not in found_paths]
    return found + gone


class _Resolution:
    def __init__(self, was: Avro, now: Avro) -> None:
        self._was, self._now = _by_name(was), _by_name(now)
        self._known: dict[tuple[str, str], list[Finding]] = {}

    def of(self, old: Avro, new: Avro) -> list[Finding]:
        """The findings for two schemas or parts of them."""
        old, new = _resolved(old, self._was), _resolved(new, self._now)
        if isinstance(old, list):
            return self._from_union(old, new)
        if isinstance(new, list):
            best = self._best(old, new)
            return fails(f"was {_brief(old)}, is now {_brief(new)}") if _whole_fails(best) else best
        found = self._named(old, new) if isinstance(old, dict) and isinstance(new, dict) else None
        return _primitives(old, new) if found is None else found

    def _from_union(self, old: list[Any], new: Avro) -> list[Finding]:
        branches = new if isinstance(new, list) else [new]
        found: list[Finding] = []
        for one in old:
            best = self._best(_resolved(one, self._was), branches)
            if _whole_fails(best):
                best = fails(f"may be {_brief(one)}, which {_brief(new)} does not take")
            found += [finding for finding in best if finding not in found]
        return found or (
            [] if isinstance(new, list) else reads_on(f"was {_brief(old)}, is now {_brief(new)}")
        )

    def _best(self, old: Avro, branches: list[Any]) -> list[Finding]:
        found = [self.of(old, branch) for branch in branches]
        return min(found, key=lambda one: (worst(one), len(one)), default=fails("has no branch"))

    def _named(self, old: dict[str, Any], new: dict[str, Any]) -> list[Finding] | None:
        """The findings for named types; None for types that are compared like primitives."""
        kinds = old["type"], new["type"]
        if kinds == ("array", "array"):
            return [finding.below("[]") for finding in self.of(old["items"], new["items"])]
        if kinds == ("map", "map"):
            return [finding.below("{}") for finding in self.of(old["values"], new["values"])]
        if old["type"] != new["type"] or old["type"] not in _NAMED:
            return None
        if not _same_name(old, new):
            return fails(
                f"was {old['name']}, is now {new['name']}: Avro compares names (an alias keeps the old one)"
            )
        if old["type"] == "enum":
            return _enums(old, new)
        if old["type"] == "fixed":
            return (
                [] if old["size"] == new["size"] else fails(f"had {old['size']} bytes, has now {new['size']}")
            )
        pair = old["name"], new["name"]
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._records(old, new)
        return self._known[pair]

    def _records(self, old: dict[str, Any], new: dict[str, Any]) -> list[Finding]:
        before = {field["name"]: field for field in old["fields"]}
        found: list[Finding] = []
        taken: dict[str, str] = {}
        for field in new["fields"]:
            name = field["name"]
            source = next((one for one in (name, *field.get("aliases", ())) if one in before), None)
            if source is None:
                found.append(_new_field(field))
                continue
            taken[source] = name
            of_field = self.of(before[source]["type"], field["type"])
            if source != name:
                of_field = [
                    *of_field,
                    *reads_on(f"was written as {source}, which is still read", rewrites=False),
                ]
            if before[source].get("default", ...) != field.get("default", ...):
                of_field = [*of_field, *reads_on(_another_default(before[source], field), rewrites=False)]
            found += [finding.below(name) for finding in of_field]
        added = [field for field in new["fields"] if field["name"] not in taken.values()]
        gone = (field for name, field in before.items() if name not in taken)
        found += [self._gone(field, added) for field in gone]
        order = [name for name in before if name in taken]
        return found + (reads_on("has its fields in another order") if order != list(taken) else [])

    def _gone(self, field: dict[str, Any], added: list[dict[str, Any]]) -> Finding:
        able = [one["name"] for one in added if worst(self.of(field["type"], one["type"])) is Effect.READS_ON]
        name = field["name"]
        like = max(able, key=lambda other: SequenceMatcher(None, name, other).ratio(), default=None)
        return gone_field(name, Effect.LOSES, "is gone", like)


def _new_field(field: dict[str, Any]) -> Finding:
    if "default" not in field:
        return Finding(field["name"], Effect.FAILS, "is new, and has no default")
    return Finding(field["name"], Effect.READS_ON, f"is new, with the default {shown(field['default'])}")


def _another_default(old: dict[str, Any], new: dict[str, Any]) -> str:
    was, now = (
        f"the default {shown(one['default'])}" if "default" in one else "no default" for one in (old, new)
    )
    return f"has {now}, no longer {was}: so do records without the field"


def _enums(old: dict[str, Any], new: dict[str, Any]) -> list[Finding]:
    missing = [symbol for symbol in old["symbols"] if symbol not in new["symbols"]]
    if missing and "default" not in new:
        return fails(f"could be {listed(missing)}, which is not allowed any more")
    if missing:
        return loses(f"could be {listed(missing)}, which is read as {new['default']}")
    return [] if old["symbols"] == new["symbols"] else reads_on(f"may be {listed(new['symbols'])}")


def _primitives(old: Avro, new: Avro) -> list[Finding]:
    was, now = _kind(old), _kind(new)
    if was == now and was in _PRIMITIVES:
        if old == new:
            return []
        return reads_on(f"was {_brief(old)}, is now {_brief(new)}: old records are read unchanged")
    if now in _PROMOTED.get(was, ()):
        return reads_on(f"was {_brief(old)}, is now {_brief(new)}")
    return fails(f"was {_brief(old)}, is now {_brief(new)}")


def _kind(schema: Avro) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _same_name(old: dict[str, Any], new: dict[str, Any]) -> bool:
    names = {new["name"], *new.get("aliases", ())}
    return old["name"] in names or old["name"].rpartition(".")[2] == new["name"].rpartition(".")[2]


def _whole_fails(found: list[Finding]) -> bool:
    return worst(found) is Effect.FAILS and any(not finding.path for finding in found)


def _by_name(schema: Avro) -> dict[str, Any]:
    """All named types of a schema, by name."""
    found: dict[str, Any] = {}

    def look(part: Any) -> None:
        if isinstance(part, list):
            for one in part:
                look(one)
        elif isinstance(part, dict):
            if part["type"] in _NAMED:
                found[part["name"]] = part
            for one in (part.get("items"), part.get("values"), *(f["type"] for f in part.get("fields", ()))):
                look(one)

    look(schema)
    return found


def _resolved(schema: Avro, named: dict[str, Any]) -> Any:
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _brief(schema: Avro) -> str:
    if isinstance(schema, list):
        return " or ".join(map(_brief, schema))
    if isinstance(schema, str):
        return schema
    return str(schema.get("logicalType") or schema.get("name") or schema["type"])
