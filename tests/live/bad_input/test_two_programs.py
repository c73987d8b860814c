"""Two programs with one application id: the second is told, and the first goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def test_the_second_is_refused_with_what_to_do(folder: Path, pystreams: Any) -> None:
    (folder / "first.py").write_text(
        "from pystreams import App\napp = App('shared')\napp.stream('in', value=str).to('out')\n",
        encoding="utf-8",
    )
    (folder / "second.py").write_text(
        "from pystreams import App\napp = App('shared')\n"
        "app.stream('in', value=str).filter(lambda line: False).to('out')\n",
        encoding="utf-8",
    )
    pystreams("topics", "create", "in", "out")
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "run", "first"],
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
        stderr=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if line.startswith("running"):
                break
        refused = pystreams("run", "second", "--until-caught-up")
        pystreams("produce", "in", stdin="kept\n")
        first.send_signal(signal.SIGINT)
        rest = first.stderr.read()
    assert first.returncode == 0, rest
    assert refused.code == 3, refused.err
    assert "Traceback" not in refused.err
    assert "the topology of" in refused.err
    assert "differs from the one that the group runs" in refused.err
    assert "the first difference: sub-topology 0: node KSTREAM-" in refused.err
    assert "fingerprint" not in refused.err
    assert "application shared" in refused.err
    assert "another application_id" in refused.err
    assert pystreams("run", "first", "--until-caught-up").code == 0
    assert [line.split("\t")[-1] for line in pystreams("consume", "out").lines] == ["kept"]
