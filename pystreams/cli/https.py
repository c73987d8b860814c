"""How commands ask applications over HTTPS: the options, and what they come to.

The variables of the environment are not those of a server (``PYSTREAMS_HTTP_...``): who exports a certificate of their
own does not want a server to show it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pystreams.errors import ConfigError

if TYPE_CHECKING:
    import ssl

CaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        envvar="PYSTREAMS_CA",
        help="The authority that signed the certificate of the application (PEM). Default: those that the system "
        "trusts",
        show_default=False,
    ),
]

CertificateOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cert",
        metavar="FILE",
        envvar="PYSTREAMS_CERT",
        help="A certificate to show to a server that demands one (PEM).",
        show_default=False,
    ),
]

KeyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        envvar="PYSTREAMS_KEY",
        help="The key of that certificate (PEM, without a password).",
        show_default=False,
    ),
]


def tls_of(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """How to ask over HTTPS; None if nothing was said about it. Raises ``ConfigError``."""
    from pystreams.serving.tls import asking

    if (certificate is None) != (key is None):
        raise ConfigError("a certificate is used together with its key", hint="give both --cert and --key")
    return None if ca is None and certificate is None else asking(ca, certificate, key)
