"""``pystreams reset``: makes an application process its input again."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pystreams.broker.port import Admin, Broker, CommittedOffset, has_members
from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    SetOption,
    StateDirOption,
    YesOption,
)
from pystreams.cli.terminal.console import note, show_table
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.log.positions import positions_at
from pystreams.log.topics import REPLAYED_PREFIX, is_internal, partitions_of


def reset(
    application: ApplicationArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="earliest|latest|TIME|-N",
            help="Where the application starts again: the first record, after the last, an event time, N "
            "records before the end.",
        ),
    ] = "earliest",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")] = False,
    yes: YesOption = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Make an application process its input again.

    Sets the committed offsets of its input topics, deletes its internal
    topics (changelogs, repartition topics) and its local state. Input and output topics stay as they are: the
    application appends its results to the old ones. No instance of the application may be running.

    [bold]pystreams reset apps.wordcount --dry-run[/]
    """
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.cli.application.topics import input_topics
    from pystreams.dsl.builder import build_topology

    app = load_application(application)
    settings = settings_of(
        app,
        setting,
        application_id=application_id,
        state_dir=state_dir,
        embedded_log=embedded_log,
        bootstrap_servers=bootstrap_servers,
    )
    name = settings.application_id
    topics = input_topics(build_topology(app, settings))
    with (
        open_broker_of(settings) as broker,
        open_admin(broker) as admin,
    ):
        plan = plan_reset(admin, broker, name, topics, settings.state_dir, to)
        if plan.empty():
            note(f"Nothing to reset: {name} has neither offsets, nor internal topics, nor state.")
            return
        show_table(["what", "name", "now", "then"], plan.rows())
        if dry_run:
            note("Nothing was changed.")
            return
        if not yes:
            typer.confirm(f"Reset {name}?", abort=True, err=True)
        carry_out(admin, plan)
    note(f"{name} is reset: it will process its input again.")


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """The work of a reset."""

    group: str
    offsets: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, CommittedOffset]
    internal_topics: tuple[str, ...]
    state: Path | None

    def empty(self) -> bool:
        """Whether there is nothing to reset."""
        there_already = all(
            p in self.offsets and c.offset == self.offsets[p] for p, c in self.committed.items()
        )
        return there_already and not self.internal_topics and self.state is None

    def rows(self) -> list[list[str]]:
        """For ``show_table``."""
        rows = []
        for partition, offset in sorted(self.offsets.items()):
            now = self.committed.get(partition)
            rows.append(["offset", str(partition), "none" if now is None else str(now.offset), str(offset)])
        rows += [["topic", topic, "exists", "deleted"] for topic in self.internal_topics]
        if self.state is not None:
            rows.append(["state", str(self.state), "exists", "deleted"])
        return rows


def plan_reset(
    admin: Admin, broker: Broker, application_id: str, topics_read: Sequence[str], state_dir: Path, to: str
) -> ResetPlan:
    """Find the offsets, topics and state of the application. Raises ``BrokerError`` while it runs."""
    members = admin.group_members(application_id)
    if members:
        raise has_members(application_id, members, broker.description)
    topics = admin.describe_topics()
    internal = {name for name in topics if _is_internal_of(name, application_id)}
    inputs = [p for name in topics_read if name in topics for p in partitions_of(topics[name])]
    committed = admin.group_offsets(application_id)
    state = state_dir / application_id
    return ResetPlan(
        group=application_id,
        offsets=positions_at(admin, inputs, to),
        committed=committed,
        internal_topics=tuple(sorted(internal)),
        state=state if state.exists() else None,
    )


def _is_internal_of(topic: str, application_id: str) -> bool:
    if topic.startswith(REPLAYED_PREFIX):
        return False
    if topic.startswith((f"{application_id}-backfill-manifest", f"{application_id}-backfill-emitted-")):
        return True
    return topic.startswith(f"{application_id}-") and is_internal(topic)


def carry_out(admin: Admin, plan: ResetPlan) -> None:
    """Carry out the plan. Internal topics are deleted last: while one exists, an interrupted reset can be repeated."""
    if plan.state is not None:
        try:
            shutil.rmtree(plan.state)
        except OSError as error:
            raise StateError(
                f"The state in {plan.state} cannot be deleted",
                why=str(error),
                hint="correct that, and reset again",
            ) from None
    admin.delete_group(plan.group)
    admin.set_group_offsets(plan.group, {p: CommittedOffset(offset) for p, offset in plan.offsets.items()})
    admin.delete_topics(plan.internal_topics)
