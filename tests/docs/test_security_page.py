"""What the page on security shows is so: its variables are settings, and its commands install what the lock pins."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.config import StreamsConfig, settings_from_environment
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.distribution import DISTRIBUTION
from tests.docs.manual import DOCS, Block, sections
from tests.docs.test_how_to_pages import options
from tests.package.materials import UV

PAGE = DOCS / "security.md"


def shown(beginning: str) -> Block:
    """The block that begins so."""
    blocks = [block for section in sections(PAGE) for block in section.blocks]
    (found,) = [block for block in blocks if block.text.startswith(beginning)]
    return found


def test_every_variable_is_a_setting() -> None:
    named = {name.lower() for name in re.findall(r"PYSTREAMS_(\w+)", PAGE.read_text(encoding="utf-8"))}
    known = {field.name for field in fields(StreamsConfig)} | {
        name.replace(".", "_") for name in CLIENT_SETTINGS
    }
    assert named - known - options() == set()


def test_the_variables_for_a_login_are_the_login_of_both_clients(tmp_path: Path) -> None:
    lines = shown("export").text.splitlines()
    given = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    # Certificates may be in a folder.
    given = {name: str(tmp_path) if value.endswith(".pem") else value for name, value in given.items()}
    config = StreamsConfig(application_id="shop").override(settings_from_environment(given))
    assert config.bootstrap_servers is not None
    kafka = KafkaSettings(config.bootstrap_servers, client_settings=config.client_settings)
    librdkafka, member = kafka.producer("shop"), kafka.membership("shop")
    assert librdkafka["ssl.ca.location"] == str(tmp_path)
    assert "ssl_context" in member
    for name, of_librdkafka, of_member in (
        ("PYSTREAMS_BOOTSTRAP_SERVERS", "bootstrap.servers", "bootstrap_servers"),
        ("PYSTREAMS_SECURITY_PROTOCOL", "security.protocol", "security_protocol"),
        ("PYSTREAMS_SASL_MECHANISM", "sasl.mechanism", "sasl_mechanism"),
        ("PYSTREAMS_SASL_USERNAME", "sasl.username", "sasl_plain_username"),
        ("PYSTREAMS_SASL_PASSWORD", "sasl.password", "sasl_plain_password"),
    ):
        found = member[of_member]
        assert (",".join(found) if isinstance(found, list) else found) == given[name], name
        assert librdkafka[of_librdkafka] == given[name], name


def test_the_commands_install_what_the_lock_pins_with_hashes(tmp_path: Path) -> None:
    if not UV.exists():
        pytest.skip("`make package` installs uv")
    export, install, own = map(shlex.split, shown("uv export").text.splitlines())
    assert export[0] == "uv"
    name = export[export.index("--output-file") + 1]
    listed = tmp_path / name
    ours = [str(UV), *(str(listed) if word == name else word for word in export[1:]), "--quiet"]
    subprocess.run(ours, cwd=DOCS.parent, check=True, stdout=subprocess.DEVNULL)
    text = re.sub(r"^ *#.*\n", "", listed.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pinned = text.replace("\\\n", "").splitlines()
    assert [
        line for line in pinned if not re.match(r"[\w-]+==[^ ]+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []
    names = {line.partition("==")[0] for line in pinned}
    assert {"msgspec", "rocksdict", "starlette"} <= names
    assert DISTRIBUTION not in names
    assert install == ["pip", "install", "--require-hashes", "--requirement", name]
    assert own == ["pip", "install", "--no-deps", f"dist/{DISTRIBUTION.replace('-', '_')}-*.whl"]
