"""``run --profile``: samples the application while it runs, and shows at the end where its time went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pystreams.cli.terminal.console import show_table
from pystreams.cli.terminal.logs import command_log
from pystreams.errors import ConfigError, StreamsError
from pystreams.plural import counted

if TYPE_CHECKING:
    from pystreams.profiling import Row, Sampler
    from pystreams.runtime.streams import Streams

_COLUMNS = ("step", "part", "seconds", "share")
_NO_STEP = "(no step)"


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """``picture``: the file for a flame graph, or None."""

    table: bool = False
    picture: Path | None = None

    def __post_init__(self) -> None:
        """Raises ``ConfigError`` for a file that cannot be written: after a long run it would be too late."""
        if self.picture is None:
            return
        try:
            self.picture.touch()
        except OSError as error:
            raise ConfigError(
                f"--flame-graph cannot write {self.picture}",
                why=error.strerror or str(error),
                hint="name a file in a folder that exists",
            ) from None

    @property
    def wanted(self) -> bool:
        return self.table or self.picture is not None

    def check_workers(self, workers: int | None) -> None:
        """Raises ``ConfigError`` if there are worker processes."""
        if workers is not None and self.wanted:
            raise ConfigError(
                f"{'--profile' if self.table else '--flame-graph'} looks into one process, "
                "and --workers starts others",
                hint="leave --workers (PYSTREAMS_WORKERS) out: this process then has the partitions that other "
                "members of the group do not have",
            )


@contextmanager
def profiled(streams: Streams, options: ProfileOptions) -> Iterator[None]:
    """Samples what runs inside, and shows the profile at the end, also after an error."""
    if not options.wanted:
        yield
        return
    from pystreams.profiling import Sampler

    sampler = Sampler(streams)
    try:
        with sampler:
            yield
    finally:
        _show(sampler, streams.config.application_id, options)


def _show(sampler: Sampler, application_id: str, options: ProfileOptions) -> None:
    from pystreams.profiling import Profile, flame_graph

    profile = Profile.of(sampler.stacks_ms)
    if profile.total_ms == 0:
        command_log.info("There is no profile: no stream thread has run for long enough to be seen.")
        return
    at_work_s = (profile.total_ms - profile.idle_ms) / 1000
    total = f"stream threads were at work for {at_work_s:.1f} of {profile.total_ms / 1000:.1f} s"
    if options.table:
        command_log.info("Profile: %s; %s. Shares are of the time at work.", total, _looks(sampler.looks))
        show_table(_COLUMNS, [_cells(row) for row in profile.rows()])
    if options.picture is not None:
        _write(options.picture, flame_graph(f"{application_id}: {total}", sampler.stacks_ms))
        command_log.info("The flame graph is in %s: open it in a browser.", options.picture)


def _looks(number: int) -> str:
    return counted(number, "look")


def _cells(row: Row) -> tuple[str, str, str, str]:
    share = "" if row.share is None else f"{row.share:.1%}"
    return row.step or _NO_STEP, "all" if row.part is None else str(row.part), f"{row.ms / 1000:.2f}", share


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StreamsError(
            f"The flame graph cannot be written to {path}", why=error.strerror or str(error)
        ) from None
