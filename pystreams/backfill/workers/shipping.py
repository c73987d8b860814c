"""An application as bytes for workers, where it has no name by which they could import it."""

from __future__ import annotations

import dataclasses
import io
import pickle
from typing import Any, Final

import cloudpickle
import msgspec

from pystreams.errors import AppLoadError

#: The attribute of a dataclass in which msgspec caches its analysis. msgspec creates it again if it is missing.
_MSGSPEC = "__msgspec_cache__"


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and _MSGSPEC in vars(obj):
            delattr(obj, _MSGSPEC)
        if obj is dataclasses.MISSING:
            # Dataclasses compare it by identity: a copy would be the default of fields that have none.
            return getattr, (dataclasses, "MISSING")
        reduced = super().reducer_override(obj)
        by_value = reduced is not NotImplemented
        return _struct_reduced(obj) if by_value and isinstance(obj, type(msgspec.Struct)) else reduced


def _struct_reduced(cls: Any) -> tuple[Any, ...]:
    """A Struct as what ``defstruct`` makes it again of: cloudpickle would make one without fields and options. Methods
    come afterwards, because they may refer to the class."""
    own = vars(cls).get("__annotations__", {})
    fields = [
        (
            one.name,
            one.type,
            {"default": one.default, "default_factory": one.default_factory, "name": one.encode_name},
        )
        for one in msgspec.structs.fields(cls)
        if one.name in own
    ]
    config = {name: getattr(cls.__struct_config__, name) for name in _STRUCT_OPTIONS}
    config["kw_only"] = bool(fields) and not any(name in cls.__match_args__ for name, _, _ in fields)
    slots = (*cls.__struct_fields__, "__slots__", "__annotations__", "__module__", "__dict__", "__weakref__")
    rest = {name: value for name, value in vars(cls).items() if name not in slots}
    # msgspec looks for it when it makes the class.
    namespace = {name: rest.pop(name) for name in ("__post_init__",) if name in rest}
    arguments = (cls.__name__, fields, cls.__bases__, cls.__module__, namespace, config)
    return _struct, arguments, rest, None, None, _set_attributes


#: The names of a Struct's options, but for those of its fields.
_STRUCT_OPTIONS: Final = tuple(
    name for name in dir(msgspec.Struct.__struct_config__) if not name.startswith("_")
)


def _struct(
    name: str, fields: Any, bases: Any, module: str, namespace: dict[str, Any], config: dict[str, Any]
) -> Any:
    found = [(field, type_, msgspec.field(**of_field)) for field, type_, of_field in fields]
    return msgspec.defstruct(name, found, bases=bases, module=module, namespace=namespace, **config)


def _set_attributes(cls: type, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(cls, name, value)


def shipped(program: object) -> bytes:
    """A pickled ``App``, ``StreamsBuilder`` or ``Topology``: with the functions and classes of the main program and
    with lambdas; those of modules go by name. Raises ``AppLoadError`` if something in it cannot be pickled."""
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)
        pickler.dump(program)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise AppLoadError(
            "the application cannot be sent to worker processes",
            why=f"something that its functions refer to cannot be pickled: {error}",
            hint="put the application into a module that the workers can import, and name it: "
            "backfill('module:attribute', ...)",
        ) from error
    return buffer.getvalue()
