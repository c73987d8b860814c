"""Parsers of settings' values: each takes the value that the user gave, and returns it in the form that is used.

A parser raises ``ValueError`` with a text that describes the valid values.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pystreams.config.secret import without_login

Parse = Callable[[Any], Any]

INT_MAX: Final = 2**31 - 1


def trimmed(given: Any) -> Any:
    """A text without surrounding space, as in Java: secrets in files end with a newline."""
    return given.strip() if isinstance(given, str) else given


def text(given: Any) -> str:
    """A text that is not empty."""
    if not isinstance(given, str) or not given:
        raise ValueError("text")
    return given


def any_text(given: Any) -> str:
    """A text that may be empty."""
    if not isinstance(given, str):
        raise ValueError("text")  # noqa: TRY004 - a ValueError is what says "not this value" here
    return given


def name_of_application(given: Any) -> str:
    """An ``application.id``."""
    if (
        not isinstance(given, str)
        or not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", given)
        or given in {".", ".."}
    ):
        raise ValueError("1 to 200 letters, digits, '.', '_' or '-': it names topics, a group and a folder")
    return given


_HOST: Final = r"(?:[\w.%-]+|\[[\da-fA-F:.%\w]+\])"


def servers(given: Any) -> str:
    """``host:port,host:port``, from a text or a list."""
    parts = (
        given.split(",") if isinstance(given, str) else given if isinstance(given, list | tuple) else [given]
    )
    parts = [s.strip() if isinstance(s, str) else "" for s in parts]
    found = [re.fullmatch(rf"{_HOST}:(\d{{1,5}})", s, re.ASCII) for s in parts]
    if not found or not all(match and 0 < int(match[1]) < 65_536 for match in found):
        raise ValueError("HOST:PORT, or several with commas between")
    return ",".join(parts)


def server(given: Any) -> str:
    """``host:port``."""
    if not isinstance(given, str) or not re.fullmatch(rf"{_HOST}:\d{{1,5}}", given, re.ASCII):
        raise ValueError("HOST:PORT")
    return servers(given)


def path(given: Any) -> Path:
    """A path, ``~`` allowed."""
    if not isinstance(given, str | Path) or not str(given):
        raise ValueError("a path")
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise ValueError("a path; the user after ~ does not exist") from None


def folder_or_url(given: Any) -> str:
    """A folder, ``~`` allowed, or a URL without a login in it."""
    if isinstance(given, str) and "://" in given:
        if without_login(given) != given or "?" in given:
            raise ValueError("a URL without login and parameters, which belong into fsspec's configuration")
        return given
    return str(path(given))


def flag(given: Any) -> bool:
    """True or false, or one of these words."""
    if isinstance(given, str):
        given = {"true": True, "false": False}.get(given.strip().lower())
    if not isinstance(given, bool):
        raise ValueError("true or false")  # noqa: TRY004 - as above
    return given


def number(minimum: int, unit: str = "", besides: int | None = None, maximum: int | None = None) -> Parse:
    """A whole number from ``minimum`` to ``maximum``, or the one value ``besides``."""
    limits = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
    expected = f"a whole number{unit}, {limits}" + ("" if besides is None else f", or {besides}")

    def parse(given: Any) -> int:
        found = _whole_number(given)
        if found is None:
            raise ValueError(expected)
        if found != besides and (found < minimum or (maximum is not None and found > maximum)):
            raise ValueError(expected)
        return found

    return parse


def _whole_number(given: Any) -> int | None:
    if isinstance(given, str) and re.fullmatch(r"\s*[+-]?\d(_?\d)*\s*", given):
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def size(minimum: int = 0, besides: int | None = None, maximum: int | None = None) -> Parse:
    """A number of bytes."""
    return number(minimum, " of bytes", besides, maximum)


def duration(minimum: int = 0, besides: int | None = None, maximum: int | None = None) -> Parse:
    """Milliseconds, or a timedelta."""
    parse_number = number(minimum, besides=besides, maximum=maximum)
    limits = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
    expected = f"a timedelta or a whole number of milliseconds, {limits}"
    expected += "" if besides is None else f", or {besides}"

    def parse(given: Any) -> int:
        try:
            found: int = parse_number(
                given // timedelta(milliseconds=1) if isinstance(given, timedelta) else given
            )
        except ValueError:
            raise ValueError(expected) from None
        return found

    return parse


def choice(*choices: str) -> Parse:
    """One of a few words."""

    def parse(given: Any) -> str:
        if given not in choices:
            raise ValueError(" or ".join(choices))
        return str(given)

    return parse


def word(*choices: str) -> Parse:
    """One of a few words in capital letters, which may be given in small letters."""
    among = choice(*choices)
    return lambda given: among(given.upper() if isinstance(given, str) else given)


#: The optimizations of a topology that can be allowed, by Java's names.
OPTIMIZATIONS: Final = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")


def optimizations(given: Any) -> str:
    """``none``, ``all``, or names with commas between them."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else []
    if names in (["none"], ["all"]) or (names and set(names) <= set(OPTIMIZATIONS)):
        return ",".join(names)
    raise ValueError(f"none, all, or some of {', '.join(OPTIMIZATIONS)} with commas between them")


def stores(given: Any) -> str:
    """Names of stores, with commas between them, or a sequence of names."""
    names = given.split(",") if isinstance(given, str) else given
    if isinstance(names, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in names):
        return ",".join(sorted({name.strip() for name in names} - {""}))
    raise ValueError("names of stores with commas between them")


#: The limits of tags. Source: StreamsConfig.MAX_RACK_AWARE_ASSIGNMENT_TAG_LIST_SIZE and the two after it.
_TAGS_MAX: Final = 5
_TAG_NAME_MAX: Final = 20
_TAG_VALUE_MAX: Final = 30


def tag_names(given: Any) -> str:
    """Names of client tags, with commas between them, or a sequence of names."""
    names = given.split(",") if isinstance(given, str) else given
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
        found = [name.strip() for name in names if name.strip()]
        if len(set(found)) == len(found) <= _TAGS_MAX and all(len(name) <= _TAG_NAME_MAX for name in found):
            return ",".join(found)
    raise ValueError(f"at most {_TAGS_MAX} names of tags with commas between them")


def client_tags(given: Any) -> Mapping[str, str]:
    """Tags of a process with their values."""
    if (
        not isinstance(given, Mapping)
        or len(given) > _TAGS_MAX
        or not all(isinstance(name, str) and 0 < len(name) <= _TAG_NAME_MAX for name in given)
        or not all(isinstance(value, str) and 0 < len(value) <= _TAG_VALUE_MAX for value in given.values())
    ):
        raise ValueError(
            f"a mapping of at most {_TAGS_MAX} tags of {_TAG_NAME_MAX} letters to values of {_TAG_VALUE_MAX}, such as"
            " {'zone': 'eu-1a'}"
        )
    return dict(given)


def handler(given: Any) -> Any:
    """An exception handler, or its name."""
    if callable(given) or given in ("fail", "continue", "dead_letter"):
        return given
    raise ValueError(
        "fail, continue, dead_letter, or a function that takes an ErrorContext and returns a Response"
    )


_TYPES_BY_NAME: Final[dict[str, type]] = {
    t.__name__.lower(): t for t in (str, int, float, bytes, bool, uuid.UUID, dict, list)
}


def serde(given: Any) -> Any:
    """A type, a ``Serde``, or the name of a type."""
    if isinstance(given, str):
        given = _TYPES_BY_NAME.get(given.lower())
    if given is None:
        raise ValueError(f"a type, a Serde, or one of the names {', '.join(_TYPES_BY_NAME)}")
    return given


def extractor(given: Any) -> Any:
    """A timestamp extractor, or its name."""
    if not callable(given) and not (isinstance(given, str) and given):
        raise ValueError(
            "the name of a timestamp extractor, or a function of (record) or (record, partition_time)"
        )
    return given


def imported(given: Any) -> Any:
    """A class or function, or ``MODULE:NAME`` to import one from."""
    expected = "a class or a function, or MODULE:NAME to import one from"
    if not isinstance(given, str):
        return given
    module, _, name = given.partition(":")
    if not module or not name:
        raise ValueError(expected)
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{expected} ({error})") from None
    return found


def token_provider(given: Any) -> Any:
    """A function that returns tokens."""
    if not callable(given):
        raise ValueError(  # noqa: TRY004 - as above
            "a function without arguments that returns a token and the time it expires, in seconds since 1970"
        )
    return given


def as_text(value: Any) -> str:
    """A value in the form that Kafka's tools use."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value)


def topic_settings(given: Any) -> Mapping[str, str]:
    """Settings of topics by Kafka's names."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise ValueError("a mapping of topic settings, such as {'retention.ms': -1}")
    return {name.replace("_", "."): as_text(value) for name, value in given.items()}
