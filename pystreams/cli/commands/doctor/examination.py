"""One check after the other. A check whose ground is missing is left out: without a log, topics cannot be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from pystreams.cli.commands.doctor import log_checks, machine
from pystreams.cli.commands.doctor.finding import Finding, bad, good
from pystreams.errors import StreamsError
from pystreams.plural import counted

if TYPE_CHECKING:
    from pystreams.broker.port import Admin, Broker
    from pystreams.config import StreamsConfig
    from pystreams.topics.topic_plan import TopicPlan
    from pystreams.topology.built import BuiltTopology

T = TypeVar("T")


class Examination:
    """Examines an application. ``findings`` yields each as soon as it is known."""

    def __init__(self, app: Any, config: StreamsConfig) -> None:
        self._app = app
        self._config = config
        self._failed = False

    def findings(self) -> Iterator[Finding]:
        yield from machine.versions()
        yield from self._try("memory", lambda: machine.memory(self._config))
        yield from self._try("state", lambda: machine.state_folder(self._config))
        built = self._build()
        if isinstance(built, Finding):
            yield built
            return
        stores = len(built.stores) + len(built.global_stores)
        yield good(
            "program",
            f"{counted(len(built.subtopologies), 'sub-topology', 'sub-topologies')}, {counted(stores, 'store')}",
        )
        if self._config.on_kafka:
            yield from self._try("addresses", lambda: log_checks.addresses(self._config))
            if self._failed:
                return
        with ExitStack() as stack:
            opened = self._open(stack)
            if isinstance(opened, Finding):
                yield opened
                return
            yield from self._on_the_log(built, *opened)

    def _on_the_log(self, built: BuiltTopology, broker: Broker, admin: Admin) -> Iterator[Finding]:
        config = self._config
        yield from self._try("log", lambda: log_checks.cluster(admin, broker, config))
        yield from self._try("clocks", lambda: log_checks.broker_clock(admin, config))
        plan: TopicPlan | None = None
        for found in self._try("topics", lambda: log_checks.topics(admin, built, config, broker)):
            if isinstance(found, Finding):
                yield found
            else:
                plan = found
        if plan is None:
            return
        known, tasks = plan, len(plan.partitioning.tasks)
        yield from self._try("retention", lambda: log_checks.retention(known, admin, built, config, broker))
        yield from self._try("last run", lambda: log_checks.last_run(admin, built, config, broker))
        yield from self._try("group", lambda: log_checks.group(admin, built, config, broker))
        yield from self._try("clocks", lambda: log_checks.clocks(known, admin))
        yield from self._try("open files", lambda: machine.open_files(built, tasks))

    def _try(self, subject: str, check: Callable[[], Iterable[T]]) -> Iterator[T | Finding]:
        """The findings of a check. An error that it raises is its last finding."""
        try:
            yield from check()
        except StreamsError as error:
            self._failed = True
            yield bad(subject, error)

    def _build(self) -> BuiltTopology | Finding:
        from pystreams.dsl.builder import build_topology

        try:
            return build_topology(self._app, self._config)
        except StreamsError as error:
            return bad("program", error)

    def _open(self, stack: ExitStack) -> tuple[Broker, Admin] | Finding:
        from pystreams.cli.connection import open_admin, open_broker_of

        try:
            broker = stack.enter_context(open_broker_of(self._config))
            self._config.check_guarantee(transactional=broker.transactional)
            return broker, stack.enter_context(open_admin(broker))
        except StreamsError as error:
            return bad("log", error)
