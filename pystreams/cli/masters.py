"""Where a command computes history: the values of ``--master``, and what runs there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pystreams.backfill.spark.masters import is_connect
from pystreams.cli.spark import NO_SPARK, RESUME, quiet_session, require_packages
from pystreams.errors import ConfigError

if TYPE_CHECKING:
    from pystreams.backfill.compute.executor import Executor

#: The master is chosen for each backfill (commands/backfill/choosing.py).
AUTO: Final = "auto"
#: Spark with all cores of this machine.
SPARK_HERE: Final = "local[*]"

_PROCESSES: Final = re.compile(r"processes(?:\[(?P<count>\d+|\*)\])?")


@dataclass(frozen=True, slots=True)
class Master:
    """Where history is computed: ``none``, ``processes[N]``, a master of Spark, or a server of Spark Connect. ``why``
    is the reason if ``auto`` chose it, as the end of a sentence."""

    name: str
    why: str = ""

    @property
    def is_processes(self) -> bool:
        return _PROCESSES.fullmatch(self.name) is not None

    @property
    def is_spark(self) -> bool:
        return self.name != NO_SPARK and not self.is_processes

    @property
    def is_connect(self) -> bool:
        """Whether Spark's driver is in a server of Spark Connect."""
        return is_connect(self.name)

    @property
    def processes(self) -> int | None:
        """The number of worker processes; None: one for each core."""
        named = _PROCESSES.fullmatch(self.name)
        count = None if named is None else named["count"]
        return None if count in (None, "*") else int(count)

    def check(self, options: Mapping[str, object]) -> None:
        """Raises ``ConfigError`` for ``auto``, which stands for another master, for a number of processes that cannot
        be, and for ``options`` of Spark that were given to a command without Spark."""
        if self.name == AUTO:
            raise ConfigError(
                f"--master {AUTO} is only for backfill and archive",
                hint=f"name one, such as {NO_SPARK}, or Spark's master (--master '{SPARK_HERE}')",
            )
        if self.processes == 0:
            raise ConfigError(
                "history cannot be computed in 0 processes",
                hint="name one or more, as in --master 'processes[2]', or leave the number out for one for each core",
            )
        given = [name for name, value in options.items() if value]
        if given and not self.is_spark:
            names = " and ".join(given)
            raise ConfigError(
                f"{names} cannot be used with --master {self.name}",
                why=f"only Spark has {'this option' if len(given) == 1 else 'these options'}",
                hint=f"name Spark's master (--master '{SPARK_HERE}'), or leave out {names}",
            )


@contextmanager
def open_executor(
    master: Master,
    app_name: str,
    conf: Mapping[str, str],
    py_files: Sequence[str],
    log: Path | None,
    hint: str = RESUME,
) -> Iterator[Executor | None]:
    """The executor; None: this process. ``log`` is where Spark and its workers write; None: to standard error.
    ``hint`` is the advice if Spark fails at work.

    Raises ``ConfigError`` if Spark does not start, ``StateError`` if it fails at work.
    """
    if master.name == NO_SPARK:
        yield None
        return
    if not master.is_spark:
        from pystreams.backfill import ProcessExecutor

        yield ProcessExecutor(processes=master.processes)
        return
    from pystreams.backfill import SparkExecutor

    require_packages(spark=True, connect=master.is_connect)
    with quiet_session(master.name, app_name, conf, log, hint, master.why) as session:
        yield SparkExecutor(session, py_files=py_files)
