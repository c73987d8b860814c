"""How a worker process gets the application: by the name of its module, or as a pickled topology."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from pystreams.config import StreamsConfig
from pystreams.dsl.builder import StreamsBuilder, build_topology, own_config
from pystreams.errors import AppLoadError, TopologyError
from pystreams.topology.built import BuiltTopology
from pystreams.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class LoadedApplication:
    """An application as a backfill runs it."""

    built: BuiltTopology
    config: StreamsConfig


class Application(Protocol):
    """Picklable; ``load`` gives the same application in every process."""

    def load(self) -> LoadedApplication:
        """Raises ``AppLoadError``, ``ConfigError``, ``TopologyError``."""
        ...


@dataclass(frozen=True, slots=True)
class NamedApplication:
    """``module:attribute``, which every worker can import. ``settings`` override the application's own."""

    reference: str
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def load(self) -> LoadedApplication:
        name, _, attribute = self.reference.partition(":")
        try:
            program = getattr(importlib.import_module(name), attribute or "app")
        except (ImportError, AttributeError) as error:
            raise AppLoadError(
                f"the application {self.reference} cannot be imported by a worker of the backfill",
                why=str(error),
                hint="ship its module to the workers (--py-files), or pass the application object instead of its name",
            ) from error
        return loaded(program, self.settings)


@dataclass(frozen=True, slots=True)
class PickledApplication:
    """A pickled ``App``, ``StreamsBuilder`` or ``Topology``: cloudpickle's bytes where it holds lambdas."""

    pickled: bytes = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def load(self) -> LoadedApplication:
        try:
            program = pickle.loads(self.pickled)  # noqa: S301 - the driver's own bytes
        except (ImportError, AttributeError) as error:
            raise AppLoadError(
                "the application cannot be loaded by a worker of the backfill",
                why=str(error),
                hint="ship the modules of its functions to the workers (--py-files, py_files)",
            ) from error
        return loaded(program, self.settings)


@dataclass(frozen=True)
class LocalApplication:
    """An application of this process, for the inline executor."""

    program: StreamsBuilder | Topology
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def load(self) -> LoadedApplication:
        return self._loaded

    @cached_property
    def _loaded(self) -> LoadedApplication:
        """Built once: its tasks share it, as those of a live process do."""
        return loaded(self.program, self.settings)


def application_here(program: object, settings: Mapping[str, Any]) -> Application:
    """An application for this process. Raises ``AppLoadError`` for an object that is not one."""
    if isinstance(program, str):
        return NamedApplication(program, settings)
    if isinstance(program, StreamsBuilder | Topology):
        return LocalApplication(program, settings)
    raise _no_application(program)


def _no_application(program: object) -> AppLoadError:
    return AppLoadError(
        f"a {type(program).__name__} is not an application",
        hint="give an App, or a StreamsBuilder or Topology with application_id among the settings",
    )


def loaded(program: object, settings: Mapping[str, Any]) -> LoadedApplication:
    """Build the application in ``program``. ``settings`` override those of an ``App``; for other programs they name the
    application."""
    if not isinstance(program, StreamsBuilder | Topology):
        raise _no_application(program)
    own = own_config(program)
    config = StreamsConfig.from_mapping(settings) if own is None else own.override(settings)
    return LoadedApplication(build_topology(program, config), config)


def check_fingerprint(loaded: LoadedApplication, planned: str) -> None:
    """Raises ``TopologyError`` if a process has another topology than the one that was planned."""
    if loaded.built.fingerprint != planned:
        raise TopologyError(
            "the application is not the one that this backfill was planned for",
            where=f"application {loaded.config.application_id}",
            why=f"its topology's fingerprint is {loaded.built.fingerprint[:16]}…, planned was {planned[:16]}…",
            hint="run the workers with the driver's code and version of pystreams, or begin a new backfill",
        )
