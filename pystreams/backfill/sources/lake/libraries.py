"""The libraries of tables: checks that they are installed, and turns their errors into messages for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from pystreams.backfill.locations import shown
from pystreams.distribution import install_command
from pystreams.errors import ConfigError, StateError, StreamsError

#: What follows an address, tokens among it, and a login without a scheme.
_QUERY: Final = re.compile(r"\?[^\s'\"]*")


def require_package(name: str, extra: str) -> None:
    """Raises ``ConfigError`` if a package is not installed; ``extra`` brings it."""
    if find_spec(name) is None:
        raise ConfigError(
            f"Archives in tables of this format need {name}",
            why=f"it is not installed for {sys.executable}",
            hint=f"install it: {install_command(f'backfill,{extra}')}",
        )


def reason(error: Exception) -> str:
    """The first line of an error, for people, without secrets."""
    line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {_QUERY.sub('', shown(line))}"


@contextmanager
def reading(table: str) -> Iterator[None]:
    """A context in which a library reads a table. Raises ``StateError`` for all of its errors, because each storage has
    its own."""
    with _using(table, "the table cannot be read", "correct that, and run it again"):
        yield


@contextmanager
def changing(table: str) -> Iterator[None]:
    """While a library changes a table. Raises ``StateError`` for whatever it raises, which may have changed it all the
    same."""
    hint = "correct that, and run it again: what was committed is not archived twice"
    with _using(table, "the table cannot be changed", hint):
        yield


def busy(table: str) -> StateError:
    """The error for a table to which others commit again and again."""
    return StateError(
        "the table changes all the time",
        where=table,
        hint="run it again when nobody else writes to the table",
    )


@contextmanager
def _using(table: str, what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        raise StateError(what, where=table, why=reason(error), hint=hint) from error
