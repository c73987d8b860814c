"""A user at a prompt, too: what is wrong must be told there as well."""

from __future__ import annotations

from tests.cli.conftest import folder, pystreams

__all__ = ["folder", "pystreams"]
