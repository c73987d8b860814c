"""Whoever looks at what kafka-python logs, at whatever level, finds no password and no token."""

from __future__ import annotations

import logging
import warnings

import pytest

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net import connection
    from kafka.protocol import parser
    from kafka.protocol.sasl import SaslAuthenticateRequest

    import pystreams.broker.kafka.settings  # noqa: F401 - with it come the filters

HIDDEN = "through-the-looking-glass"


def test_a_login_is_logged_without_what_it_says(caplog: pytest.LogCaptureFixture):
    login = SaslAuthenticateRequest(f"\0alice\0{HIDDEN}".encode(), version=1)
    with caplog.at_level(logging.DEBUG, logger="kafka"):
        protocol = parser.KafkaProtocol(client_id="x")
        protocol.send_request(login)
        assert HIDDEN.encode() in protocol.send_bytes()
        connection.log.debug("%s Request %d: %s", "connection", 1, login)
    assert "Sending request 1 SaslAuthenticateRequest" in caplog.text
    assert "Request 1: SaslAuthenticateRequest" in caplog.text
    assert HIDDEN not in caplog.text
