"""The Tab key completes commands and options, in a real bash that has installed it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.starting.forked import make_commands

PROGRAM = Path(sys.executable).with_name("pystreams")
#: What bash does for a Tab behind a line: it fills these variables, calls the function, and takes its answers.
TAB = """
shopt -s expand_aliases
source ~/.bashrc
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
$(complete -p pystreams | sed 's/.*-F \\([^ ]*\\).*/\\1/') pystreams
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def bash(tmp_path: Path):
    """Runs a script in a bash of somebody who has a home folder and pystreams."""
    found = shutil.which("bash")
    if found is None or not PROGRAM.exists():
        pytest.skip("needs bash, and pystreams as a command")
    commands = tmp_path / "commands"
    commands.mkdir()
    path = f"{commands}:{PROGRAM.parent}:{os.environ['PATH']}"
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYSTREAMS_", "PYTHON"))}
    environment = {**kept, "HOME": str(tmp_path), "PATH": path}
    inherited = make_commands(commands, environment)

    def run(script: str) -> str:
        # A list of commands, so that bash stays the parent of each.
        done = subprocess.run(
            [found, "-c", script],
            cwd=tmp_path,
            env=environment,
            pass_fds=inherited,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    return run


def test_bash_completes_commands_and_options_after_the_installation(bash) -> None:
    # It looks for the shell among the processes above it, where a forked one has another.
    assert "installed" in bash(f"'{PROGRAM}' --install-completion; true")

    def completed(*words: str) -> list[str]:
        return bash(TAB.format(words=" ".join(f"'{word}'" for word in words))).split()

    assert completed("pystreams", "to") == ["topics"]
    assert completed("pystreams", "topics", "al") == ["alter"]
    assert completed("pystreams", "run", "--unt") == ["--until-caught-up"]
    assert set(completed("pystreams", "dlq", "")) >= {"replay", "list"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_for_the_name_of_the_command(bash, shell: str) -> None:
    told = bash(f"_PYSTREAMS_COMPLETE=source_{shell} pystreams")
    assert f"_PYSTREAMS_COMPLETE=complete_{shell}" in told
