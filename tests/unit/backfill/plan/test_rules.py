"""What a resumed backfill is compared by is the same text in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams import StreamsBuilder
from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.plan.rules import rules_of
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


def rules(topology: StreamsBuilder | None = None, **settings: Any) -> dict[str, str]:
    builder = topology or StreamsBuilder()
    if topology is None:
        builder.stream("in", key=str, value=str).to("out")
    config = StreamsConfig.of(application_id="a", **settings)
    return rules_of(LoadedApplication(builder.build().build("a"), config), memory({"in": [[]]}))


def test_a_users_serde_is_not_known_by_where_it_is_in_memory() -> None:
    serdes = [Own(), Own()]
    told = [rules(default_key_serde=serde) for serde in serdes]
    assert str(serdes[0]) != str(serdes[1])
    assert told[0] == told[1]
    assert "Own" in told[0]["default_key_serde"]


def test_another_registry_is_another_rule_and_another_login_is_not() -> None:
    def told(url: str) -> dict[str, str]:
        return rules(serde_settings={"schema.registry.url": url})

    assert told("http://one:8081") != told("http://two:8081")
    assert told("http://alice:secret@one:8081") == told("http://alice:other@one:8081")
    assert "secret" not in str(told("http://alice:secret@one:8081"))


def by_value(record: Any) -> int:
    return int(record.value)


def always_first(topic: str, key: Any, value: Any, partitions: int) -> int:
    return 0


def test_extractors_of_sources_and_partitioners_of_sinks_are_rules() -> None:
    def told(extractor: Any, partitioner: Any) -> dict[str, str]:
        builder = StreamsBuilder()
        builder.stream("in", key=str, value=str, timestamp_extractor=extractor).to(
            "out", partitioner=partitioner
        )
        return rules(builder)

    plain, extracted, partitioned = told(None, None), told(by_value, None), told(None, always_first)
    assert extracted == {**plain, "timestamp extractor of KSTREAM-SOURCE-0000000000": "by_value"}
    assert partitioned == {**plain, "partitioner of KSTREAM-SINK-0000000001": "always_first"}
    named = told("log_and_skip", None)["timestamp extractor of KSTREAM-SOURCE-0000000000"]
    assert named != "by_value"
