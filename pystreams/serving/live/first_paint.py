"""The page as the server sends it, with the state of that moment, so that it is useful without scripts, too. The
scripts then update the same elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from pystreams.serving.live.look import Described, Look, TaskLook, ThreadLook

_PAGE: Final = Template((Path(__file__).parent / "static" / "page.html").read_text(encoding="utf-8"))

_UNKNOWN: Final = "\N{EN DASH}"

#: The columns of the table of tasks.
_COLUMNS: Final = 6


def first_paint(described: Described | None, look: Look, *, with_stores: bool) -> str:
    """The page's HTML. All names in it come from programs, so they are escaped. ``with_stores``: the server has
    ``/stores``, where keys can be looked up."""
    health, words = _health(look)
    internal = sum(client.internal_records for client in look.clients)
    tasks = [(thread, task) for client in look.clients for thread in client.threads for task in thread.tasks]
    return _PAGE.substitute(
        application=escape(described.application_id if described else "pystreams"),
        health=health,
        words=words,
        reasons="".join(f"<li>{escape(reason)}</li>" for reason in look.health.reasons),
        facts=_facts(described),
        picture=described.picture if described else "",
        lag=_number(_sum(task.lag for _, task in tasks)),
        tasks=_number(len(tasks) + sum(client.more_tasks for client in look.clients)),
        processed=_number(sum(client.records for client in look.clients)),
        processed_note="records since the start"
        + (f", and {internal:,} from internal topics" if internal else ""),
        left_out=_number(sum(sum(client.left_out.values()) for client in look.clients)),
        rows=_rows(tasks),
        stores="served" if with_stores else "absent",
    )


def _health(look: Look) -> tuple[str, str]:
    """The health as the style sheet names it, and in words."""
    if not look.health.live:
        return "bad", "Not live"
    return ("good", "Ready") if look.health.ready else ("warn", "Not ready")


def _facts(described: Described | None) -> str:
    if described is None:
        return "<div><dt>State</dt><dd>the client starts</dd></div>"
    facts = {
        "Log": described.log,
        "Guarantee": described.guarantee,
        "Program": described.fingerprint[:8],
        "pystreams": described.pystreams,
        "Python": described.python,
    }
    return "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items())


def _rows(tasks: Sequence[tuple[ThreadLook, TaskLook]]) -> str:
    if not tasks:
        return f'<tr class="empty"><td colspan="{_COLUMNS}">This application has no tasks here now.</td></tr>'
    ordered = sorted(tasks, key=lambda pair: [int(part) for part in pair[1].task.split("_")])
    return "".join(_row(thread, task) for thread, task in ordered)


def _row(thread: ThreadLook, task: TaskLook) -> str:
    stream_time = _UNKNOWN if task.stream_time_ms is None else _time(task.stream_time_ms)
    return (
        f'<tr><th scope="row">{escape(task.task)}</th><td class="where">{escape(thread.name)}</td>'
        f"<td>{escape(task.status)}</td>"
        f'<td class="number">{_UNKNOWN}</td><td class="number">{_number(task.lag)}</td><td>{stream_time}</td></tr>'
    )


def _time(ms: int) -> str:
    """A time that Python has, or the number."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ms)


def _sum(lags: Iterable[int | None]) -> int | None:
    """The sum; None while one of the numbers is not known."""
    known = list(lags)
    return None if None in known else sum(lag for lag in known if lag is not None)


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"
