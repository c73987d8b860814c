"""A serde that is not known yet while the topology is being written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pystreams.serde import BYTES
from pystreams.serde.base import AnySerde, Serde
from pystreams.user_code import Call, users_call


@dataclass(frozen=True, slots=True)
class Origin:
    """Where keys or values come from whose type may be missing, for the error of those whose type is.

    ``data`` names them (``"the value that KSTREAM-MAPVALUES-0000000001 computes"``), ``reason`` says why their type is
    not known, ``remedy`` what to do about it (``{}`` stands for the argument that gives it: ``key=``), and ``call`` is
    the call in the program that makes them.
    """

    data: str
    reason: str = "the program gives no type for it"
    remedy: str = "pass {}"
    call: Call | None = field(default_factory=users_call)


class DeferredSerde(Serde[object]):
    """A placeholder for the configured default serde; ``Topology.build`` replaces it.

    ``fallback`` is used where no default is configured. If it is None, the type is missing.
    """

    def __init__(
        self,
        origin: Origin,
        fallback: AnySerde | None = None,
        wrap: Callable[[AnySerde], AnySerde] | None = None,
    ) -> None:
        self.origin = origin
        self.fallback = fallback
        self._wrap = wrap

    def __repr__(self) -> str:
        return "not given" if self.fallback is None else f"{self.fallback!r} by default"

    def resolve(self, default: AnySerde | None, missing: Callable[[Origin], None]) -> AnySerde:
        """The final serde. If there is neither a default nor a fallback, ``missing`` is called, and bytes stand in."""
        serde = default or self.fallback
        if serde is None:
            missing(self.origin)
            serde = BYTES
        return serde if self._wrap is None else self._wrap(serde)


def wrapped(serde: AnySerde, wrap: Callable[[AnySerde], AnySerde]) -> AnySerde:
    """``wrap(serde)``, applied later if ``serde`` is not known yet."""
    if not isinstance(serde, DeferredSerde):
        return wrap(serde)
    inner = serde._wrap
    wrap_both = wrap if inner is None else lambda s: wrap(inner(s))
    return DeferredSerde(serde.origin, serde.fallback, wrap_both)


def resolved(serde: AnySerde, default: AnySerde | None, missing: Callable[[Origin], None]) -> AnySerde:
    """``serde`` if it is known; otherwise its placeholder is resolved, with the default or its fallback."""
    while isinstance(serde, DeferredSerde):
        # A wrapped serde may need a second resolution.
        serde = serde.resolve(default, missing)
    return serde
