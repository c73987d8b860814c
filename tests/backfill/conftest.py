"""Embedded logs for the tests that run live, too."""

from __future__ import annotations

from tests.live.conftest import new_log

__all__ = ["new_log"]
