"""``open_log`` logs in with the settings that an application has for it."""

from __future__ import annotations

import pytest

from pystreams import open_log
from pystreams.errors import BrokerError
from tests.kafka.secure_server import PASSWORD, USER, Certificates, SecureServer


def test_the_login_is_given_as_an_application_gives_it(secure: SecureServer, certificates: Certificates):
    login = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_username": USER,
        "sasl_password": PASSWORD,
        "ssl_ca_location": str(certificates.ca),
    }
    servers = secure.sasl
    with open_log(bootstrap_servers=servers, **login) as log:
        log.create_topic("by-login", if_not_exists=True)
        log.produce("by-login", "x")
        assert [record.value for record in log.consume("by-login", value=str, from_=-1)] == ["x"]
        log.delete_topic("by-login")
    with pytest.raises(BrokerError):
        open_log(bootstrap_servers=servers, **{**login, "sasl_password": "wrong"})
