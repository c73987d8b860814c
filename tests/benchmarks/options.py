"""What command lines of benchmarks have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """The type of an option that takes some of the known names, with commas between."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
        return found

    return parse
