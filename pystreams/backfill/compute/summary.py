"""Plans and results of backfills for people: the computed content, the records left out, and joins without matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Final

from pystreams.backfill.plan.manifest import Manifest
from pystreams.engine.failures.lateness import add_up
from pystreams.engine.failures.left_out import Fate, totals_text
from pystreams.engine.failures.unmatched import Unmatched, add_up_unmatched, never_found
from pystreams.times import show_time

#: The number of causes that are named for dropped records.
_CAUSES_SHOWN: Final = 3
_CELL: Final = '<td style="text-align: left">{}</td>'


def left_out(manifest: Manifest) -> Counter[str]:
    """The number of records that are in no result, by their fate."""
    return sum((Counter(one.left_out) for one in manifest.slices.values()), Counter())


def left_out_sentence(manifest: Manifest) -> str:
    """A sentence about the number of records that were left out, what is wrong with dropped ones, and the lateness of
    late ones; empty if there are none."""
    late = add_up(late for one in manifest.slices.values() for late in one.late)
    causes = sum((Counter(one.causes) for one in manifest.slices.values()), Counter())
    found = {
        f"{fate}{_shown_causes(causes, count)}" if fate == Fate.DROPPED.value else fate: count
        for fate, count in left_out(manifest).items()
    }
    return _sentence(totals_text(found, late))


def _shown_causes(causes: Counter[str], dropped: int) -> str:
    """`` (null key)``, with numbers if it is not all of them."""
    shown = causes.most_common(_CAUSES_SHOWN)
    if len(causes) == 1 and causes.total() == dropped:
        return f" ({shown[0][0]})"
    each = ", ".join(f"{count:,} {cause}" for cause, count in shown)
    more = ", …" if len(causes) > len(shown) else ""
    return f" ({each}{more})" if each else ""


def joins_in_vain(manifest: Manifest) -> list[Unmatched]:
    """The joins in which no record has found a match, and many have looked for one."""
    return never_found(add_up_unmatched(chain.from_iterable(one.joins for one in manifest.slices.values())))


def joins_in_vain_sentences(manifest: Manifest) -> list[str]:
    """Advice about each such join."""
    return [_sentence(join.text) for join in joins_in_vain(manifest)]


def remarks_on_boundaries(manifest: Manifest) -> list[str]:
    """A sentence about each boundary between a table and the log, and warnings of what looks like a loss there."""
    return [
        ("Warning: " if remark.kind == "warning" else "") + f"Topic {remark.topic}: {remark.text}."
        for remark in manifest.remarks
    ]


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """``rows`` are a kind (such as ``store``), a name, and a description; ``remarks`` are sentences."""

    title: str
    rows: Sequence[tuple[str, str, str]]
    remarks: Sequence[str] = ()

    def text(self) -> str:
        widths = [max((len(row[column]) for row in self.rows), default=0) for column in (0, 1)]
        rows = [f"  {kind:{widths[0]}}  {name:{widths[1]}}  {count}" for kind, name, count in self.rows]
        return "\n".join([self.title, *rows, *self.remarks])

    def html(self) -> str:
        rows = "".join(f"<tr>{''.join(_CELL.format(escape(cell)) for cell in row)}</tr>" for row in self.rows)
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks)
        table = f"<table>{rows}</table>" if rows else ""
        return f"<p>{escape(self.title)}</p>{table}{remarks}"


class Summarised(ABC):
    """An object that shows its summary: as text, and in a notebook as a table."""

    __slots__ = ()

    @abstractmethod
    def _summary(self) -> ResultSummary: ...

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self._summary().html()


def result_summary(
    manifest: Manifest,
    entries: Mapping[str, int],
    written: Mapping[str, int],
    windows_from: Mapping[str, int],
) -> ResultSummary:
    """``entries`` by store, ``written`` records by output topic; ``windows_from``: by store, the time (ms) before which
    windows have expired, where some may have."""
    rows = [
        ("store", store, f"{count:,} entries{_since(windows_from.get(store))}")
        for store, count in sorted(entries.items())
    ]
    expired = (
        "A store has only the windows that have not expired (size and grace, or retention=): a longer retention= keeps "
        "earlier ones, and emitted(TOPIC) has the results of all."
    )
    remarks = [
        expired if windows_from else "",
        *remarks_on_boundaries(manifest),
        left_out_sentence(manifest),
        *joins_in_vain_sentences(manifest),
    ]
    return ResultSummary(
        f"Backfill of {manifest.application_id}, up to {show_time(manifest.cut_time_ms)}",
        [*rows, *topic_rows(written)],
        [remark for remark in remarks if remark],
    )


def _since(time_ms: int | None) -> str:
    return "" if time_ms is None else f", windows from {show_time(time_ms)} on"


def topic_rows(written: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """A row for each output topic."""
    return [("topic", topic, f"{count:,} records") for topic, count in sorted(written.items())]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
