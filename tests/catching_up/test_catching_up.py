"""Catching up gives the result of having been there: what is in the log before the start counts as if it came in the
order of time, however many partitions and hops there are.

A few histories; ``python -m tests.catching_up`` runs as many as wanted.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.catching_up.histories import trial
from tests.catching_up.running import check
from tests.live.support import Log

pytestmark = pytest.mark.live

ONE_PROCESS = {"workers": 1, "kills": ()}


@pytest.mark.parametrize("seed", range(100, 120))
def test_one_thread_has_the_result_of_the_order_of_time(seed: int, tmp_path: Path):
    with closing(Log(tmp_path)) as log:
        check(trial(seed, threads=1, cache_bytes=0, **ONE_PROCESS), log)
