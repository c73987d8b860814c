"""``pystreams init``: creates a project. The templates of its files are in the folder ``project`` beside this file."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from pystreams.distribution import DISTRIBUTION, __version__
from pystreams.errors import ConfigError

#: The placeholder for the project's name in the names of folders. In texts it is ``{{name}}``.
_PACKAGE_FOLDER: Final = "package"
_SUFFIX: Final = ".template"
#: Prefix of templates for files that begin with a dot: tools would use such files even among templates.
_DOT: Final = "dot-"

#: Names that a package must not have, because the project or Python has another package of that name.
_TAKEN: Final = {
    "pystreams": "the library itself has this name",
    "tests": "the folder of the project's tests has this name",
}

_FILES: Final = {
    "{name}/app.py": "the topology",
    "{name}/models.py": "the types of the records",
    "{name}/feed.py": "sample orders, to try it with",
    "tests/test_app.py": "its tests, which do not need a log",
    "Makefile": "make lists the targets",
    "README.md": "all commands, also with Kafka",
}

_STEPS: Final = {
    "cd {name}": "",
    "make test": "run its tests",
    "make feed": "write 300 sample orders into the embedded log",
    "make run": "process them, until Ctrl-C",
    "make results": "show its results",
}


def init(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The project's folder and Python package.", show_default=False),
    ],
) -> None:
    """Create a project: an application, its tests, sample data, Dockerfile, compose file.

    The application sums orders by country and hour. It runs as it is, on the embedded log, and on Kafka.

    [bold]pystreams init shop[/]
    """
    check_name(name)
    folder = Path(name)
    check_folder(folder)
    try:
        for path, text in project_files(name):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "The project cannot be written",
            where=str(error.filename or folder.absolute()),
            why=error.strerror or str(error),
            hint="run the command in a folder that you may write to",
        ) from error
    print(*_report(name), sep="\n")


def check_name(name: str) -> None:
    """Raises ``ConfigError`` for a name that cannot be that of a package, a consumer group and an image."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ConfigError(
            f"{name!r} cannot be the name of a project",
            why="it is also the name of a Python package: lowercase letters, digits and _, beginning with a "
            "letter",
            hint=_legal_name(name),
        )
    taken = _TAKEN.get(name) or _of_python(name)
    if taken:
        raise ConfigError(
            f"{name!r} cannot be the name of a project",
            why=f"its package would have this name, and {taken}",
            hint=f"pystreams init {name}_app",
        )


def _legal_name(name: str) -> str:
    """The command with the nearest legal name, if there is one."""
    legal = re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_0123456789")
    return f"pystreams init {legal}" if legal else "pystreams init shop"


def _of_python(name: str) -> str:
    if keyword.iskeyword(name):
        return "it is a keyword of Python"
    return "a module of Python's standard library has this name" if name in sys.stdlib_module_names else ""


def check_folder(folder: Path) -> None:
    """Raises ``ConfigError`` if the folder has any content, so that no file is overwritten."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is a file", hint="choose another name, or run the command in another folder"
        )
    held = sorted(entry.name for entry in folder.iterdir())
    if held:
        raise ConfigError(
            f"The folder {folder} is not empty",
            why=f"it holds {held[0]}" + (f" and {len(held) - 1} more" if held[1:] else ""),
            hint="choose another name, or run the command in another folder",
        )


def project_files(name: str) -> Iterator[tuple[str, str]]:
    """The path within the project and the content of each file."""
    values = {"name": name, "distribution": DISTRIBUTION, "version": __version__}
    for path, template in _templates(files("pystreams.cli.commands") / "project", ()):
        parts = [name if part == _PACKAGE_FOLDER else part for part in path]
        parts[-1] = re.sub(f"^{_DOT}", ".", parts[-1].removesuffix(_SUFFIX))
        text = template.read_text(encoding="utf-8")
        yield "/".join(parts), re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text)


def _templates(folder: Traversable, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = (*above, entry.name)
        if entry.is_dir():
            yield from _templates(entry, path)
        elif entry.name.endswith(_SUFFIX):
            yield path, entry


def _report(name: str) -> Iterator[str]:
    yield f"Created the project {name}: revenue by country and hour, from orders and customers."
    yield ""
    for file, purpose in _FILES.items():
        yield f"  {f'{name}/{file.format(name=name)}':<{len(name) * 2 + 14}}  {purpose}"
    yield ""
    yield "Next:"
    yield ""
    for command, purpose in _STEPS.items():
        yield f"  {command.format(name=name):<14}{purpose and f'  # {purpose}'}"
    if find_spec("pytest") is None:
        yield ""
        yield "The tests need pytest: pip install pytest"
    if not _from_an_index():
        yield ""
        yield (
            f"{DISTRIBUTION} was not installed from a package index: before make setup and docker build, put "
            f"its wheel into {name}/wheels."
        )


def _from_an_index() -> bool:
    """Whether pip installed pystreams from an index, so that other environments can do the same (PEP 610)."""
    try:
        return distribution(DISTRIBUTION).read_text("direct_url.json") is None
    except PackageNotFoundError:
        return False
