"""A driver without Spark that ends while it emits the second file of a table:

python -m tests.backfill.handover.killed_emit FOLDER written|moved
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pystreams.backfill import backfill, emit
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.sources.folder import Folder
from tests.backfill.kit import memory
from tests.backfill.typed_program import typed, typed_history

OUTPUTS = {"big-orders": 3, "counts-per-minute": 2, "sessions": 2, "chosen-0": 2, "chosen-1": 2}


def computed(staging: Path, **given: Any) -> BackfillResult:
    return backfill(typed(), sources=memory(typed_history(), OUTPUTS), staging=staging, **given)


def main() -> None:
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    move, moved = Folder.move, 0

    def deadly(self: Folder, file: str, to: str) -> None:
        nonlocal moved
        moved += 1
        if moved == 2 and moment == "written":
            os.kill(os.getpid(), signal.SIGKILL)
        move(self, file, to)
        if moved == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    result = computed(folder / "staging")
    setattr(Folder, "move", deadly)  # noqa: B010 - in the place of a method
    emit(result, {"sessions": folder / "table"})


if __name__ == "__main__":
    main()
