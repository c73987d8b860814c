"""A backfill that begins anew leaves nothing of what was there, and takes nothing away that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.api import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.errors import ConfigError
from tests.backfill.kit import History, everything, lines, memory
from tests.backfill.programs import word_count


def past(partitions: int, records: int = 40) -> History:
    said = [("k", "to be or not to be", number) for number in range(records)]
    return {"lines": [lines(said, value=str) for _ in range(partitions)]}


def run(of: History, staging: Path, **given: Any) -> BackfillResult:
    return backfill(word_count(), sources=memory(of, {"word-counts": 2}), staging=staging, **given)


def test_what_is_begun_anew_with_fewer_partitions_is_as_if_nothing_had_been_there(tmp_path: Path):
    run(past(3), tmp_path / "twice")
    anew = run(past(1), tmp_path / "twice", overwrite=True)
    assert everything(anew) == everything(run(past(1), tmp_path / "once"))


def test_resume_and_overwrite_together_are_refused(tmp_path: Path):
    run(past(1), tmp_path / "staging")
    with pytest.raises(ConfigError, match="resume does not go with overwrite"):
        run(past(1), tmp_path / "staging", resume=True, overwrite=True)


def test_a_backfill_cannot_take_the_place_of_the_one_that_it_goes_on_from(tmp_path: Path):
    first = run(past(1), tmp_path / "staging")
    before = everything(first)
    with pytest.raises(ConfigError, match="cannot be the earlier backfill and the new one"):
        run(
            past(1, 60),
            tmp_path / "staging",
            previous=f"{tmp_path}//staging",
            overwrite=True,
        )
    assert everything(first) == before
