"""The table of docs/changing-a-program.md: ``python -m tests.cli.changes.page`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from tests.cli.changes.programs import CHANGES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "changing-a-program.md"
_HEAD = "| change of | `diff` exits with | `run` | what was stored |\n| --- | --- | --- | --- |\n"


def table() -> str:
    """What the changes that are tested come to."""
    return _HEAD + "".join(f"| {' | '.join(change.row)} |\n" for change in CHANGES)


def written() -> str:
    """The table of the page."""
    page = PAGE.read_text(encoding="utf-8")
    return page[page.index(_HEAD) : page.index("\n\n", page.index(_HEAD)) + 1]


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(written(), table()), encoding="utf-8")


if __name__ == "__main__":
    main()
