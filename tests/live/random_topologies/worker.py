"""A process that runs the first half of a trial and kills itself."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path

from tests.live.random_topologies.recording import Recorder, recorded
from tests.live.random_topologies.run import client
from tests.live.random_topologies.trials import trial
from tests.live.support import Log, caught_up


def main() -> None:
    path = Path(sys.argv[1])
    one = trial(*json.loads((path / "trial.json").read_text(encoding="utf-8")))
    recorder = Recorder(path / "events", one.moment)
    with closing(Log(path)) as log, recorded(recorder):
        streams = client(log, one)
        streams.start()
        caught_up(streams)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
