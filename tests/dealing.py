"""Which process runs which tests, and in which order: one file at a time, but all files of some folders."""

from __future__ import annotations

from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

#: What is started once for each process that needs it, takes long there, and only the files of one folder need it: a
#: session of Spark, a Kafka that asks for logins, one that may be broken.
ONE_PROCESS: Final = ("tests/backfill/spark/", "tests/kafka/security/", "tests/kafka/trouble/")


def unit_of(test: str) -> str:
    """What one process runs whole: the folder or the file of a test, which is given by its id."""
    file = test.split("::", 1)[0]
    return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)


class Scheduling(LoadFileScheduling):
    """Deals out units instead of files."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests in the order in which they are dealt out.

    Folders that one process runs take long, so they come first. Files that need Kafka, which wait most of the time, are
    dealt evenly among others: if they came one after the other, no process would compute meanwhile. They end before the
    last two fifths, which are short files of unit tests: a long one at the end would have all other processes wait.
    """
    by_unit: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_unit.setdefault(unit_of(item.nodeid), []).append(item)
    files = [unit for unit in by_unit if unit not in ONE_PROCESS]
    on_kafka = [file for file in files if any("server" in _fixtures(test) for test in by_unit[file])]
    others = [file for file in files if file not in on_kafka]
    places = dict.fromkeys(ONE_PROCESS, -1.0)
    places |= {file: 0.6 * number / len(on_kafka) for number, file in enumerate(on_kafka)}
    places |= {file: number / len(others) for number, file in enumerate(others)}
    return [test for unit in sorted(by_unit, key=places.__getitem__) for test in by_unit[unit]]


def _fixtures(item: Any) -> list[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else []
