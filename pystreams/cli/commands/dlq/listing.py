"""``pystreams dlq list``: how many dead letters there are, by step, error and source topic."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from pystreams.cli.commands.dlq.letters import DeadLetter, NotReplayable
from pystreams.cli.commands.dlq.marks import Marks
from pystreams.cli.commands.dlq.selection import Filter, Letters, Seen, none_chosen
from pystreams.cli.terminal.console import note, show_table
from pystreams.times import show_time

_COLUMNS = ("step", "error", "source", "letters", "replayed", "failed again", "first", "last")


class Group(NamedTuple):
    """Letters that are counted together."""

    step: str
    error: str
    source: str


@dataclass(slots=True)
class Counts:
    """The letters of a group. ``replayed``: their records have been replayed since. ``again``: their records had been
    replayed before they failed. Event times in ms."""

    letters: int = 0
    replayed: int = 0
    again: int = 0
    first_ms: int = 0
    last_ms: int = 0

    def add(self, letter: DeadLetter, *, replayed: bool) -> None:
        """Count a letter."""
        self.first_ms = min(self.first_ms, letter.timestamp) if self.letters else letter.timestamp
        self.last_ms = max(self.last_ms, letter.timestamp)
        self.letters += 1
        self.replayed += replayed
        self.again += letter.replays > 0


class LettersSummary:
    """The chosen letters of a topic, counted."""

    def __init__(self, letters: Letters, chosen: Filter, marks: Marks) -> None:
        self.groups: dict[Group, Counts] = {}
        self.skipped: Counter[NotReplayable] = Counter()
        self.seen = Seen()
        for letter, timestamp in letters.read():
            self.seen.add(letter)
            if letter is None:
                self.skipped[NotReplayable.FOREIGN] += chosen.takes_foreign(timestamp)
            elif chosen.takes(letter):
                self._add(letter, marks)

    def rows(self) -> list[tuple[Group, Counts]]:
        """The group with most letters first."""
        return sorted(self.groups.items(), key=lambda item: (-item[1].letters, item[0]))

    def _add(self, letter: DeadLetter, marks: Marks) -> None:
        group = Group(letter.step, letter.error, "" if letter.source is None else letter.source.topic)
        identity = letter.identity
        self.groups.setdefault(group, Counts()).add(
            letter, replayed=identity is not None and identity in marks
        )
        if letter.not_replayable is not None:
            self.skipped[letter.not_replayable] += 1


def show_list(letters: Letters, chosen: Filter, marks: Marks, *, as_json: bool) -> None:
    """Print the summary. Raises ``TopicError`` if no record of the topic is a dead letter."""
    summary = LettersSummary(letters, chosen, marks)
    if as_json:
        for group, counts in summary.rows():
            print(json.dumps(_fields(group, counts), ensure_ascii=False))
    elif summary.groups:
        show_table(_COLUMNS, [_row(group, counts) for group, counts in summary.rows()])
    if not summary.groups:
        note(none_chosen(letters, summary.seen))
        return
    for reason, records in summary.skipped.items():
        if records:
            note(f"{records:,} cannot be replayed, {reason.value}.")


def _row(group: Group, counts: Counts) -> list[str]:
    numbers = (counts.letters, counts.replayed, counts.again)
    times = (show_time(counts.first_ms), show_time(counts.last_ms))
    names = (group.step, group.error.rpartition(".")[2], group.source)
    return [*(name or "-" for name in names), *(f"{n:,}" for n in numbers), *times]


def _fields(group: Group, counts: Counts) -> dict[str, str | int | None]:
    return {
        "step": group.step or None,
        "error": group.error or None,
        "source_topic": group.source or None,
        "letters": counts.letters,
        "replayed": counts.replayed,
        "failed_again": counts.again,
        "first_timestamp": counts.first_ms,
        "last_timestamp": counts.last_ms,
    }
