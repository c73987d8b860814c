"""Where a backfill runs: the values of ``--master``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pystreams.cli.spark import NO_SPARK
from pystreams.errors import ConfigError

#: The master is chosen for each backfill (choosing.py).
AUTO: Final = "auto"
#: Spark with all cores of this machine.
SPARK_HERE: Final = "local[*]"

_PROCESSES: Final = re.compile(r"processes(?:\[(?P<count>\d+|\*)\])?")


@dataclass(frozen=True, slots=True)
class Master:
    """Where a backfill runs: ``none``, ``processes[N]``, or a master of Spark. ``why`` is the reason if ``auto`` chose
    it, as the end of a sentence."""

    name: str
    why: str = ""

    @property
    def is_spark(self) -> bool:
        return self.name != NO_SPARK and not _PROCESSES.fullmatch(self.name)

    @property
    def processes(self) -> int | None:
        """The number of worker processes; None: one for each core."""
        named = _PROCESSES.fullmatch(self.name)
        count = None if named is None else named["count"]
        return None if count in (None, "*") else int(count)

    def check(self) -> None:
        """Raises ``ConfigError`` for a number of processes that cannot be."""
        if self.processes == 0:
            raise ConfigError(
                "a backfill cannot run in 0 processes",
                hint="name one or more, as in --master 'processes[2]', or leave the number out for one for each core",
            )
