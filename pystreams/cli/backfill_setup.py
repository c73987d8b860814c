"""What a backfill needs before it begins: its packages, Java for Spark, and an application that workers can import."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pystreams.cli.loading import load_application
from pystreams.cli.settings import given_settings, settings_of
from pystreams.config import StreamsConfig, merge_settings
from pystreams.distribution import install_command
from pystreams.errors import ConfigError

#: ``--master`` for a backfill without Spark.
NO_SPARK = "none"


def require_packages(master: str) -> None:
    """Raises ``ConfigError`` if a package is missing, or Java where this machine runs Spark."""
    needed = ["pyarrow"] if master == NO_SPARK else ["pyarrow", "pandas", "pyspark"]
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"This command needs {' and '.join(missing)}",
            why=f"{'they are' if len(missing) > 1 else 'it is'} not installed beside {sys.executable}",
            hint=f"install what backfills and archives need: {install_command('backfill')}",
        )
    if master != NO_SPARK and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise ConfigError(
            "Spark needs Java, and there is none",
            why="neither is java on the PATH nor is JAVA_HOME set",
            hint=f"install Java 17, or run without Spark: --master {NO_SPARK}",
        )


def for_spark_alone(options: Sequence[str]) -> ConfigError:
    """What to raise for options of Spark where there is none."""
    return ConfigError(
        f"{' and '.join(options)} does not go with --master {NO_SPARK}",
        why="it is for Spark, and nothing runs on Spark",
        hint="leave one of them out",
    )


@dataclass(frozen=True, slots=True)
class Program:
    """An application as it was loaded here, and as workers load it."""

    #: ``App``, ``StreamsBuilder`` or ``Topology``.
    loaded: Any
    #: ``module:attribute``, which workers can import; None: they get the object itself.
    reference: str | None
    config: StreamsConfig
    #: What goes over the application's own settings: flags, --set and the environment.
    settings: Mapping[str, Any]

    @property
    def for_workers(self) -> Any:
        """What executors are given."""
        return self.reference or self.loaded


def load_program(reference: str, flags: Mapping[str, Any], pairs: Sequence[str]) -> Program:
    """Raises ``AppLoadError``, ``ConfigError`` and what building raises."""
    loaded = load_application(reference)
    config = settings_of(loaded, pairs, **flags)
    settings = merge_settings(*given_settings(pairs, flags))
    return Program(loaded, _importable(loaded), config, settings)


def _importable(program: object) -> str | None:
    """``module:attribute`` of a program that a module holds, with the module's folder where workers look for it.

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
