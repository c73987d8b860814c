"""Each topic has its own source, all others one together; each source is asked once."""

from __future__ import annotations

import pytest

from pystreams.backfill.sources import TopicSources
from pystreams.errors import TopicError
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import in_memory, read

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 1)
ROW = (0, 5, b"k", b"v", ())


def test_topics_come_from_their_sources() -> None:
    own, others = (
        in_memory({A: [ROW, (1, 6, None, None, ())], B: []}),
        in_memory({A: [ROW], B: [ROW], C: [ROW]}),
    )
    source = TopicSources({"a": own}, others)
    assert dict(source.partitions()) == {"a": 1, "b": 1, "c": 2}
    assert source.ends([A, B, C]) == {A: 2, B: 1, C: 1}
    assert source.beginnings([A, B, C]) == {A: 0, B: 0, C: 0}
    assert source.offsets_at([A, C], 6) == {A: 1, C: 1}
    assert len(read(source, A, 0, 2)) == 2
    assert len(read(source, C, 0, 1)) == 1
    assert not source.approximate


def test_a_topic_without_a_source_is_named() -> None:
    source = TopicSources({"a": in_memory({A: [ROW]})})
    assert dict(source.partitions()) == {"a": 1}
    with pytest.raises(TopicError, match="records of topic b"):
        source.ends([B])


def test_a_source_without_its_topic_is_named() -> None:
    with pytest.raises(TopicError, match="source of topic b does not have it"):
        TopicSources({"b": in_memory({A: [ROW]})}).partitions()
