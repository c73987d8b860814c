"""What hundreds of steps of one task remember, with times that all differ, survives a restart on both logs."""

from __future__ import annotations

import pytest

from tests.live.many_steps_kit import closed_windows_stay_closed, replaced_records_are_deleted
from tests.live.support import Log


@pytest.mark.both_logs
def test_closed_windows_stay_closed_and_old_records_do_not_pile_up(log: Log) -> None:
    closed_windows_stay_closed(log)
    replaced_records_are_deleted(log)
