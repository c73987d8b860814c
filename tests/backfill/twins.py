"""An application twice: one runs live over all of a history, the other one goes on where a backfill has handed over."""

from __future__ import annotations

from collections.abc import Callable

from pystreams.app import App
from pystreams.ids import TopicPartition
from tests.backfill.live import SETTINGS, append, create, left_on, split
from tests.backfill.programs import history, windowed_sum
from tests.live.support import Log, run_to_the_end

OUTPUTS = ["sums"]


class Twins:
    """Both logs have the first half of the history, which the live application has processed."""

    def __init__(self, new_log: Callable[[str], Log], seed: int) -> None:
        self.past = history("windowed sum", seed, 2)
        #: The middle of each partition, at which history ends.
        self.at = {
            TopicPartition(topic, number): len(lines) // 2
            for topic, partitions in self.past.items()
            for number, lines in enumerate(partitions)
        }
        prefix, self._rest = split(self.past, self.at)
        self._live, self.handed = new_log("live"), new_log("handed")
        self._live_app, self.app = _app(self._live), _app(self.handed)
        for log in (self._live, self.handed):
            create(log, self.past, OUTPUTS)
            append(log, prefix)
        run_to_the_end(self._live, self._live_app)

    def go_on_alike(self) -> None:
        """Both process the rest; then their logs hold the same."""
        for log, app in ((self._live, self._live_app), (self.handed, self.app)):
            append(log, self._rest)
            run_to_the_end(log, app)
        assert left_on(self.handed, self.app, OUTPUTS) == left_on(self._live, self._live_app, OUTPUTS)


def _app(log: Log) -> App:
    return windowed_sum(**SETTINGS, state_dir=log.path / "state", window_changelog_retention_ms=-1)
