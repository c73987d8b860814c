"""What a former owner writes late, having been frozen, does not get into anybody's state."""

from __future__ import annotations

import logging

import pytest

from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually


def counting(cluster: Cluster, **settings):
    app = cluster.app("counting", **settings)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


@pytest.mark.parametrize("written_with", ["the next commit", "no commit"])
def test_a_late_write_to_a_changelog_is_set_right(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, written_with: str
):
    cluster.create("in", "out")
    cluster.write("in", [(f"k{i % 3}", i, i + 1) for i in range(30)])
    streams = cluster.start(counting(cluster))
    caught_up(streams)
    changelog = "counting-counts-changelog"
    # As a zombie does: what was true long ago.
    cluster.write(changelog, [("k0", 1, 1), ("k1", 10, 29)])
    if written_with == "the next commit":
        cluster.write("in", [("k2", 0, 31)])
        eventually(lambda: "are not this task's" in caplog.text, "the late write is noticed")
        caught_up(streams)
    with caplog.at_level(logging.WARNING):
        assert streams.close(30_000)
    assert "1 of 2 keys" in caplog.text or "1 of 3 keys" in caplog.text, caplog.text
    assert cluster.table(changelog)["k0"] == 10
    # Somebody without state takes over.
    cluster.write("in", [("k0", 0, 32)])
    streams = cluster.start(counting(cluster, state_dir=cluster.path / "elsewhere"))
    caught_up(streams)
    assert cluster.table("out")["k0"] == 11
