"""A client that cannot close because its last commit hangs says so, in the error and in what its threads are at."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from pystreams.runtime.close_timeout import close_timeout
from pystreams.runtime.tasks import committer
from pystreams.runtime.threads.activity import COMMIT
from tests.live.support import TIMEOUT_S, Log, processed

pytestmark = pytest.mark.live


def test_it_is_named_with_its_duration(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, goes_on, commit = threading.Event(), threading.Event(), committer.commit

    def hang(*arguments: Any, **named: Any) -> Any:
        hangs.set()
        assert goes_on.wait(TIMEOUT_S)
        return commit(*arguments, **named)

    monkeypatch.setattr(committer, "commit", hang)
    log.create("in", "out")
    log.write("in", [("k", 1, 1)])
    # No commit comes before the last one.
    app = log.app("hangs", commit_interval_ms=int(2_000 * TIMEOUT_S))
    app.stream("in", key=str, value=int).to("out")
    streams = log.start(app)
    processed(streams, 1)
    try:
        assert not streams.close(0)
        assert hangs.wait(TIMEOUT_S)
        activities = streams.activities()
        error = close_timeout(0, streams.progress().threads, activities)
    finally:
        goes_on.set()
    ((name, activity),) = activities.items()
    assert activity.part == COMMIT
    assert activity.part_ms > 0
    assert error.what == "the last commit of 0_0 was not done"
    assert re.search(rf"{name} commits for \d+\.\d s", error.why)
    assert streams.close(1000 * TIMEOUT_S)
    assert not streams.activities()
