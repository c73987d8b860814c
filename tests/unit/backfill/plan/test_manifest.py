"""A manifest says what a backfill is about; it comes back from its file as it was, or is refused with the reason."""

from __future__ import annotations

import json

import pytest

from pystreams import App
from pystreams.backfill.application import loaded
from pystreams.backfill.plan.manifest import Manifest, SliceResult, Status, StoreResult
from pystreams.backfill.plan.slices import make_plan
from pystreams.backfill.sources.ranges import InputRange
from pystreams.engine.failures.lateness import LateRecords
from pystreams.errors import StateError, TopologyError
from pystreams.ids import TopicPartition


def planned(store: str = "counts"):
    app = App("a")
    app.stream("in", key=str, value=int).group_by_key().count(name=store)
    return make_plan(loaded(app, {}).built, {"in": 2})


def manifest(plan) -> Manifest:
    return Manifest(
        application_id="a",
        fingerprint=plan.fingerprint,
        cut_time_ms=5,
        commit_records=100,
        cache_max_bytes=7,
        inputs=(InputRange(TopicPartition("in", 0), 2, 9), InputRange(TopicPartition("in", 1), 0, 0)),
        partitions=plan.partitions,
    )


def test_it_comes_back_from_its_text():
    late = LateRecords("COUNT", "counts", 1, 70, 51, 9)
    computed = SliceResult(9, 2, {"counts": StoreResult(3, "ab", 17, 30)}, {"dropped": 1}, (late,))
    written = manifest(planned()).with_slice(0, "slice-00-ab", computed).advanced(Status.COMPUTED)
    assert Manifest.from_json(written.to_json(), "here") == written
    assert written.folders == {0: "slice-00-ab"}
    assert written.end_of(TopicPartition("in", 0)) == 9


def test_one_from_before_records_were_counted_by_their_fate_counts_them_as_dropped():
    written = manifest(planned()).with_slice(0, "slice-00-ab", SliceResult(9, 2, {}))
    content = json.loads(written.to_json())
    for name in ("left_out", "late"):
        del content["slices"]["0"][name]
    read = Manifest.from_json(json.dumps(content), "here").slices[0]
    assert (read.left_out, read.late) == ({"dropped": 2}, ())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}'])
def test_what_is_no_manifest_is_refused(text):
    with pytest.raises(StateError, match="not a manifest"):
        Manifest.from_json(text, "here")


def test_another_format_is_refused():
    content = json.loads(manifest(planned()).to_json()) | {"format": 99}
    with pytest.raises(StateError, match="format 99"):
        Manifest.from_json(json.dumps(content), "here")


def test_stages_follow_each_other():
    cut = manifest(planned())
    with pytest.raises(StateError, match="cut cannot become committed"):
        cut.advanced(Status.COMMITTED)
    whole = cut.advanced(Status.COMPUTED).advanced(Status.PUBLISHING).advanced(Status.COMMITTED)
    with pytest.raises(StateError):
        whole.advanced(Status.PUBLISHING)


def test_another_plan_is_refused_with_the_first_difference():
    manifest(planned()).check_plan(planned())
    with pytest.raises(TopologyError, match="fingerprint"):
        manifest(planned()).check_plan(planned("other"))


def test_topics_that_the_application_does_not_have_do_not_matter():
    app = App("a")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    later = make_plan(loaded(app, {}).built, {"in": 2, "of-somebody-else": 5})
    manifest(planned()).check_plan(later)
    with pytest.raises(TopologyError, match="number of partitions of in was 2, now it is 3"):
        manifest(planned()).check_plan(make_plan(loaded(app, {}).built, {"in": 3}))
