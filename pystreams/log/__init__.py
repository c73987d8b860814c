"""Topics from Python: the object that ``pystreams.open_log`` returns. Commands on topics use the same parts.

Begin with ``log``: ``Log`` creates topics, produces and consumes. ``connection`` opens the broker, ``content`` reads
and writes keys and values, ``batches`` and ``output`` write in batches, ``records`` iterates over what is read from
``positions``, ``tables`` gives it as Arrow or pandas, ``topics`` describes and alters topics.
"""

from __future__ import annotations

from pystreams.log.log import Log, open_log
from pystreams.log.records import Records
from pystreams.log.topics import TopicInfo

__all__ = ["Log", "Records", "TopicInfo", "open_log"]
