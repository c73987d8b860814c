"""An application: a topology that is being built, and its settings."""

from __future__ import annotations

from typing import Any

from pystreams.config import StreamsConfig
from pystreams.dsl.builder import StreamsBuilder
from pystreams.topology.topology import Topology


class App(StreamsBuilder):
    """A ``StreamsBuilder`` with its configuration: ``pystreams run MODULE[:ATTR]`` runs it.

    As in::

        app = App("wordcount", commit_interval_ms=1000)
        app.stream("lines", value=str).flat_map_values(str.split).to("words")

    ``name`` is the application id: it names the consumer group, internal topics and the state's folder. Raises
    ``ConfigError`` for an unknown setting or a wrong value.
    """

    def __init__(
        self, name: str, *, ensure_explicit_internal_resource_naming: bool = False, **settings: Any
    ) -> None:
        super().__init__(ensure_explicit_internal_resource_naming=ensure_explicit_internal_resource_naming)
        self.config = StreamsConfig.of(application_id=name, **settings)

    def __repr__(self) -> str:
        return f"App({self.name!r}, {self._steps()})"

    @property
    def name(self) -> str:
        """The application id."""
        return self.config.application_id

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """As ``StreamsBuilder.build``. Without ``config``, the application's own settings apply."""
        return super().build(config or self.config)

    def run(self, *, until_caught_up: bool = False) -> None:
        """Run until Ctrl-C or SIGTERM, or until all records that are in the log have been processed.

        Settings of the environment (``PYSTREAMS_...``) override the application's own. Raises the error that stopped
        the application. For more control: ``Streams(app)``.
        """
        from pystreams.runtime.streams import Streams

        Streams(self).run(until_caught_up=until_caught_up)
