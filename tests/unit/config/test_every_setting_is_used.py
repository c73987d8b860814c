"""A setting of the application that is taken is in force: nothing is accepted and then ignored."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pystreams
from pystreams.config import StreamsConfig

PACKAGE = Path(pystreams.__file__).parent
#: They have one value so far, or are looked at where they are checked.
CHECKED = {"processing_guarantee"}


def test_every_setting_of_the_application_is_read_by_something():
    attributes: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "config" not in path.parents:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            attributes |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    unread = {f.name for f in fields(StreamsConfig)} - attributes - CHECKED
    # A method of the configuration answers for it.
    assert unread == {"commit_interval_ms"}
    assert "effective_commit_interval_ms" in attributes
