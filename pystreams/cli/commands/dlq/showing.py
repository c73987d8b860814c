"""``pystreams dlq show``: dead letters one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pystreams.cli.commands.dlq.decoding import LetterTexts
from pystreams.cli.commands.dlq.letters import DeadLetter
from pystreams.cli.commands.dlq.marks import Marks
from pystreams.cli.commands.dlq.selection import Filter, Letters, Seen, none_chosen
from pystreams.cli.records.format import show_bytes
from pystreams.cli.records.json_records import json_line
from pystreams.cli.records.known_formats import AUTO
from pystreams.cli.terminal.console import note, output
from pystreams.record import RecordBatch
from pystreams.times import show_time


def show_letters(
    letters: Letters,
    chosen: Filter,
    marks: Marks,
    texts: LetterTexts,
    limit: int | None,
    *,
    trace: bool,
    as_json: bool,
) -> None:
    """Print the chosen letters. Raises ``TopicError`` if no record of the topic is a dead letter."""
    seen, shown = Seen(), 0
    for letter, _ in letters.read():
        seen.add(letter)
        if letter is None or not chosen.takes(letter):
            continue
        if shown == limit:
            note(f"There are more: --limit {limit} ends here.")
            return
        shown += 1
        replayed = letter.identity is not None and letter.identity in marks
        if as_json:
            print(_json(letter, texts, replayed=replayed))
        else:
            _print(letter, texts, replayed=replayed, trace=trace)
    if not shown:
        note(none_chosen(letters, seen))


def _print(letter: DeadLetter, texts: LetterTexts, *, replayed: bool, trace: bool) -> None:
    from rich.text import Text

    console = output()
    console.print(Text(letter.place, style="bold"), Text(f"  {show_time(letter.timestamp)}"), sep="")
    for name, content in _parts(letter, texts, replayed=replayed, trace=trace):
        text = Text(f"  {name + ':':<9} ", style="dim")
        console.print(text.append(content.replace("\n", "\n" + " " * 12), style="default"))


def _parts(
    letter: DeadLetter, texts: LetterTexts, *, replayed: bool, trace: bool
) -> Iterator[tuple[str, str]]:
    yield "from", letter.origin or "no input record"
    if letter.step:
        yield "step", letter.step
    message = letter.facts.get("message", "")
    yield "error", f"{letter.error}: {message}" if message else letter.error
    yield "key", texts.key(letter)
    yield "value", texts.value(letter)
    for name, content in letter.headers:
        yield "header", f"{name}={show_bytes(AUTO, content)}"
    if letter.replays:
        yield "replays", f"failed after it was replayed {_times(letter.replays)}"
    if replayed:
        yield "replayed", "yes"
    elif letter.not_replayable is not None:
        yield "replayed", f"cannot be: {letter.not_replayable.value}"
    if trace:
        yield "trace", letter.facts.get("stacktrace", "").rstrip()


def _times(replays: int) -> str:
    return "once" if replays == 1 else f"{replays} times"


def _json(letter: DeadLetter, texts: LetterTexts, *, replayed: bool) -> str:
    """The input record as ``consume --json`` shows it, but with the letter's own position, and the failure."""
    record = RecordBatch(
        letter.partition.topic,
        letter.partition.partition,
        [letter.key],
        [letter.value],
        [letter.timestamp],
        [letter.offset],
        [letter.headers],
        letter.offset + 1,
    )
    source = letter.source and {
        "topic": letter.source.topic,
        "partition": letter.source.partition,
        "offset": letter.source_offset,
    }
    failure = {
        "source": source,
        "step": letter.step or None,
        "error": letter.error,
        "message": letter.facts.get("message"),
        "stack_trace": letter.facts.get("stacktrace"),
        "replays": letter.replays,
        "replayed": replayed,
    }
    line = json_line(record, 0, texts.keys, texts.values)
    return f"{line[:-1]}, {json.dumps(failure, ensure_ascii=False)[1:]}"
