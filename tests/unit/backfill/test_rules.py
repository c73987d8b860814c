"""What a resumed backfill is compared by is the same text in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.backfill.rules import rules_of
from pystreams.config import StreamsConfig
from pystreams.serde import Serde
from tests.backfill.kit import memory


class Own(Serde[Any]):
    """A user's, with the object's own ``repr``, as a base class may bring it."""

    __repr__ = object.__repr__

    def serializer(self, topic: str) -> Callable[[Any], bytes]:
        return bytes

    def deserializer(self, topic: str) -> Callable[[bytes], Any]:
        return bytes


def test_a_users_serde_is_not_told_by_where_it_is_in_memory() -> None:
    serdes = [Own(), Own()]
    told = [
        rules_of(StreamsConfig.of(application_id="a", default_key_serde=serde), memory({"in": [[]]}))
        for serde in serdes
    ]
    assert str(serdes[0]) != str(serdes[1])
    assert told[0] == told[1]
    assert "Own" in told[0]["default_key_serde"]
