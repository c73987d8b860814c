"""Parses Java's ``sasl.jaas.config``: ``org...PlainLoginModule required username="alice" password="...";``.

Source: org.apache.kafka.common.security.JaasConfig.
"""

from __future__ import annotations

import re
from typing import Final

from pystreams.errors import ConfigError

_SETTING: Final = "sasl.jaas.config"
_SECURITY: Final = "org.apache.kafka.common.security."
#: Login modules, each with its mechanisms.
_MODULES: Final = {
    f"{_SECURITY}plain.PlainLoginModule": ("PLAIN",),
    f"{_SECURITY}scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    f"{_SECURITY}oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
_OAUTH_OPTION: Final = (
    r"clientId|clientSecret|scope|(extension|unsecuredLoginExtension)_[A-Za-z]+"
    r"|unsecuredLogin((String|Number|List)Claim_.+|PrincipalClaimName|ScopeClaimName|LifetimeSeconds)"
)
#: The options of each mechanism's login module.
_OPTIONS: Final = {
    "PLAIN": r"username|password",
    "SCRAM-SHA-256": r"username|password|tokenauth",
    "SCRAM-SHA-512": r"username|password|tokenauth",
    "OAUTHBEARER": _OAUTH_OPTION,
}
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([\w.$-]+)|([=;]))""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_EXAMPLE: Final = (
    f'write it like this: {_SECURITY}plain.PlainLoginModule required username="NAME" password="PASSWORD";'
)


def jaas_options(config: str, mechanism: str) -> dict[str, str]:
    """The login module's options. Raises ``ConfigError`` if the text is malformed, or is for another mechanism. The
    error does not quote the text, because it contains passwords."""
    tokens = _tokens(config)
    if len(tokens) < 3 or tokens[-1] != (";", True) or tokens[1][0].lower() not in _FLAGS:
        raise _malformed("it does not have the form MODULE FLAG NAME=VALUE ...;")
    module, options = tokens[0][0], tokens[2:-1]
    mechanisms = _MODULES.get(module)
    if mechanisms is None:
        raise ConfigError(
            f"{_SETTING} names a login module that pystreams does not have",
            why=f"pystreams has: {', '.join(_MODULES)}",
            hint="confluent-kafka's wheels are built without Kerberos" if "Krb5" in module else _EXAMPLE,
        )
    if mechanism not in mechanisms:
        raise ConfigError(
            f"{_SETTING} is for {' and '.join(mechanisms)}, but sasl.mechanism is {mechanism}",
            hint="choose the login module for the mechanism, or the mechanism of the login module",
        )
    found = _pairs(options)
    unknown = [name for name in found if not re.fullmatch(_OPTIONS[mechanism], name)]
    if unknown:
        raise ConfigError(
            f"{_SETTING} has an unknown option: {unknown[0]}",
            why=f"the login by {mechanism} does not use it",
        )
    return found


def _tokens(config: str) -> list[tuple[str, bool]]:
    """The tokens of the text, each with whether it is punctuation."""
    found, position, end = [], 0, len(config.rstrip())
    while position < end:
        match = _TOKEN.match(config, position)
        if match is None:
            raise _malformed(f"the character at position {position + 1} is not expected there")
        double, single, word, mark = match.groups()
        quoted = double if double is not None else single
        found.append(
            (_ESCAPE.sub(_unescape, quoted), False) if quoted is not None else (word or mark, bool(mark))
        )
        position = match.end()
    return found


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


def _pairs(tokens: list[tuple[str, bool]]) -> dict[str, str]:
    options = {}
    for start in range(0, len(tokens), 3):
        match tokens[start : start + 3]:
            case [(name, False), ("=", True), (value, False)]:
                options[name] = value
            case _:
                raise _malformed(f"its option number {start // 3 + 1} is not NAME=VALUE")
    return options


def _malformed(why: str) -> ConfigError:
    return ConfigError(f"{_SETTING} cannot be read", why=why, hint=_EXAMPLE)
