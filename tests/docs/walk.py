"""Pages that a reader works through: their files are written, their commands run, and what these print is compared with
what the page shows.

A block of Python, TOML, bash, … whose first line is ``# NAME`` is that file. A ``console`` block has commands behind
``$`` (with further lines behind ``>``), and below each what it prints. A ``bash`` block has commands alone: they must
work, whatever they print. A ``python`` block without a name is a program that prints the ``text`` block below it.

What differs from run to run counts as equal: times, durations, rates, process ids. A line ``…`` stands for any lines,
``…`` within one for any text.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.docs.manual import EXAMPLE, Block, expected, sections
from tests.docs.shell import Shell

#: Fences that a page of this kind may have; "no-run" is code of others, or a part of a file.
KINDS = re.compile(
    r"^(console|bash|text|mermaid|(python|java|bash) no-run|(python|toml|yaml|dockerfile|ini|json))$"
)

_FILE = re.compile(r"^(?:#|//) ([\w./-]+\.\w+|[\w./-]*Dockerfile|[\w./-]+\.service)$")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_UNSTEADY = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\d[\d,]*(\.\d+)?(?= (s|ms|MB)\b)"), "<n>"),
    (re.compile(r"\d[\d,]*/s"), "<n>/s"),
    (re.compile(r"(process|pid) \d+"), r"\1 <n>"),
)


NOWHERE: Mapping[str, str] = MappingProxyType({})


@dataclass
class Command:
    """What a reader types, and what the page shows below it; None if it does not."""

    line: int
    text: str
    shown: str | None


def commands(block: Block) -> list[Command]:
    """Those of a ``console`` or ``bash`` block."""
    if block.info != "console":
        lines = enumerate(block.text.splitlines(), block.line + 1)
        plain = [(number, _COMMENT.sub("", line)) for number, line in lines]
        return [Command(number, line, None) for number, line in plain if line]
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], ""))
        elif line.startswith("> ") and found and not found[-1].shown:
            found[-1].text += "\n" + line[2:]
        else:
            assert found, f"{block.where} shows output before any command"
            found[-1].shown = f"{found[-1].shown}{line}\n"
    return found


def file_of(block: Block) -> str | None:
    """The name of the file that a block is; None if it is not one."""
    first = _FILE.match(block.text.partition("\n")[0])
    kinds = {"python", "bash", "toml", "yaml", "dockerfile", "ini", "json"}
    return first[1] if first and block.info in kinds else None


def walk(
    page: Path,
    folder: Path,
    shell: Shell,
    addresses: Mapping[str, str] = NOWHERE,
    *,
    headings: Collection[str] | None = None,
    leave_out: Collection[str] = (),
) -> int:
    """Do in ``folder`` what the page says, or its sections with these headings, except for the commands to leave out.
    Returns how many commands and programs were run.

    ``addresses`` has others for those that the page shows: free ones, or such with a server. Raises ``AssertionError``
    where the page shows something else than happens.
    """
    shown, ran = expected(page), 0
    chosen = [section for section in sections(page) if headings is None or section.heading in headings]
    for block in (block for section in chosen for block in section.blocks):
        assert KINDS.match(block.info), f"{block.where}: nobody runs a block of {block.info!r}"
        name = file_of(block)
        if name is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(_replaced(block.text, addresses), encoding="utf-8")
        elif block.info in {"console", "bash"}:
            for command in commands(block):
                if command.text not in leave_out:
                    _check(f"{page.name}:{command.line}", command, shell, addresses)
                    ran += 1
        elif block.info == EXAMPLE:
            told = _print_of(block, folder, shell)
            output = shown.get(block.line)
            assert fits("" if output is None else output.text, told), f"{block.where} prints\n{told}"
            ran += 1
    return ran


def _print_of(block: Block, folder: Path, shell: Shell) -> str:
    done = subprocess.run(
        [shell.python, "-c", block.text],
        cwd=folder,
        pass_fds=shell.inherited,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{block.where} fails:\n{done.stderr}"
    return done.stdout


def _check(where: str, command: Command, shell: Shell, addresses: Mapping[str, str]) -> None:
    code, told = shell.run(_replaced(command.text, addresses))
    told = _replaced(told, {ours: shown for shown, ours in addresses.items()})
    assert code == 0 or "Error" in (command.shown or ""), f"{where}: exit code {code}\n{told}"
    assert command.shown is None or fits(command.shown, told), f"{where}: {command.text} prints\n{told}"


def _replaced(text: str, addresses: Mapping[str, str]) -> str:
    for shown, ours in addresses.items():
        text = text.replace(shown, ours)
    return text


def fits(shown: str, told: str) -> bool:
    """Whether a program that said ``told`` may be shown as ``shown``."""
    lines = [re.escape(line).replace("…", ".*") for line in _steady(shown).splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == ".*" else f"{line}\n" for line in lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _steady(told).splitlines())) is not None


def _steady(text: str) -> str:
    """Without what differs from run to run, empty lines, and the widths of columns and rules."""
    for pattern, name in _UNSTEADY:
        text = pattern.sub(name, text)
    lines = (re.sub(r"([─━])+", r"\1", " ".join(line.split())) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
