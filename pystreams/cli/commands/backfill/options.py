"""The options of ``pystreams backfill`` as they were given, and which of them contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pystreams.cli.application.settings import parse_pairs
from pystreams.cli.masters import AUTO, Master
from pystreams.cli.options import CONF_EXAMPLE
from pystreams.errors import ConfigError


@dataclass(frozen=True)
class BackfillOptions:
    """The options as text; see ``command.backfill``."""

    application: str
    sources: Sequence[str]
    until: str
    boundary: str | None
    previous: str | None
    from_snapshot: str | None
    approximate: bool
    hand_over: str
    emits: Sequence[str]
    master: str
    spark_conf: Sequence[str]
    py_files: Sequence[str]
    staging: str | None
    resume: bool
    overwrite: bool
    exact_updates: bool
    commit_records: int | None
    json: bool
    verbose: bool
    flags: Mapping[str, Any]
    settings: Sequence[str]

    def check_together(self, *, dry_run: bool) -> None:
        """Raises ``ConfigError`` for options that contradict each other."""
        parse_pairs(self.spark_conf, CONF_EXAMPLE)
        for_spark = {"--conf": self.spark_conf, "--py-files": self.py_files}
        if self.master != AUTO:
            Master(self.master).check(for_spark)
        if self.resume and self.overwrite:
            raise ConfigError(
                "--resume does not go with --overwrite",
                why="--resume continues the staged backfill, --overwrite replaces it",
                hint="leave one of them out",
            )
        if self.boundary is not None and self.until != "now":
            raise ConfigError(
                "--boundary does not go with --until",
                why="behind the boundary, history is read to the end of the log",
                hint="leave one of them out",
            )
        given = {
            "--source": self.sources,
            "--until": self.until != "now",
            "--boundary": self.boundary,
            "--previous": self.previous,
            "--approximate": self.approximate,
            "--emit": [text for text in self.emits if text != "none"],
            "--staging": self.staging,
            "--resume": self.resume,
            "--overwrite": self.overwrite,
            "--exact-updates": self.exact_updates,
            "--commit-records": self.commit_records,
            "--dry-run": dry_run,
            "--json": self.json,
            **for_spark,
        }
        needless = [name for name, value in given.items() if value]
        if self.from_snapshot is not None and needless:
            others = " and ".join(needless)
            raise ConfigError(
                f"--from-snapshot does not go with {others}",
                why="a snapshot is already computed: nothing is read or staged",
                hint=f"leave out --from-snapshot, or {others}",
            )
