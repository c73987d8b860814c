"""After a backfill and its hand-over, what has been written meanwhile counts as if it came in the order of time."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.catching_up.histories import trial
from tests.catching_up.running import backfill_and_hand_over, check
from tests.catching_up.trials import BEGIN_MS
from tests.live.support import Log

pytestmark = pytest.mark.live

HOUR = 3_600_000


@pytest.mark.parametrize("seed", range(700, 712))
def test_what_comes_after_the_hand_over_is_not_late(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        cut = {"outage_ms": BEGIN_MS + HOUR, "threads": 1 + seed % 3, "workers": 1, "kills": ()}
        check(trial(seed, **cut), log, before_outage=backfill_and_hand_over)
