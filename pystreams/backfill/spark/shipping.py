"""An application as bytes for workers, where it has no name by which they could import it."""

from __future__ import annotations

import dataclasses
import io
import pickle
from typing import Any

from pyspark import cloudpickle

from pystreams.errors import AppLoadError

#: The attribute of a dataclass in which msgspec caches its analysis. msgspec creates it again if it is missing.
_MSGSPEC = "__msgspec_cache__"


class _Pickler(cloudpickle.CloudPickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and _MSGSPEC in vars(obj):
            delattr(obj, _MSGSPEC)
        if obj is dataclasses.MISSING:
            # Dataclasses compare it by identity: a copy would be the default of fields that have none.
            return getattr, (dataclasses, "MISSING")
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def shipped(program: object) -> bytes:
    """A pickled ``App``, ``StreamsBuilder`` or ``Topology``: with the functions and classes of the main program and
    with lambdas; those of modules go by name. Raises ``AppLoadError`` if something in it cannot be pickled."""
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)  # type: ignore[no-untyped-call]
        pickler.dump(program)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise AppLoadError(
            "the application cannot be sent to Spark's workers",
            why=f"something that its functions refer to cannot be pickled: {error}",
            hint="put the application into a module that the workers can import, and name it: "
            "backfill('module:attribute', ...)",
        ) from error
    return buffer.getvalue()
