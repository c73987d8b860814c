"""Answers about keys as of the last commit, kept until the next one: many ask for the same few keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from cachetools import LRUCache

from pystreams.runtime.queries.committed_reads import CommitMark
from pystreams.runtime.queries.store_queries import LocalStore
from pystreams.serving.stores.parts import Part
from pystreams.serving.stores.questions import Question

#: The number of answers that are kept: those that were asked for last.
_ANSWERS_MAX: Final = 1_000

#: Larger answers are not kept.
_ANSWER_BYTES_MAX: Final = 4_096

#: What tells a question for a key from others, of those without a demanded position.
_Asked: TypeAlias = tuple[object, ...]


class _Kept(NamedTuple):
    """An answer of a store, and the commits that it belongs to, by partition."""

    part: Part
    store: LocalStore
    marks: Mapping[int, CommitMark | None]


class KeptAnswers:
    """An answer serves again as long as none of the tasks that gave it has committed since. Used in one thread."""

    def __init__(self) -> None:
        self._kept: LRUCache[_Asked, _Kept] = LRUCache(_ANSWERS_MAX)

    def find(self, question: Question) -> Part | None:
        """Raises ``StateError`` if the client has ended."""
        if question.position:
            return None
        kept = self._kept.get(_asked(question))
        if kept is None or any(kept.store.commit_mark(one) != mark for one, mark in kept.marks.items()):
            return None
        return kept.part

    def keep(
        self, question: Question, part: Part, store: LocalStore, marks: Mapping[int, CommitMark | None]
    ) -> None:
        """``marks``: those of the partitions that were read, from before the read. None: the task was gone."""
        if question.position or None in marks.values():
            return
        if sum(len(entry.shown) for entry in part.entries) <= _ANSWER_BYTES_MAX:
            self._kept[_asked(question)] = _Kept(part, store, marks)


def _asked(question: Question) -> _Asked:
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
