"""The queries that the page of stores shows find what an application has in its stores."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.docs.manual import DOCS, PRELUDE, sections
from tests.live.support import Log


@pytest.mark.live
def test_queries_find_what_the_application_has_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = [block for section in sections(DOCS / "dsl" / "stores.md") for block in section.blocks]
    starts, asks = [block.text for block in blocks if block.info == "python no-run"]
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    with closing(Log(tmp_path)) as log:
        log.create("visits", "places", partitions=2)
        log.write("visits", [("ann", 1, 0), ("ann", 1, 1)])
        log.write("places", [("ann", "Rome", 0)], value=str)
        names["app"] = app = log.app("visits", embedded_log=log.path / "log.db")
        app.stream("visits", key=str, value=int).group_by_key().count(name="visits-by-user")
        app.table("places", key=str, value=str, name="latest")
        try:
            exec(starts, names)
            exec(asks, names)
        finally:
            names["streams"].close()
    assert capsys.readouterr().out == "2\nRome\n"
