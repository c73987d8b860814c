"""The keyword arguments of steps, to which those of their stores belong."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from pystreams.dsl.materialized import StoreOptions
from pystreams.misspelt import answers_misspelt

C = TypeVar("C", bound=type)

_STORE_ARGUMENTS = frozenset(field.name for field in fields(StoreOptions))


def suggests_keywords(cls: C) -> C:
    """Make the methods of a class of steps suggest the right names for misspelt arguments."""
    return answers_misspelt(cls, _STORE_ARGUMENTS)
