"""An application at one moment, as its log and its instances show it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

    from pystreams.broker.port import Admin, Broker
    from pystreams.cli.commands.status.instances import Instances, Restore
    from pystreams.config import StreamsConfig
    from pystreams.runtime.group.application_status import ApplicationStatus
    from pystreams.topology.built import BuiltTopology

#: The rate of a restore is that of this time.
_RATE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class StatusLook:
    """``status`` is the state in the log at ``place``, ``instances`` are the answers of the instances that were
    asked."""

    status: ApplicationStatus
    place: str
    instances: Instances
    restores: Sequence[Restore]


class Looks:
    """Looks at an application again and again. ``urls``: the instances to ask; None: those that the group knows.
    ``tls`` says how they are asked over HTTPS; None: only those whose URL says so are."""

    def __init__(
        self,
        broker: Broker,
        admin: Admin,
        built: BuiltTopology,
        config: StreamsConfig,
        urls: list[str] | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        from pystreams.cli.commands.status.instances import Restores

        self._broker = broker
        self._admin = admin
        self._built = built
        self._config = config
        self._urls = urls
        self._tls = tls
        self._restores = Restores()

    def look(self, *, with_instances: bool, again: bool) -> StatusLook:
        """The application now. If it is not looked at ``again``, it takes a second longer while something restores,
        so that the rate is known. Raises as ``application_status``."""
        from pystreams.cli.commands.status.instances import Instances, ask
        from pystreams.runtime.group.application_status import application_status

        status = application_status(
            self._admin,
            self._built,
            self._config.auto_offset_reset,
            reads_committed=self._broker.reads_committed,
        )
        place = self._broker.description
        if not with_instances:
            return StatusLook(status, place, Instances(), ())
        urls = self._urls or [member.endpoint for member in status.members if member.endpoint]
        members = {member.thread for member in status.members}
        instances = ask(urls, members, self._tls)
        restores = self._restores.seen(instances)
        if instances.restoring and not again:
            time.sleep(_RATE_S)
            instances = ask(urls, members, self._tls)
            restores = self._restores.seen(instances)
        return StatusLook(status, place, instances, restores)
