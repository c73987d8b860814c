"""What tests take out of the environment, so that they find the same on every machine."""

from __future__ import annotations

import os

import pytest


def without(monkeypatch: pytest.MonkeyPatch, *prefixes: str) -> None:
    """Remove the variables whose names begin so, until the test ends."""
    for variable in os.environ:
        if variable.startswith(prefixes):
            monkeypatch.delenv(variable)
