"""A broker that wants to know who is there, on several listeners; its certificates and those of its clients."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.kafka.server import KafkaServer, free_port

USER, PASSWORD = "alice", 'through the "looking-glass"\\'
KEY_PASSWORD = "curiouser-and-curiouser"
_SECURITY = "org.apache.kafka.common.security"
#: How long a login with OAUTHBEARER lasts before it has to be renewed.
REAUTHENTICATION_MS = 4_000


def why_not() -> str | None:
    """What is missing to make certificates; None if nothing is."""
    return None if shutil.which("openssl") else "certificates need openssl on the PATH"


class Certificates:
    """An authority, what it has signed for the broker (host name ``localhost``) and a client, and a second authority
    that signed nothing. All are PEM files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca, ca_key = self._authority("ca")
        self.other_ca, _ = self._authority("other-ca")
        self.server = self._signed("server", ca_key, "-addext", "subjectAltName=DNS:localhost")
        self.client = self._signed("client", ca_key)
        self.client_key = self._folder / "client.key"
        self.encrypted_key = self._folder / "client-encrypted.key"
        self._openssl(
            "pkcs8",
            "-topk8",
            "-in",
            str(self.client_key),
            "-out",
            str(self.encrypted_key),
            "-passout",
            f"pass:{KEY_PASSWORD}",
        )
        self.server_store = self._joined("server")
        self.client_store = self._joined("client")

    def _authority(self, name: str) -> tuple[Path, Path]:
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        self._request(name, certificate, key, "-x509", "-addext", "basicConstraints=critical,CA:TRUE")
        return certificate, key

    def _signed(self, name: str, ca_key: Path, *extensions: str) -> Path:
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        self._request(name, certificate, key, "-CA", str(self.ca), "-CAkey", str(ca_key), *extensions)
        return certificate

    def _request(self, name: str, certificate: Path, key: Path, *more: str) -> None:
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key)]
        self._openssl(
            "req", "-batch", "-subj", f"/CN={name}", *new_key, "-out", str(certificate), "-days", "2", *more
        )

    def _joined(self, name: str) -> Path:
        """Key and certificate in one file, as Java's PEM stores have them."""
        parts = [self._folder / f"{name}{ending}" for ending in (".key", ".crt")]
        store = self._folder / f"{name}.pem"
        store.write_text("".join(part.read_text() for part in parts))
        return store

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def token(life_s: float, **claims: Any) -> str:
    """One that nobody has signed, which is what the broker takes."""
    now_s = time.time()
    parts = ({"alg": "none"}, {"sub": "alice", "iat": now_s, "exp": now_s + life_s, **claims})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + "."


def plain_login(name: str, password: str) -> str:
    return f"{_SECURITY}.plain.PlainLoginModule required username={quoted(name)} password={quoted(password)};"


def quoted(text: str) -> str:
    """As Java's JAAS files have it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class SecureServer(KafkaServer):
    """``sasl`` and ``mutual`` are the addresses of its listeners; the certificate is good for ``localhost``."""

    def __init__(self, data: Path, certificates: Certificates) -> None:
        super().__init__(data)
        self.sasl_port, mutual_port = free_port(), free_port()
        self.sasl = f"localhost:{self.sasl_port}"
        self.mutual = f"localhost:{mutual_port}"
        addresses = {"SASL": self.sasl_port, "MUTUAL": mutual_port}
        inner = [f"PLAINTEXT://127.0.0.1:{self.port}"]
        listeners = [*inner, f"CONTROLLER://127.0.0.1:{self.controller_port}"]
        self._properties |= {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,MUTUAL:SSL",
            "listeners": ",".join(
                [*listeners, *(f"{name}://127.0.0.1:{port}" for name, port in addresses.items())]
            ),
            "advertised.listeners": ",".join(
                [*inner, *(f"{name}://localhost:{port}" for name, port in addresses.items())]
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.server_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl.plain.sasl.jaas.config": _in_properties(
                plain_login("broker", "unused").removesuffix(";") + f" user_{USER}={quoted(PASSWORD)};"
            ),
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            "listener.name.sasl.oauthbearer.sasl.jaas.config": (
                f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required"
                ' unsecuredLoginStringClaim_sub="broker";'
            ),
            "listener.name.sasl.oauthbearer.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        }

    def add_properties(self, properties: Mapping[str, str]) -> None:
        """More settings of the broker, before it starts."""
        self._properties |= properties

    def start(self) -> None:
        super().start()
        self.add_user(USER, PASSWORD)

    def add_user(self, name: str, password: str) -> None:
        """Somebody who logs in by SCRAM."""
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4_096)
            change = UserScramCredentialUpsertion(name, info, password.encode())
            for future in client.alter_user_scram_credentials([change]).values():
                future.result()


def _in_properties(text: str) -> str:
    """Java's properties files have an escape of their own."""
    return text.replace("\\", "\\\\")
