"""The two programs of docs/how-to/from-kafka-streams.md are one topology: Java describes its own as we do ours."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from tests.docs.manual import DOCS, sections
from tests.docs.walk import file_of
from tests.interop.java_side import SOURCES, STREAMS_JARS, why_not
from tests.kafka.server import fetch_jars

PAGE = DOCS / "how-to" / "from-kafka-streams.md"

PROGRAM = """
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

class Documented {
    public static void main(String[] arguments) {
        %s
        System.out.print(builder.build().describe());
    }
}
"""

#: What the page's program ends with; here it is only described.
START = "new KafkaStreams(builder.build(), config).start();"


def block(info: str) -> str:
    (found,) = [
        block.text
        for section in sections(PAGE)
        for block in section.blocks
        if block.info == info and (info != "python" or file_of(block))
    ]
    return found


def java_describes(folder: Path) -> str:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    fetch_jars(SOURCES / "pom.xml", STREAMS_JARS)
    code = block("java no-run")
    assert START in code
    source = folder / "Documented.java"
    source.write_text(PROGRAM % code.replace(START, ""), encoding="utf-8")
    command = ["java", "-cp", f"{STREAMS_JARS}/*", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.slow
def test_java_describes_the_documented_program_as_we_do(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), str(PAGE), "exec"), names)
    app: App = names["app"]
    assert java_describes(tmp_path).split() == app.build().describe().split()
