"""The log lines of both clients, without the logins that kafka-python would show.

At level DEBUG, kafka-python logs each request and the bytes on the wire, including passwords and tokens.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

#: The logger for librdkafka's lines.
CLIENT_LOG: Final = logging.getLogger("pystreams.kafka")

#: The loggers of kafka-python that log requests, responses and bytes.
_TALKATIVE: Final = ("kafka.net.connection", "kafka.protocol.parser")


class WithoutLogins(logging.Filter):
    """Keeps every line, and removes secrets from it."""

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
