"""Word count with a global store that takes long to open: longer than others wait for a static worker to show up."""

from __future__ import annotations

import runpy
import time

from apps import wordcount
from pystreams.processor import Processor, ProcessorContext
from pystreams.record import Record
from pystreams.runtime.recovery.neighbours import STATIC_RETURN_MS
from pystreams.state.stores.factory import Stores

SLOW_S = STATIC_RETURN_MS / 1000 + 0.5


class SlowStart(Processor[str, str, None, None]):
    def init(self, context: ProcessorContext[None, None]) -> None:
        super().init(context)
        time.sleep(SLOW_S)

    def process(self, record: Record[str, str]) -> None:
        self.context.store("settings").put(record.key, record.value)


#: A copy of its own: tests in this process run the other one.
app = runpy.run_path(wordcount.__file__)["app"]
app.add_global_store(Stores.key_value_store("settings", str, str), "settings", SlowStart, key=str, value=str)
