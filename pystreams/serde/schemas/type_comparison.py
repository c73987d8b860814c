"""Predicts how msgspec and pydantic read values of one Python type as another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from pystreams.serde.schemas.finding import Effect, Finding, Schema, fails, gone_field, loses, reads_on, worst
from pystreams.serde.schemas.leaf_rules import conversion, limits_broken
from pystreams.serde.schemas.wording import brief, listed, shown

#: Kinds that are written as an array with elements of one type.
_ARRAYS = ("list", "set")


def compare_types(was: Schema, now: Schema, codec: str) -> list[Finding]:
    """The effect on values of ``was`` that are read as ``now``. ``codec`` is ``json``, ``msgpack`` (both of msgspec) or
    ``pydantic``."""
    return _Comparison(was, now, codec).of(was["type"], now["type"])


class _Comparison:
    def __init__(self, was: Schema, now: Schema, codec: str) -> None:
        self._was: Sequence[Schema] = was["objects"]
        self._now: Sequence[Schema] = now["objects"]
        self._codec = codec
        #: Pairs of objects that are compared already, or are being compared: the latter are assumed to be equal.
        self._known: dict[tuple[int, int], list[Finding]] = {}

    def of(self, old: Schema, new: Schema) -> list[Finding]:
        """The findings for two nodes, with paths relative to them."""
        if new["is"] == "any":
            return [] if old["is"] == "any" else self._into_anything(old)
        if old["is"] == "union":
            return self._from_union(old, new)
        if new["is"] == "union":
            return self._into_union(old, new)
        if old["is"] == "object" and new["is"] == "object":
            return self._objects(old["number"], new["number"])
        found = self._containers(old, new)
        if found is None:
            found = conversion(old, new, self._codec)
        broken = limits_broken(old, new)
        return [*found, *fails(f"must {broken} now")] if broken and worst(found) < Effect.FAILS else found

    def _into_anything(self, old: Schema) -> list[Finding]:
        """The effect of reading without a type: fields that were left out do not get their defaults."""
        left_out = self._left_out(old, set())
        change = f"was {brief(old)}, any value is read now"
        if not left_out:
            return reads_on(change)
        return loses(f"{change}, and {listed(left_out)} was not written when it had its default")

    def _left_out(self, node: Schema, seen: set[int]) -> list[str]:
        """The fields of a node, at any depth, that are not written when they have their defaults."""
        if node["is"] == "object":
            number = node["number"]
            if number in seen:
                return []
            seen.add(number)
            fields = self._was[number]["fields"]
            own = [field["name"] for field in fields if field.get("left_out") and "default" in field]
            return own + [name for field in fields for name in self._left_out(field["type"], seen)]
        parts = node.get("of", node.get("values", node.get("items", [])))
        nodes = parts if isinstance(parts, list) else [parts]
        return [name for part in nodes if isinstance(part, dict) for name in self._left_out(part, seen)]

    def _from_union(self, old: Schema, new: Schema) -> list[Finding]:
        found: list[Finding] = []
        more = [one for one in _alternatives(new) if not self._stood_in(old, one)]
        for one in old["of"]:
            of_one = self._best(one, new)
            if worst(of_one) is Effect.FAILS and any(not finding.path for finding in of_one):
                of_one = fails(f"may be {brief(one)}, which {brief(new)} does not take")
            found += [finding for finding in of_one if finding not in found]
        wider = reads_on(f"may be {' or '.join(map(brief, more))}, too", rewrites=False) if more else []
        return found if worst(found) is Effect.FAILS else found + wider

    def _stood_in(self, old: Schema, one: Schema) -> bool:
        """Whether the old union had this alternative. Objects are compared by their contents."""
        return any(was["is"] == one["is"] and worst(self.of(was, one)) < Effect.FAILS for was in old["of"])

    def _best(self, old: Schema, new: Schema) -> list[Finding]:
        """The findings for the alternative of ``new`` that reads ``old`` best."""
        nodes = _alternatives(new)
        several = sum("tag" in self._now[one["number"]] for one in nodes if one["is"] == "object") > 1
        alternatives = (
            fails("has another tag") if several and self._other_tag(old, one) else self.of(old, one)
            for one in nodes
        )
        return min(alternatives, key=lambda found: (worst(found), len(found)))

    def _into_union(self, old: Schema, new: Schema) -> list[Finding]:
        best = self._best(old, new)
        if worst(best) is Effect.FAILS and any(not finding.path for finding in best):
            return fails(f"was {brief(old)}, is now {brief(new)}")
        return best + reads_on(f"was {brief(old)}, is now {brief(new)}", rewrites=False)

    def _other_tag(self, old: Schema, one: Schema) -> bool:
        """Whether the object's tag differs from that of this alternative."""
        if old["is"] != "object" or one["is"] != "object":
            return False
        return self._was[old["number"]].get("tag") != self._now[one["number"]].get("tag")

    # Containers

    def _containers(self, old: Schema, new: Schema) -> list[Finding] | None:
        """The findings for two containers; None if at most one is a container."""
        kinds = old["is"], new["is"]
        if old["is"] in _ARRAYS and new["is"] in _ARRAYS:
            return self._elements(old, new)
        if kinds == ("mapping", "mapping"):
            keys = [finding.below("{key}") for finding in self.of(*self._keys(old, new))]
            return keys + [finding.below("{}") for finding in self.of(old["values"], new["values"])]
        if kinds == ("tuple", "tuple"):
            return self._tuples(old, new)
        if old["is"] == "tuple" and new["is"] in _ARRAYS:
            items = (self.of(item, new["of"]) for item in old["items"])
            found = [finding.below(f"[{i}]") for i, of_item in enumerate(items) for finding in of_item]
            return found + (_to_set() if new["is"] == "set" else [])
        if kinds == ("object", "mapping"):
            return self._object_to_mapping(self._was[old["number"]], new)
        if kinds == ("mapping", "object"):
            return self._mapping_to_object(old, self._now[new["number"]])
        return None

    def _keys(self, old: Schema, new: Schema) -> tuple[Schema, Schema]:
        """The schemas of keys. In JSON keys are text: a number becomes text, but not every text is a number."""
        text = old["keys"]["is"] in ("int", "float", "any") and new["keys"]["is"] == "str"
        return {"is": "str"} if text and self._codec != "msgpack" else old["keys"], new["keys"]

    def _elements(self, old: Schema, new: Schema) -> list[Finding]:
        found = [finding.below("[]") for finding in self.of(old["of"], new["of"])]
        if old["is"] == new["is"]:
            return found
        return found + (
            _to_set() if new["is"] == "set" else reads_on("was a set, is now a list", rewrites=False)
        )

    def _tuples(self, old: Schema, new: Schema) -> list[Finding]:
        if len(old["items"]) != len(new["items"]):
            return fails(f"had {len(old['items'])} elements, must have {len(new['items'])} now")
        pairs = zip(old["items"], new["items"], strict=True)
        return [finding.below(f"[{i}]") for i, pair in enumerate(pairs) for finding in self.of(*pair)]

    def _object_to_mapping(self, old: Schema, new: Schema) -> list[Finding] | None:
        if old["form"] == "array" or new["keys"]["is"] not in ("str", "any"):
            return None
        fields = [(field["name"], self.of(field["type"], new["values"])) for field in old["fields"]]
        found = [finding.below(name) for name, of_field in fields for finding in of_field]
        found += [
            Finding(field["name"], Effect.LOSES, "was not written where it had its default")
            for field in old["fields"]
            if field.get("left_out") and "default" in field
        ]
        return [*found, *reads_on("had named fields, is now a mapping")]

    def _mapping_to_object(self, old: Schema, new: Schema) -> list[Finding] | None:
        if new["form"] == "array" or old["keys"]["is"] not in ("str", "any"):
            return None
        needed = [field["name"] for field in new["fields"] if field.get("required")]
        if needed:
            return fails(f"was a mapping, which may lack {needed[0]}")
        if new.get("unknown") == "refused":
            return fails("was a mapping, and unknown fields are refused")
        fields = [(field["name"], self.of(old["values"], field["type"])) for field in new["fields"]]
        found = [finding.below(name) for name, of_field in fields for finding in of_field]
        kept = new.get("unknown") == "kept"
        return found + (
            reads_on("was a mapping, is now an object")
            if kept
            else loses("was a mapping, of which only the fields are read now")
        )

    # Objects

    def _objects(self, old: int, new: int) -> list[Finding]:
        pair = old, new
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._fields(self._was[old], self._now[new])
        return self._known[pair]

    def _fields(self, old: Schema, new: Schema) -> list[Finding]:
        if old["form"] != new["form"]:
            names = {"array": "an array of its fields", "object": "an object with names"}
            return fails(f"was written as {names[old['form']]}, is now {names[new['form']]}")
        tags = _tags(old, new)
        if worst(tags) is Effect.FAILS:
            return tags
        return tags + (self._by_place(old, new) if old["form"] == "array" else self._by_name(old, new))

    def _by_name(self, old: Schema, new: Schema) -> list[Finding]:
        before = {field["name"]: field for field in old["fields"]}
        if "tag" in old and _has_field(new, old["tag"][0]):
            name, value = old["tag"]
            before[name] = {"name": name, "type": {"is": "one of", "values": [value]}, "required": True}
        taken = _taken(before, new["fields"])
        gone = [field for name, field in before.items() if name not in taken.values()]
        added = [field for field in new["fields"] if field["name"] not in taken]
        found: list[Finding] = []
        for field in new["fields"]:
            name = field["name"]
            if name in taken:
                found += [finding.below(name) for finding in self._field(before[taken[name]], field)]
        for field in gone:
            found.append(self._gone(field, added, new))
        for field in added:
            found.append(_added(field).below(field["name"]))
        return found + _order(before, new["fields"], taken)

    def _field(self, old: Schema, new: Schema) -> list[Finding]:
        found = list(self.of(old["type"], new["type"]))
        if new["name"] != old["name"]:
            found += reads_on(f"was written as {old['name']}, which is still read")
        if old.get("left_out") and new.get("required"):
            found += fails("was optional when it was written, and is required now")
        elif _default(old) != _default(new):
            found += _another_default(old, new)
        if old.get("left_out", False) != new.get("left_out", False):
            found += reads_on(f"is {'' if new.get('left_out') else 'not '}left out now if it is not set")
        return found

    def _gone(self, field: Schema, added: Iterable[Schema], new: Schema) -> Finding:
        name = field["name"]
        if new.get("unknown") == "kept":
            return Finding(name, Effect.READS_ON, "has no field any more, and is kept as an extra field")
        successor = self._successor(field, added)
        if new.get("unknown") == "refused":
            return gone_field(name, Effect.FAILS, "is gone, and unknown fields are refused", successor)
        return gone_field(name, Effect.LOSES, "is gone", successor)

    def _successor(self, field: Schema, added: Iterable[Schema]) -> str | None:
        """The new field that is probably the old one renamed: the most similar name with a type that can read it."""
        name = field["name"]
        able = [one["name"] for one in added if worst(self.of(field["type"], one["type"])) is Effect.READS_ON]
        return max(able, key=lambda other: SequenceMatcher(None, name, other).ratio(), default=None)

    def _by_place(self, old: Schema, new: Schema) -> list[Finding]:
        """The findings for fields without names in the bytes: each is read by its position."""
        before, after = old["fields"], new["fields"]
        kept_names = {field["name"] for field in before} & {field["name"] for field in after}
        found: list[Finding] = []
        for one, other in zip(before, after, strict=False):
            here = self.of(one["type"], other["type"])
            if one["name"] != other["name"]:
                mistaken = one["name"] in kept_names or other["name"] in kept_names
                why = f"is read as {other['name']}, which has its position"
                here = [*here, *(loses(why) if mistaken else reads_on(why, rewrites=False))]
            elif _default(one) != _default(other):
                here = [*here, *_another_default(one, other)]
            found += [finding.below(one["name"]) for finding in here]
        for field in before[len(after) :]:
            refused = new.get("unknown") == "refused"
            why = "is gone, and longer arrays are refused" if refused else "is gone"
            found.append(Finding(field["name"], Effect.FAILS if refused else Effect.LOSES, why))
        return found + [_added(field).below(field["name"]) for field in after[len(before) :]]


def _alternatives(node: Schema) -> list[Schema]:
    return node["of"] if node["is"] == "union" else [node]


def _taken(before: Mapping[str, Schema], fields: Iterable[Schema]) -> dict[str, str]:
    """By new field: the old name under which its value is found."""
    names = ((field["name"], [field["name"], *field.get("also", ())]) for field in fields)
    found = ((name, next((one for one in all_names if one in before), None)) for name, all_names in names)
    return {name: old for name, old in found if old is not None}


def _tags(old: Schema, new: Schema) -> list[Finding]:
    """The findings for the field by which the members of a union are distinguished."""
    was, now = old.get("tag"), new.get("tag")
    if was == now:
        return []
    if old["form"] == "array":
        return _tags_of_arrays(was, now)
    if was is not None and now is not None and was[0] == now[0]:
        return fails(f"was written with {_shown_tag(was)}, is now {_shown_tag(now)}")
    if was is not None and new.get("unknown") == "refused" and not _has_field(new, was[0]):
        return fails(f"was written with {_shown_tag(was)}, and unknown fields are refused")
    # msgspec reads an object without a tag if the union has only one kind of object.
    change = "has no tag any more" if now is None else f"is written with {_shown_tag(now)} now"
    return reads_on(change)


def _tags_of_arrays(was: list[Any] | None, now: list[Any] | None) -> list[Finding]:
    """The findings for tags of arrays, which are the first element."""
    if was is None or now is None:
        return fails("has a tag before its fields in one version only")
    if was[1] == now[1]:
        return []
    return fails(f"was written with the tag {shown(was[1])}, is now {shown(now[1])}")


def _shown_tag(tag: list[Any]) -> str:
    return f"{tag[0]}={shown(tag[1])}"


def _has_field(one: Schema, name: str) -> bool:
    return any(field["name"] == name for field in one["fields"])


def _added(field: Schema) -> Finding:
    if field.get("required"):
        return Finding("", Effect.FAILS, "is new, and is required")
    return Finding(
        "", Effect.READS_ON, f"is new, with {_default_in_words(field)}", not field.get("left_out", False)
    )


def _another_default(old: Schema, new: Schema) -> list[Finding]:
    if new.get("required"):
        return reads_on(f"is required now (it had {_default_in_words(old)})", rewrites=False)
    if old.get("required"):
        return reads_on(f"is optional now, with {_default_in_words(new)}", rewrites=False)
    was, now = _default_in_words(old), _default_in_words(new)
    if old.get("left_out"):
        return loses(f"was left out if it had {was}, and is read with {now}")
    return reads_on(f"has {now}, no longer {was}: so do values without the field")


def _order(before: Mapping[str, Schema], fields: Iterable[Schema], taken: Mapping[str, str]) -> list[Finding]:
    was = [name for name in before if name in taken.values()]
    now = [taken[field["name"]] for field in fields if field["name"] in taken]
    return (
        [] if was == now else reads_on(f"has its fields in another order: {listed(was)}, now {listed(now)}")
    )


def _default(field: Schema) -> Any:
    return None if field.get("required") else (field.get("default"), field.get("made"), "default" in field)


def _default_in_words(field: Schema) -> str:
    if "default" in field:
        return f"the default {shown(field['default'])}"
    return "a default that a function makes" if "made" in field else "no value by default"


def _to_set() -> list[Finding]:
    return loses("is now a set: order and duplicates are lost")
