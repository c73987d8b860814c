"""The tables of docs/settings.md, made of the tables that the program works with.

python -m tests.unit.config.settings_page      # writes them
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from pystreams.config import StreamsConfig
from pystreams.config.client_setting import ClientSetting, same
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.names import REFUSED
from pystreams.config.secret import shown
from pystreams.config.values import as_text

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
#: What follows is generated.
MARK: Final = "## Settings of the application\n"

_DOCUMENTED: Final = re.compile(r"((?:    #: .*\n)+)    (\w+): ")


def tables() -> str:
    """Everything from the mark on."""
    lines = [
        MARK,
        *_table(("setting", "default", "meaning"), _application()),
        "## Settings of Kafka's clients\n",
        *_table(("setting", "clients", "default", "name in the clients"), _clients()),
        "## Refused settings\n",
        "Kafka Streams or its clients have these settings; pystreams refuses them:\n",
        *_table(("setting", "reason, and alternative"), _not_here()),
    ]
    return "\n".join(lines)


def written() -> str:
    """What the page has from the mark on."""
    return MARK + PAGE.read_text(encoding="utf-8").partition(MARK)[2]


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = list(columns)
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', ' or ') for cell in row)} |"
    yield ""


def _application() -> Iterator[tuple[str, str, str]]:
    texts = {
        name: " ".join(line.strip().removeprefix("#: ") for line in comment.splitlines())
        for comment, name in _DOCUMENTED.findall(inspect.getsource(StreamsConfig))
    }
    for field in fields(StreamsConfig):
        if field.default is MISSING or field.default is None:
            default = ""
        elif isinstance(field.default, str):
            default = f"`{field.default}`"
        else:
            value = as_text(field.default) if isinstance(field.default, bool) else field.default
            default = f"`{value if isinstance(value, str) else shown(field.name, value)}`"
        yield f"`{field.name}`", default, texts[field.name].replace("``", "`")


def _clients() -> Iterator[tuple[str, str, str, str]]:
    for name, row in sorted(CLIENT_SETTINGS.items()):
        if not row.refused:
            everyone = len(row.clients) == 3
            yield f"`{name}`", "all" if everyone else ", ".join(row.clients), _default(row), _fate(name, row)


def _default(row: ClientSetting) -> str:
    if isinstance(row.default, Mapping):
        return ", ".join(f"`{value}` ({client})" for client, value in row.default.items())
    return f"`{row.default}`" if row.default else ""


def _fate(name: str, row: ClientSetting) -> str:
    if row.held_by:
        return f"`{row.held_by}` of the application: {row.by}"
    if row.by:
        return row.by
    changed = {property_name: convert is not same for property_name, convert in row.librdkafka.items()}
    parts = [f"`{property_name}`{' (converted)' if c else ''}" for property_name, c in changed.items()]
    told = f"librdkafka {', '.join(parts)}"
    return told + (f"; kafka-python `{row.member}`" if row.member else _context(name))


def _context(name: str) -> str:
    return "; kafka-python's TLS context" if name.startswith("ssl.") else ""


def _not_here() -> Iterator[tuple[str, str]]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in REFUSED.items():
        by_reason[why].append(name)
    for name, row in CLIENT_SETTINGS.items():
        if row.refused:
            by_reason[row.refused].append(name)
    for why, names in sorted(by_reason.items(), key=lambda item: item[1]):
        yield ", ".join(f"`{name}`" for name in sorted(names)), why


def main() -> None:
    """Write the page's tables anew; what stands before them stays."""
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(head + tables(), encoding="utf-8")


if __name__ == "__main__":
    main()
