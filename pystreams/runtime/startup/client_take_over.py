"""The take-over from the last run at the start of a client. It compares the programs first, and changes topics only
after all checks."""

from __future__ import annotations

import logging

from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.runtime.startup.carry_over import CarryOver
from pystreams.state.disk.directory import StateDirectory
from pystreams.take_over.last_run import KeptTopology, LastRun, TopologyInUse
from pystreams.take_over.take_over_plan import TakeOver, plan_take_over, topology_as_kept
from pystreams.take_over.unprocessed import unprocessed
from pystreams.topics.topic_plan import TopicPlan, internal_topics
from pystreams.topology.built import BuiltTopology
from pystreams.topology.former_names import renamed
from pystreams.topology.names import CHANGELOG_SUFFIX

log = logging.getLogger(__name__)


class ClientTakeOver:
    """The take-over of one client."""

    def __init__(
        self,
        built: BuiltTopology,
        config: StreamsConfig,
        broker: Broker,
        admin: Admin,
        directory: StateDirectory,
        clock: Clock,
    ) -> None:
        self._built = built
        self._config = config
        self._broker = broker
        self._admin = admin
        self._clock = clock
        self._kept = KeptTopology(broker, admin, directory, built.application_id, clock)
        self._todo: TakeOver | None = None

    def check(self) -> None:
        """Raises ``TopologyError`` if stored content would be lost, ``ConfigError`` if the configuration accepts a loss
        that does not happen."""
        last = self._last()
        self._todo = None if last is None else self._plan(last)
        if last is None:
            self._warn_of_unused_changelogs()

    @property
    def topics_made_anew(self) -> frozenset[str]:
        """The changelogs of stores that start empty or get the content of a former name."""
        if self._todo is None:
            return frozenset()
        return frozenset(map(self._built.changelog, (*self._todo.dropped, *self._todo.carried)))

    def carry_out(self, topics: TopicPlan) -> TopologyInUse:
        """Create missing topics, and change stored content according to the comparison. Raises ``BrokerError`` while
        the group has members, if they must not see these changes."""
        todo, built = self._todo, self._built
        last = None if todo is None else todo.last
        anew = self.topics_made_anew
        self._admin.create_topics([spec for spec in topics.missing if spec.name not in anew])
        stores = bool(built.stores or built.internal_topics)
        if stores:
            self._kept.create_topic(needed=todo is not None and todo.changes_data)
        if todo is not None:
            for note in todo.notes:
                log.info("%s", note)
            for loss in todo.losses:
                log.warning("content is lost, as accept_loss permits: %s", loss)
        if todo is not None and (todo.changes_data or todo.last.left_over):
            specs = {spec.name: spec for spec in internal_topics(built, topics.partitioning, self._config)}
            carry_over = CarryOver(self._broker, self._admin, self._kept, built, specs, self._clock)
            if todo.changes_data:
                last = carry_over.run(self._last, self._plan)
            else:
                carry_over.clean_up(todo.last)
        in_use = TopologyInUse(self._kept, last, topology_as_kept(built), stores=stores)
        if last is None:
            self._kept.remember(in_use.now, processed=False)
        elif in_use.kept:
            self._kept.remember(last)
        return in_use

    def _warn_of_unused_changelogs(self) -> None:
        """Warn of changelogs that no store uses. If there is no record of the last run, as after Kafka Streams, they
        may belong to renamed stores. They may also belong to an application whose name begins with this one's, so they
        are no reason to refuse the start."""
        built, prefix = self._built, f"{self._built.application_id}-"
        used = {built.changelog(spec.name) for spec in built.stores}
        unused = sorted(
            topic
            for topic in self._admin.partition_counts()
            if topic.startswith(prefix) and topic.endswith(CHANGELOG_SUFFIX) and topic not in used
            if not topic.startswith(f"{prefix}pystreams-")
        )
        if not unused or not self._admin.group_offsets(built.application_id, stable=False):
            return
        store = unused[0].removeprefix(prefix).removesuffix(CHANGELOG_SUFFIX)
        log.warning(
            "no store of %s uses %s: if a store was renamed, its content is still in this topic, and the new store"
            ' starts empty; name="new name", was="%s" carries the content over',
            built.application_id,
            ", ".join(unused),
            store,
        )

    def _plan(self, last: LastRun) -> TakeOver:
        accepted = frozenset((self._config.accept_loss or "").split(",")) - {""}
        return plan_take_over(last, self._built, accepted, self._broker.description, self._waiting)

    def _waiting(self, topic: str) -> int:
        return unprocessed(self._admin, self._built.application_id, [topic])[topic]

    def _last(self) -> LastRun | None:
        """The last run. Without a record of it, changelogs with former names show that their stores existed."""
        last = self._kept.read()
        if last is not None:
            return last
        built, there = self._built, self._admin.partition_counts()
        former = {
            spec.name: spec.was
            for spec in built.stores
            if spec.was is not None
            and built.changelog(spec.was) in there
            and built.changelog(spec.name) not in there
        }
        return LastRun(renamed(topology_as_kept(built), former)) if former else None
