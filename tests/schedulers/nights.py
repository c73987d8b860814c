"""The folder of docs/how-to/nightly-backfills.md: its program, its script and its jobs, at its second night."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs.manual import DOCS, sections
from tests.docs.shell import Shell
from tests.docs.walk import file_of, walk

PAGE = DOCS / "how-to" / "nightly-backfills.md"

#: The first line of a wrapper of pystreams that is killed when it is called for the first time.
_KILLED_ONCE = """\
#!/bin/bash
[ -e {seen} ] || {{ touch {seen}; kill -KILL $$; }}
exec {pystreams} "$@"
"""


class Nights:
    """The folder in which a scheduler works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: What the page shows, and what stands there in a test: nobody waits minutes for another try.
        self._instead = {
            "/srv/shop": str(folder),
            "timedelta(minutes=5)": "timedelta(seconds=1)",
            "delay=300": "delay=1",
        }

    def begin(self) -> None:
        """Walk the page up to its second night, and write its other files."""
        with Shell(self.folder, {}) as shell:
            walk(PAGE, self.folder, shell, headings={"Run backfills every night", "One night"})
        for block in (block for section in sections(PAGE) for block in section.blocks):
            name = file_of(block)
            if name is not None:
                text = block.text
                for shown, ours in self._instead.items():
                    text = text.replace(shown, ours)
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_text(text, encoding="utf-8")

    @property
    def environment(self) -> Mapping[str, str]:
        """That of the scheduler: this environment's pystreams is found."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYSTREAMS_", "PYTHON"))
        }
        return {**kept, "PATH": path}

    def kill_once(self) -> None:
        """The next pystreams of the script is killed."""
        wrapper = self.folder / ".venv" / "bin" / "pystreams"
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        pystreams = Path(sys.executable).parent / "pystreams"
        wrapper.write_text(
            _KILLED_ONCE.format(seen=self.folder / "seen", pystreams=pystreams), encoding="utf-8"
        )
        wrapper.chmod(0o755)

    def break_the_line(self) -> None:
        """The script has an option that does not exist."""
        script = self.folder / "nightly.sh"
        script.write_text(script.read_text(encoding="utf-8").replace("--json", "--jason"), encoding="utf-8")

    def produce(self, key: str, price: float) -> None:
        """One more order."""
        line = f"{key}={json.dumps({'price': price})}\n"
        command = [sys.executable, "-m", "pystreams", "produce", "orders", "-k", "="]
        subprocess.run(command, cwd=self.folder, input=line, text=True, check=True, capture_output=True)

    @property
    def staged(self) -> list[str]:
        """The nights that have a folder."""
        return sorted(path.name for path in (self.folder / "staging").iterdir())

    def rows(self) -> list[tuple[str, float]]:
        """The table: each key with its value, in no order."""
        from pyarrow import parquet

        rows = parquet.read_table(self.folder / "tables" / "revenue").to_pylist()
        return sorted((row["key"], row["value"]) for row in rows)
