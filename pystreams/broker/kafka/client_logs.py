"""What both clients log, without the logins that kafka-python would show.

At level DEBUG it logs each request and the bytes that go over the wire, passwords and tokens among them.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

#: Where librdkafka's log lines go.
CLIENT_LOG: Final = logging.getLogger("pystreams.kafka")

#: kafka-python's loggers that are given requests, responses and bytes.
_TALKATIVE: Final = ("kafka.net.connection", "kafka.protocol.parser")


class WithoutLogins(logging.Filter):
    """Leaves every line in, and secrets out."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_harmless, record.args))
        return True


def _harmless(argument: Any) -> Any:
    if isinstance(argument, SaslAuthenticateRequest | SaslAuthenticateResponse):
        return type(argument).__name__
    if isinstance(argument, bytes | bytearray | memoryview):
        return f"{len(argument)} bytes"
    return argument


for _name in _TALKATIVE:
    logging.getLogger(_name).addFilter(WithoutLogins())
