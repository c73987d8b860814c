"""The application of a backfill, as it was loaded here and as workers can import it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystreams.cli.application.loading import load_application
from pystreams.cli.application.settings import given_settings, settings_of
from pystreams.config import StreamsConfig, merge_settings


@dataclass(frozen=True, slots=True)
class Program:
    """An application as it was loaded here, and as workers load it."""

    #: ``App``, ``StreamsBuilder`` or ``Topology``.
    loaded: Any
    #: ``module:attribute``, which workers can import; None: they get the object itself.
    reference: str | None
    config: StreamsConfig
    #: The settings that override the application's own: flags, --set and the environment.
    settings: Mapping[str, Any]

    @property
    def for_workers(self) -> Any:
        """The value that executors get."""
        return self.reference or self.loaded


def load_program(reference: str, flags: Mapping[str, Any], pairs: Sequence[str]) -> Program:
    """Raises ``AppLoadError``, ``ConfigError`` and what building raises."""
    loaded = load_application(reference)
    config = settings_of(loaded, pairs, **flags)
    settings = merge_settings(*given_settings(pairs, flags))
    return Program(loaded, _importable(loaded), config, settings)


def _importable(program: object) -> str | None:
    """``module:attribute`` of a program in a module, whose folder is added to the path of workers.

    Workers on this machine inherit ``PYTHONPATH``; on a cluster they get the module by --py-files.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or file is None:
            continue
        for attribute, value in list(vars(module).items()):
            if value is program:
                _add_to_python_path(_root(name, Path(file)))
                return f"{name}:{attribute}"
    return None


def _root(module: str, file: Path) -> Path:
    """The folder in which the search for a module begins."""
    levels = module.count(".") + (file.name == "__init__.py")
    return file.resolve().parents[levels]


def _add_to_python_path(folder: Path) -> None:
    there = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if str(folder) not in there:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *there])
