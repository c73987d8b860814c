"""Values on their way through a topic, for a step that takes them before it: a serde may change a value, or refuse it.

Values of text, bytes and whole numbers are read as they were written, so they only have to be checked, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType
from typing import Any, Final

from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import BytesSerde, IntSerde, StrSerde, fixed_width

#: Serdes with types whose values stay equal when they are written and read: only values of exactly this type.
_KEPT_TYPES: Final[Mapping[type[AnySerde], type]] = {StrSerde: str, BytesSerde: bytes, IntSerde: int}


class ThroughTopic:
    """Take each value when it comes: its bytes (``write``), because it may be changed later; itself if ``keeps``."""

    def __init__(self, serde: AnySerde, topic: str, *, reads: bool) -> None:
        """Unless it ``reads``, values are only checked, and are passed on unchanged."""
        self.write: Callable[[Any], bytes] = serde.serializer(topic)
        self._read = serde.deserializer(topic) if reads else None
        self._kept_type = _KEPT_TYPES.get(type(serde))

    @property
    def keeps(self) -> bool:
        """Whether values are passed on unchanged."""
        return self._kept_type is not None

    def come_out(self, taken: list[Any], types: AbstractSet[type]) -> list[Any]:
        """The values that were taken, which have these types, as they come out of the topic; None is null. Raises what
        the serde raises."""
        if self.keeps:
            if self._unchanged(taken, types):
                return taken
            taken = [self.data(value) for value in taken]
        read = self._read
        return taken if read is None else [None if data is None else read(data) for data in taken]

    def data(self, taken: Any) -> bytes | None:
        """The bytes of a value that was taken."""
        if taken is None or self._kept_type is None:
            return None if taken is None else bytes(taken)
        return self.write(taken)

    def _unchanged(self, taken: Sequence[Any], types: AbstractSet[type]) -> bool:
        """Whether values that were kept are read as they were written."""
        if NoneType in types:
            taken = [value for value in taken if value is not None]
        if not taken:
            return True
        if not types <= {self._kept_type, NoneType}:
            return False
        if self._kept_type is str:
            # Text that has no UTF-8 is refused.
            "".join(taken).encode()
        width = fixed_width(self.write)
        return width is None or (width.least <= min(taken) and max(taken) <= width.most)
