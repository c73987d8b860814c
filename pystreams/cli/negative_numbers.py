"""Negative numbers as arguments of commands: ``pystreams get APP STORE -7``."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Final

from typer.core import TyperCommand, TyperOption

_NEGATIVE: Final = re.compile(r"-\.?\d")


class CommandWithNumbers(TyperCommand):
    """A command whose last argument may be a negative number. Other commands take it for an option, unless ``--`` is
    before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [one for one in self.get_params(ctx) if isinstance(one, TyperOption) and not one.is_flag]
        return super().parse_args(ctx, numbers_last(args, {name for one in options for name in one.opts}))


def numbers_last(arguments: Sequence[str], options: Collection[str]) -> list[str]:
    """The arguments with ``--`` and the negative numbers at the end, except those that are values of ``options``."""
    others: list[str] = []
    numbers: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*others, "--", *numbers, *rest]
        (numbers if _NEGATIVE.match(argument) else others).append(argument)
        if argument in options:
            others += islice(rest, 1)
    return [*others, "--", *numbers] if numbers else others
