"""Java's ways to say who a client is are understood, and what is missing or contradictory is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.config.client_settings import client_security, client_settings
from pystreams.config.jaas import jaas_options
from pystreams.config.security import ClientCredentials, Security, TokenFile, UnsecuredToken
from pystreams.errors import ConfigError

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule"
SCRAM = f"{SECURITY}.scram.ScramLoginModule"
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"


def security(given: dict[str, Any], *, provider: bool = False) -> Security:
    return client_security(client_settings(given), "main.consumer", has_token_provider=provider)


def sasl(mechanism: str, **more: Any) -> dict[str, Any]:
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, **more}


@pytest.mark.parametrize(
    "options,expected",
    [
        ('username="alice" password="secret"', {"username": "alice", "password": "secret"}),
        ("username=alice password=s-e_c.r$et", {"username": "alice", "password": "s-e_c.r$et"}),
        ("username='alice' password='sec\"ret'", {"username": "alice", "password": 'sec"ret'}),
        (r'password="a\"b\\c"', {"password": 'a"b\\c'}),
        (r'password="a\tb\101"', {"password": "a\tbA"}),
        ('password="a;b=c"', {"password": "a;b=c"}),
        ('\n  username = "alice"\n  password = "" ', {"username": "alice", "password": ""}),
        ("", {}),
    ],
)
def test_a_jaas_text_is_taken_apart(options: str, expected: dict[str, str]):
    assert jaas_options(f"{PLAIN} required {options};", "PLAIN") == expected
    assert jaas_options(f"\n{PLAIN}\tREQUIRED\n{options} ;\n", "PLAIN") == expected


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_password_can_be_quoted(password: str):
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert jaas_options(f'{PLAIN} required password="{quoted}";', "PLAIN") == {"password": password}


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        PLAIN,
        f"{PLAIN} required",
        f'{PLAIN} required password="hunter2"',
        f"{PLAIN} required password=hunter2 username;",
        f"{PLAIN} required password hunter2;",
        f'{PLAIN} perhaps password="hunter2";',
        f'{PLAIN} required password="hunter2;',
        f"{PLAIN} required password=hunter2; {PLAIN} required;",
        f"{PLAIN} required =hunter2 x;",
    ],
)
def test_a_text_that_is_none_is_refused_and_not_shown(text: str):
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config cannot be read") as caught:
        jaas_options(text, "PLAIN")
    assert "hunter2" not in str(caught.value)


def test_the_login_module_fits_the_mechanism():
    with pytest.raises(
        ConfigError, match=r"is for SCRAM-SHA-256 and SCRAM-SHA-512, but sasl\.mechanism is PLAIN"
    ):
        jaas_options(f"{SCRAM} required username=a password=b;", "PLAIN")
    with pytest.raises(ConfigError, match="a login module that pystreams does not have") as caught:
        jaas_options("com.sun.security.auth.module.Krb5LoginModule required;", "PLAIN")
    assert "without Kerberos" in caught.value.hint


@pytest.mark.parametrize(
    "mechanism,login,option",
    [
        ("PLAIN", f"{PLAIN} required username=a pasword=b;", "pasword"),
        ("SCRAM-SHA-256", f"{SCRAM} required username=a password=b user_a=b;", "user_a"),
        ("OAUTHBEARER", f"{OAUTH} required clientid=a;", "clientid"),
        ("OAUTHBEARER", f"{OAUTH} required extension_a1=a;", "extension_a1"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(mechanism: str, login: str, option: str):
    with pytest.raises(ConfigError) as caught:
        jaas_options(login, mechanism)
    assert caught.value.what == f"sasl.jaas.config has an unknown option: {option}"


def test_extensions_of_a_token_may_be_given_as_in_java():
    login = f"{OAUTH} required clientId=i clientSecret=s extension_pool=p extension_cluster=c;"
    url = {"sasl.oauthbearer.token.endpoint.url": "https://idp/token"}
    found = security(sasl("OAUTHBEARER", **url, **{"sasl.jaas.config": login}))
    assert found.extensions == {"pool": "p", "cluster": "c"}
    login = f"{OAUTH} required unsecuredLoginStringClaim_sub=a unsecuredLoginExtension_pool=p;"
    assert security(sasl("OAUTHBEARER", **{"sasl.jaas.config": login})).extensions == {"pool": "p"}


def test_name_and_password_come_from_either_place_and_not_from_both():
    login = {"sasl.jaas.config": f"{PLAIN} required username=alice password=secret;"}
    found = security(sasl("PLAIN", **login)).settings
    assert (found["sasl.username"], found["sasl.password"]) == ("alice", "secret")
    assert "sasl.jaas.config" not in found
    assert (
        security(sasl("PLAIN", **{"sasl.username": "a", "sasl.password": "b"})).settings["sasl.username"]
        == "a"
    )
    with pytest.raises(ConfigError, match=r"sasl\.password is given twice"):
        security(sasl("PLAIN", **login | {"sasl.password": "b"}))


@pytest.mark.parametrize(
    "given,what",
    [
        (sasl("PLAIN"), "sasl.username is missing"),
        (sasl("SCRAM-SHA-512", **{"sasl.username": "a"}), "sasl.password is missing"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "a"}, "security.protocol is missing"),
        ({"ssl.ca.location": "a.pem"}, "security.protocol is missing"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "a.jks"}, "ssl.truststore.type is missing"),
        ({"security.protocol": "SSL", "ssl.key.location": "a.pem"}, "without ssl.certificate.location"),
        ({"security.protocol": "SSL", "ssl.keystore.certificate.chain": "x"}, "without ssl.keystore.key"),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "a.pem",
                "ssl.ca.location": "b.pem",
            },
            "are both given",
        ),
        (
            sasl("SCRAM-SHA-512", **{"sasl.jaas.config": f"{SCRAM} required tokenauth=true;"}),
            "delegation token",
        ),
        (sasl("OAUTHBEARER"), "OAUTHBEARER has no source of tokens"),
        (
            sasl("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": "https://a"}),
            "client.credentials.client.id is missing",
        ),
        (
            sasl("OAUTHBEARER", **{"sasl.jaas.config": f"{OAUTH} required unsecuredLoginListClaim_s=',a';"}),
            "does not name a user",
        ),
    ],
)
def test_what_is_missing_or_contradictory_is_reported(given: dict[str, Any], what: str):
    with pytest.raises(ConfigError) as caught:
        security(given)
    assert what in caught.value.what


def test_settings_for_a_login_that_is_switched_off_are_let_be():
    found = security({"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "a"})
    assert found.settings["security.protocol"] == "PLAINTEXT"


def test_a_function_that_gives_tokens_is_for_oauthbearer_alone():
    assert security(sasl("OAUTHBEARER"), provider=True).tokens is None
    with pytest.raises(ConfigError, match=r"sasl.mechanism is not OAUTHBEARER"):
        security(sasl("PLAIN", **{"sasl.username": "a", "sasl.password": "b"}), provider=True)
    with pytest.raises(ConfigError, match="several sources of tokens"):
        security(sasl("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": "file:///a"}), provider=True)


def test_the_clients_credentials_come_from_javas_new_or_old_names():
    url = {"sasl.oauthbearer.token.endpoint.url": "https://idp/token"}
    new = {
        "sasl.oauthbearer.client.credentials.client.id": "id",
        "sasl.oauthbearer.client.credentials.client.secret": "secret",
        "sasl.oauthbearer.scope": "kafka",
    }
    old = {"sasl.jaas.config": f"{OAUTH} required clientId=id clientSecret=secret scope=kafka;"}
    expected = ClientCredentials("https://idp/token", "id", "secret", "kafka")
    assert security(sasl("OAUTHBEARER", **url, **new)).tokens == expected
    assert security(sasl("OAUTHBEARER", **url, **old)).tokens == expected
    assert "secret" not in repr(expected)


def test_tokens_from_a_file_and_tokens_of_ones_own():
    url = {"sasl.oauthbearer.token.endpoint.url": "file:///run/token"}
    assert security(sasl("OAUTHBEARER", **url)).tokens == TokenFile("file:///run/token")
    login = (
        f'{OAUTH} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="3"'
        ' unsecuredLoginListClaim_scope=",read,write" unsecuredLoginLifetimeSeconds="60";'
    )
    assert security(sasl("OAUTHBEARER", **{"sasl.jaas.config": login})).tokens == UnsecuredToken(
        {"sub": "alice", "level": 3.0, "scope": ["read", "write"]}, 60.0
    )
