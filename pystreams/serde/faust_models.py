"""Serdes for models of faust-streaming. Faust's own codecs read and write them, so that both sides have the same bytes.

Faust is imported when the first such serde is made; a program with a model has imported it already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeVar, cast, overload

from pystreams.distribution import install_command
from pystreams.errors import ConfigError, SerializationError, TopologyError
from pystreams.serde.base import Serde
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.python_types import TypeSchemas, default_schema, named
from pystreams.serde.shapes import type_name

T = TypeVar("T")


def is_faust_model(type_: Any) -> bool:
    """Whether a type is a model of Faust, or Faust's ``Record`` itself. Does not import Faust."""
    return isinstance(type_, type) and any(
        base.__module__ == "faust.models.base" and base.__name__ == "Model" for base in type_.__mro__
    )


class FaustSerde(Serde[T]):
    """``faust.Record`` models, as a Faust application writes them: JSON with a field ``__faust`` that names the model,
    unless the model is declared otherwise (``serializer=``, ``include_metadata=False``).

    ``type_``: the model, or ``faust.Record`` itself for topics with several models: as in Faust, the field ``__faust``
    then chooses. ``serializer`` is the ``value_serializer`` or ``key_serializer`` of the Faust topic, if it has one. As
    in Faust, a model's own serializer takes precedence for writing.

    Raises ``TopologyError`` for a type that is not a model, ``ConfigError`` if the extra ``faust`` is not installed or
    the serializer is unknown.
    """

    @overload
    def __init__(self, type_: type[T], serializer: str | None = None) -> None: ...
    @overload
    def __init__(self: FaustSerde[Any], type_: Any, serializer: str | None = None) -> None: ...
    def __init__(self, type_: Any, serializer: str | None = None) -> None:
        if not is_faust_model(type_):
            raise TopologyError(
                f"{type_name(type_)} is not a Faust model", hint="give a subclass of faust.Record"
            )
        self.type = type_
        self.serializer_name = serializer
        own = None if type_.__is_abstract__ else type_._options.serializer
        self._write_as = own or serializer or "json"
        codecs = _faust("serializers.codecs")
        _codec(codecs, self._write_as)
        #: Faust's codec with which records are read.
        self.read_as = serializer or own or "json"
        self._loads = _codec(codecs, self.read_as).loads

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        model, write_as = _faust("models.base").Model, self._write_as

        def write(value: T) -> bytes:
            if not isinstance(value, model):
                raise SerializationError(
                    f"a value of type {type(value).__name__} cannot be serialized as {self!r}",
                    where=f"topic {topic}",
                    why="it is not a Faust model",
                    hint="check that the step computes values of this type",
                )
            return cast("bytes", cast("Any", value).dumps(serializer=write_as))

        return write

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        loads = self._loads
        type_ = self.type
        # A record names the model of the application that wrote it, which this application may not have.
        own = partial(type_.from_data, preferred_type=type_)
        of_data: Callable[[Any], Any] = _by_its_name if type_.__is_abstract__ else own

        def read(data: bytes) -> T:
            try:
                model: T = of_data(loads(data))
            except Exception as error:
                raise SerializationError(
                    f"{len(data)} bytes could not be deserialized as {self!r}",
                    where=f"topic {topic}",
                    why=f"{type(error).__name__}: {error}",
                    hint="check that the topic was written with this model and serializer",
                ) from error
            return model

        return read

    def bytes_schema(self) -> Schema:
        types = TypeSchemas(lambda cls: _model_schema(cls, types) if is_faust_model(cls) else named(cls))
        node = {"is": "any"} if self.type.__is_abstract__ else _model_schema(self.type, types)
        codec = {"codec": self._write_as, "read_as": self.read_as}
        return {"format": "faust", **codec, "type": {"type": node, "objects": types.objects}}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the names of the codecs, because codecs cannot be pickled."""
        return type(self), (self.type, self.serializer_name)

    def __repr__(self) -> str:
        return f"FaustSerde({type_name(self.type)})"


def _model_schema(model: Any, types: TypeSchemas) -> Schema:
    """A model as its fields, in their written form. By default, Faust does not check types."""

    def field_schema(field: Any) -> Schema:
        read = [] if field.input_name == field.output_name else [field.input_name]
        default = {"required": True} if field.required else default_schema(field.default, None, _NOTHING)
        node = types.of_type(field.type)
        return {"name": field.output_name, "type": node, **default, **({"also": read} if read else {})}

    def describe() -> Schema:
        fields = [field_schema(field) for field in model._options.descriptors.values() if not field.exclude]
        return {"form": "object", "fields": fields}

    return types.numbered(model, describe)


_NOTHING = object()


def _by_its_name(data: Any) -> Any:
    """An instance of the model that the record names, if this process has the model."""
    base = _faust("models.base").Model
    model = base._maybe_namespace(data)
    if model is None:
        raise ValueError(f"it does not name a model of this process in {base._blessed_key!r}")
    return model.from_data(data)


def _codec(codecs: Any, name: str) -> Any:
    try:
        return codecs.get_codec(name)
    except KeyError:
        raise ConfigError(
            f"Faust has no serializer {name!r}", hint=f"choose one of {', '.join(sorted(codecs.codecs))}"
        ) from None


def _faust(module: str) -> Any:
    try:
        return import_module(f"faust.{module}")
    except ImportError as error:
        raise ConfigError(
            "faust-streaming is not installed", why=str(error), hint=install_command("faust")
        ) from None
