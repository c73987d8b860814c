"""A serde that is not known yet while the topology is being written."""

from __future__ import annotations

from collections.abc import Callable

from pystreams.errors import TopologyError
from pystreams.serde.base import AnySerde, Serde


class DeferredSerde(Serde[object]):
    """A placeholder for the configured default serde; ``Topology.build`` replaces it.

    ``fallback`` is used where no default is configured. If it is None, that is a ``TopologyError``: ``origin`` names
    the data whose type is unknown (``"the value that KSTREAM-MAPVALUES-0000000001 computes"``), and ``location`` the
    function that computes it.
    """

    def __init__(
        self,
        origin: str,
        fallback: AnySerde | None = None,
        wrap: Callable[[AnySerde], AnySerde] | None = None,
        *,
        location: str = "",
    ) -> None:
        self.origin = origin
        self.location = location
        self.fallback = fallback
        self._wrap = wrap

    def __repr__(self) -> str:
        return "not given" if self.fallback is None else f"{self.fallback!r} by default"

    def resolve(self, default: AnySerde | None, *, needed_by: str, argument: str) -> AnySerde:
        """The final serde. Raises ``TopologyError`` if there is neither a default nor a fallback."""
        serde = default or self.fallback
        if serde is None:
            raise TopologyError(
                f"{needed_by} needs to know the type of {self.origin}",
                where=self.location,
                why="the program gives no type for it, and no default is configured",
                hint=f"give the type where it is computed, as in {argument}=str or in the function's annotation, "
                f"or set default_{argument}_serde",
            )
        return serde if self._wrap is None else self._wrap(serde)


def wrapped(serde: AnySerde, wrap: Callable[[AnySerde], AnySerde]) -> AnySerde:
    """``wrap(serde)``, applied later if ``serde`` is not known yet."""
    if not isinstance(serde, DeferredSerde):
        return wrap(serde)
    inner = serde._wrap
    wrap_both = wrap if inner is None else lambda s: wrap(inner(s))
    return DeferredSerde(serde.origin, serde.fallback, wrap_both, location=serde.location)


def resolved(serde: AnySerde | None, default: AnySerde | None, *, needed_by: str, argument: str) -> AnySerde:
    """``serde`` if it is known; otherwise its placeholder is resolved, with the default or its fallback."""
    if serde is None:
        serde = DeferredSerde(f"its {argument}s")
    while isinstance(serde, DeferredSerde):
        # A wrapped serde may need a second resolution.
        serde = serde.resolve(default, needed_by=needed_by, argument=argument)
    return serde
