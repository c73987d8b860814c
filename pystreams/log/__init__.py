"""Topics from Python: the object that ``pystreams.open_log`` returns. Commands on topics use the same parts.

Begin with ``log``, whose ``Log`` creates topics, and writes and reads records.

- ``connection`` finds the log to open: from the given settings, then from the environment.
- ``content`` serializes the keys and values that a program writes.
- ``output`` converts a program's records for one topic to bytes; ``batches`` writes them in batches.
- ``positions`` finds the places in a topic where reading starts and ends.
- ``records`` iterates over the records between two places; ``tables`` gives them as Arrow table or pandas data frame.
- ``topics`` looks topics up and creates them; names may be misspelt, and partitions may not exist.
"""

from __future__ import annotations

from pystreams.log.log import Log, open_log
from pystreams.log.records import Records
from pystreams.log.topics import TopicInfo

__all__ = ["Log", "Records", "TopicInfo", "open_log"]
