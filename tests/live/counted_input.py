"""Records that an application counts by key."""

from __future__ import annotations

from collections import Counter

from tests.live.support import Log, eventually


class CountedInput:
    """What was written to ``in``, and what must come out of it in ``out``."""

    def __init__(self, log: Log, application: str, partitions: int) -> None:
        self.log = log
        self.counts: Counter[str] = Counter()
        self._application = application
        log.create("in", "out", partitions=partitions)

    def write(self, records: int) -> None:
        keys = [f"k{i % 300}" for i in range(records)]
        self.log.write("in", [(key, i, i) for i, key in enumerate(keys)])
        self.counts.update(keys)

    def wait_until_counted(self) -> None:
        eventually(lambda: self.log.all_committed(self._application, "in"), "all committed")
        assert self.log.table("out") == dict(self.counts)
