"""Topics from Python: what ``pystreams.open_log`` opens. Commands that work on topics are built on the same parts."""

from __future__ import annotations

from pystreams.log.log import Log, open_log
from pystreams.log.records import Records
from pystreams.log.topics import TopicInfo

__all__ = ["Log", "Records", "TopicInfo", "open_log"]
