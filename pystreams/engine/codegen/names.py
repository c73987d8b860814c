"""Makes names for generated code: readable, unique, and never one that the code uses for something else."""

from __future__ import annotations

import builtins
import keyword
import re

_GENERATED = re.compile(r"(?:KSTREAM|KTABLE)-(.+?)-0*(\d+)")

#: A variable of an inner loop, see Scope.bind.
_LOOP_VARIABLE = re.compile(r"(?:key|value|new|old)_\d+")

#: The names of the variables and helpers of generated functions.
_TAKEN = frozenset(
    {
        *("batch", "start", "end", "position", "topic", "partition", "offset", "timestamp", "headers"),
        *(
            "key",
            "value",
            "new",
            "old",
            "is_latest",
            "values",
            "pairs",
            "pair",
            "changes",
            "new_pair",
            "old_pair",
        ),
        *("branch", "error", "key_bytes", "value_bytes"),
        *(
            "cell",
            "timing",
            "task_time",
            "now",
            "unbounded",
            "send",
            "failed",
            "unwritable",
            "each",
            "regroup",
            "as_pair",
        ),
    }
)


class Names:
    """The identifiers of one compilation."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}

    def step(self, name: str, form: str = "{}") -> str:
        """``filter_3`` for ``KSTREAM-FILTER-0000000003``, ``split_lines`` for ``split-lines``; ``form`` (``run_{}``)
        makes another name for the same step. Equal arguments give equal names."""
        if (name, form) not in self._given:
            self._given[name, form] = self._unique(form.format(_shorten(name)))
        return self._given[name, form]

    def _unique(self, wish: str) -> str:
        if (
            wish in _TAKEN
            or keyword.iskeyword(wish)
            or hasattr(builtins, wish)
            or _LOOP_VARIABLE.fullmatch(wish)
        ):
            wish += "_step"
        candidate, n = wish, 2
        while candidate in self._used:
            candidate, n = f"{wish}_{n}", n + 1
        self._used.add(candidate)
        return candidate


def _shorten(name: str) -> str:
    generated = _GENERATED.fullmatch(name)
    wish = f"{generated[1]}_{generated[2]}" if generated else name
    wish = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_").lower()
    return wish if wish and not wish[0].isdigit() else f"step_{wish}"
