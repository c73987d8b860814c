"""pystreams with a profile of its stream thread: ``python -m tests.benchmarks.kafka.profiled FILE run ...``.

The profile (cProfile) names Python functions and the C functions that they call; it slows both down, small functions
most. Read it for shares and counts, not for times.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
from pathlib import Path

from rich.console import Console

from pystreams.__main__ import main
from pystreams.runtime.threads.stream_thread import StreamThread

_LINES = 30


def profile_thread(path: Path) -> None:
    """Have the stream thread of this process write its profile to ``path`` when it ends."""
    run = StreamThread._run

    def profiled(thread: StreamThread) -> None:
        profile = cProfile.Profile()
        try:
            profile.runcall(run, thread)
        finally:
            profile.dump_stats(path.with_suffix(".pstats"))

    StreamThread._run = profiled  # type: ignore[method-assign,assignment]


def show_profiles(folder: Path, console: Console) -> None:
    """Print what took longest in each profile of a folder."""
    for path in sorted(folder.glob("*.pstats")):
        console.print(f"\n{path.name}: the {_LINES} functions that took longest by themselves")
        text = io.StringIO()
        pstats.Stats(str(path), stream=text).strip_dirs().sort_stats("tottime").print_stats(_LINES)
        console.print(text.getvalue(), markup=False, highlight=False)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    profile_thread(target)
    sys.argv = ["pystreams", *sys.argv[2:]]
    main()
