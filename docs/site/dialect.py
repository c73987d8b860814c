"""What GitHub's Markdown understands and that of the site does not."""

from __future__ import annotations

import re
from typing import Any

#: What a fence says to the tests: ``python no-run`` is Python.
_INFO = re.compile(r"^(```\w+) .*$")

_INDENT = re.compile(r"^ *")
_NESTED = re.compile(r"^ {2,3}(?=\S)")
_ITEM = re.compile(r"^ *([-*]|\d+\.) ")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave the language alone behind each fence, indent nested items by four, and part lists from the text before."""
    lines: list[str] = []
    in_code = False
    before = ""
    for line in markdown.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        if in_code:
            lines.append(_INFO.sub(r"\1", line))
        else:
            if _begins_a_list(line, before):
                lines.append("")
            lines.append(_NESTED.sub("    ", line))
        before = line
    return "\n".join(lines)


def _begins_a_list(line: str, before: str) -> bool:
    """Whether the line is an item, and the one before it is text to the left of an item's text."""
    if not before or not _ITEM.match(line) or _ITEM.match(before):
        return False
    return _indent(before) <= _indent(line)


def _indent(line: str) -> int:
    found = _INDENT.match(line)
    return 0 if found is None else found.end()
