"""``python -m tests.docs [PAGE…]``: write what the examples of the manual print into it. Read the difference after."""

from __future__ import annotations

import sys

from tests.docs.manual import PAGES, expected, run


def main(names: list[str]) -> None:
    for page in PAGES:
        if names and page.name not in names:
            continue
        lines = page.read_text(encoding="utf-8").splitlines()
        shown = expected(page)
        for block, told in reversed(run(page)):
            output = shown.get(block.line)
            if output is None:
                if told:
                    print(f"{block.where} prints, but shows nothing")
                continue
            start, end = output.line, output.line + len(output.text.splitlines())
            lines[start:end] = told.splitlines()
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


main(sys.argv[1:])
