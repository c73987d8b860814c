"""Answers about keys as of the last commit, kept until the next one: many ask for the same few keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from cachetools import LRUCache

from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.serving.stores.parts import Part
from pystreams.serving.stores.questions import Question

#: The number of answers that are kept: those that were asked for last.
_ANSWERS_MAX: Final = 1_000

#: Larger answers are not kept, with their questions and positions.
_ANSWER_BYTES_MAX: Final = 4_096

#: About the size of what is kept for a partition.
_PARTITION_BYTES: Final = 100

#: Two questions that have the same one have the same answer until the next commit.
_QuestionKey: TypeAlias = tuple[object, ...]


class _Kept(NamedTuple):
    """An answer of a store, and the marks of the commits that it belongs to, by partition."""

    part: Part
    store: LocalStore
    marks: Mapping[int, object]


class KeptAnswers:
    """An answer serves again as long as none of the tasks that gave it has committed since. Used in one thread."""

    def __init__(self) -> None:
        self._kept: LRUCache[_QuestionKey, _Kept] = LRUCache(_ANSWERS_MAX)

    def find(self, question: Question) -> Part | None:
        """Raises ``StateError`` if the client has ended."""
        if question.position:
            return None
        asked = _key_of(question)
        kept = self._kept.get(asked)
        if kept is None:
            return None
        if kept.store.commit_marks(kept.marks) == kept.marks:
            return kept.part
        del self._kept[asked]
        return None

    def keep(self, question: Question, part: Part, store: LocalStore, marks: Mapping[int, object]) -> None:
        """``marks``: those of the partitions that were read, from before the read."""
        size = len(question.key or "") + _PARTITION_BYTES * len(marks)
        size += sum(len(entry.shown) for entry in part.entries)
        if size <= _ANSWER_BYTES_MAX and not question.position:
            self._kept[_key_of(question)] = _Kept(part, store, marks)


def _key_of(question: Question) -> _QuestionKey:
    return (
        question.store,
        question.key,
        question.time_from,
        question.time_to,
        question.as_of,
        question.limit,
        question.after,
        question.standbys,
    )
