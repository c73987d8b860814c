"""A task that keeps its stores up to date while another process runs it, so that this one can take over at once.

Source: org.apache.kafka.streams.processor.internals.StandbyTask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pystreams.broker.port import CommittedOffset
from pystreams.ids import TopicPartition
from pystreams.runtime.restoring.restorable import ToRestore
from pystreams.runtime.tasks.abstract_task import AbstractTask


@dataclass(slots=True)
class StandbyTask(AbstractTask):
    """``changelogs_ahead``: the changelogs may hold records that were not committed.

    Implements ``task.Task`` and ``restorable.Followable``.
    """

    changelogs_ahead: bool = False
    #: Its stores could not be opened, and are not tried again before this time (monotonic, ms).
    open_at_ms: float = field(default=0.0, init=False)
    #: How far the group has committed the inputs that stores are filled from.
    _limits: dict[TopicPartition, int] = field(default_factory=dict, init=False)

    def to_restore(self) -> list[ToRestore]:
        """The stores, and the partitions to fill them from. An input is read as far as the group has committed it."""
        state = self.state
        return [
            *(
                ToRestore(store, p, state.changelog_offset(store), self._limits.get(p, 0), False)
                for store, p in self.source_changelogs.items()
            ),
            *(
                ToRestore(store, p, state.changelog_offset(store), None, False)
                for store, p in self.changelogs.items()
            ),
        ]

    @property
    def needs_commits(self) -> bool:
        """Whether the stores depend on the group's committed offsets."""
        return bool(self.source_changelogs) or any(self.state.expires(store) for store in self.changelogs)

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Mapping[str, int]:
        """The group has committed these offsets. Returns for each store that is filled from an input the offset up to
        which to read this input."""
        of_inputs = {p: committed[p] for p in self.inputs if p in committed}
        self.keep_time(of_inputs, ahead=self.changelogs_ahead)
        self._limits = {p: at.offset for p, at in of_inputs.items()}
        return {store: self._limits[p] for store, p in self.source_changelogs.items() if p in self._limits}

    def checkpoint(self, *, complete: bool) -> None:
        """Delete expired entries, and publish the stores' progress for other processes. ``complete``: the stores have
        all records of their changelogs."""
        self.state.commit({})
        if complete:
            self.state.complete()
        self.state.restore_checkpoint()
