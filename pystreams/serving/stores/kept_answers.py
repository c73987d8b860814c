"""A cache of answers about keys as of the last commit, until the next one, because many requests are for the same few
keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from cachetools import LRUCache

from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.questions import Question
from pystreams.state.commit_mark import CommitMark

#: The number of recently requested answers that are kept.
ANSWERS_MAX: Final = 1_000

#: Larger answers are not kept; their questions and positions count, too.
_ANSWER_BYTES_MAX: Final = 4_096

#: The approximate size of the data that is kept for a partition.
_PARTITION_BYTES: Final = 100

#: Two questions with the same key have the same answer until the next commit.
QuestionKey: TypeAlias = tuple[object, ...]


class _Kept(NamedTuple):
    """An answer of a store, and by partition the mark of the commit from which it was read."""

    part: StorePart
    store: LocalStore
    marks: Mapping[int, CommitMark]


class KeptAnswers:
    """Answers that can be used again as long as none of the tasks from which they come has committed since. Used in one
    thread."""

    def __init__(self) -> None:
        self._kept: LRUCache[QuestionKey, _Kept] = LRUCache(ANSWERS_MAX)

    def find(self, question: Question) -> StorePart | None:
        """The kept answer to a question; None: there is none. Raises ``StateError`` if the client has ended."""
        asked = key_of(question)
        if asked is None:
            return None
        kept = self._kept.get(asked)
        if kept is None:
            return None
        if kept.store.commit_marks(kept.marks) == kept.marks:
            return kept.part
        del self._kept[asked]
        return None

    def keep(
        self, question: Question, part: StorePart, store: LocalStore, marks: Mapping[int, CommitMark]
    ) -> None:
        """Keep an answer. ``marks``: the marks of the partitions that were read, taken before the read."""
        size = len(question.key or "") + _PARTITION_BYTES * len(marks)
        size += sum(len(entry.shown) for entry in part.entries)
        asked = key_of(question)
        if size <= _ANSWER_BYTES_MAX and asked is not None:
            self._kept[asked] = _Kept(part, store, marks)

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        """Whether this is the kept answer to the question. Then ``ended`` is called when one of its tasks commits, in
        the thread of that task."""
        asked = key_of(question)
        kept = None if asked is None else self._kept.get(asked)
        if kept is None or kept.part is not part:
            return False
        return all(mark.at_end(ended) for mark in kept.marks.values())


def key_of(question: Question) -> QuestionKey | None:
    """The parts of a question that make a difference to the answer of one process. None: an answer is not to be kept,
    because the question is not about one key as of the last commit, demands a position, or is about some partitions."""
    if question.freshness != "committed" or question.key is None or question.position or question.only:
        return None
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
