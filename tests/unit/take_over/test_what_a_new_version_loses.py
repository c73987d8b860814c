"""What a start says about content that the new version would lose: which losses are one, and how to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pystreams import JoinWindows, Suppressed, TimeWindows, agg
from pystreams.app import App
from pystreams.errors import ConfigError, TopologyError
from pystreams.take_over.last_run import LastRun
from pystreams.take_over.take_over_plan import TakeOver, plan_take_over, topology_as_kept
from pystreams.topology.built import BuiltTopology


@dataclass
class Sum:
    cents: int = 0
    sales: int = 0


@dataclass
class Cents:
    cents: int = 0


@dataclass
class Euros:
    euros: int = 0
    sales: int = 0


def final_sums(
    kind: type = Sum, *, size_s: int = 10, retention_s: int = 3600, step: str = "final"
) -> BuiltTopology:
    """Sums in windows, whose results wait for the end of the window."""
    app = App("shop")
    sums = (
        app.stream("sales", key=str, value=int)
        .group_by_key()
        .windowed_by(TimeWindows.tumbling(size_s * 1000, grace=0))
        .aggregate(kind, lambda found, _: found, value=kind, name="sums", retention=retention_s * 1000)
    )
    sums.suppress(Suppressed.until_window_closes(), step=step).to_stream().to("out")
    return app.build().build("shop")


def counts(name: str, *, before: Any = lambda sales: sales) -> BuiltTopology:
    app = App("shop")
    before(app.stream("sales", key=str, value=int)).group_by_key().count(name=name)
    return app.build().build("shop")


def take_over(old: BuiltTopology, new: BuiltTopology, *accepted: str) -> TakeOver:
    return plan_take_over(LastRun(topology_as_kept(old)), new, accepted, "a log", lambda topic: 0)


def refusal(old: BuiltTopology, new: BuiltTopology, *accepted: str) -> TopologyError:
    with pytest.raises(TopologyError) as refused:
        take_over(old, new, *accepted)
    return refused.value


@pytest.mark.parametrize("new", [final_sums(size_s=20), final_sums(Cents)], ids=["windows", "a field"])
def test_who_accepts_the_loss_of_a_store_accepts_that_of_its_rows_that_wait(new: BuiltTopology) -> None:
    refused = refusal(final_sums(), new)
    assert refused.what == "stored content would be lost: sums"
    assert refused.why.endswith(" (and with it what waits in final-store)")
    assert "run … --accept-loss sums (or" in refused.hint
    assert take_over(final_sums(), new, "sums").accepted == ("sums", "final-store")
    # It may be named, too.
    assert take_over(final_sums(), new, "sums", "final-store") == take_over(final_sums(), new, "sums")


def test_who_accepts_the_loss_of_what_waits_has_not_accepted_that_of_the_store() -> None:
    assert refusal(final_sums(), final_sums(size_s=20), "final-store").what.endswith("lost: sums")


def test_what_is_lost_for_another_reason_is_accepted_by_its_own_name() -> None:
    old, new = final_sums(), final_sums(retention_s=1800, step="last")
    assert refusal(old, new).what.endswith("lost: sums, final-store")
    assert refusal(old, new, "sums").what.endswith("lost: final-store")
    assert take_over(old, new, "sums", "final-store").dropped == ("final-store",)


def test_a_store_and_its_rows_that_wait_are_kept_each_under_its_new_name() -> None:
    def counted(steps: int) -> BuiltTopology:
        app = App("shop")
        sales = app.stream("sales", key=str, value=int)
        for _ in range(steps):
            sales = sales.filter(bool)
        counts = sales.group_by_key().windowed_by(TimeWindows.tumbling(10, grace=0)).count()
        counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")
        return app.build().build("shop")

    hint = refusal(counted(0), counted(1)).hint
    for argument in (
        'name="new name", was="KSTREAM-AGG',
        'step="new name", was="KTABLE-SUPPRESS-STATE-STORE-',
    ):
        assert argument in hint
    assert hint.count("--accept-loss") == 1


def test_what_loses_nothing_is_no_part_of_an_acceptance() -> None:
    with pytest.raises(ConfigError) as wrong:
        take_over(final_sums(), final_sums(size_s=20), "sums", "summs")
    assert wrong.value.why == "the stores that lose content are sums"


def test_the_way_to_keep_a_renamed_store_comes_first_and_has_its_names() -> None:
    hint = refusal(counts("sold"), counts("sales-count")).hint
    assert hint.startswith(
        'keep the content of sold, if it is now sales-count: name="sales-count", was="sold"; or accept that'
    )
    hint = refusal(final_sums(), final_sums(step="last")).hint
    assert 'step="last", was="final-store"' in hint


def test_a_store_that_is_the_only_one_of_its_types_may_be_renamed_although_steps_have_changed() -> None:
    new = counts("sales-count", before=lambda sales: sales.filter(lambda value: value > 0))
    assert 'name="sales-count", was="sold"' in refusal(counts("sold"), new).hint


def test_of_several_stores_that_may_be_the_old_one_none_is_named() -> None:
    app = App("shop")
    for topic, name in (("a", "one"), ("b", "two")):
        app.stream(topic, key=str, value=int).filter(bool).group_by_key().count(name=name)
    hint = refusal(counts("sold"), app.build().build("shop")).hint
    assert 'was="old name"' in hint
    assert 'was="sold"' not in hint


def test_stores_of_a_join_have_names_that_the_program_does_not_know() -> None:
    def joined(name: str) -> BuiltTopology:
        app = App("shop")
        left, right = (app.stream(topic, key=str, value=str) for topic in ("orders", "payments"))
        windows = JoinWindows.of(1000, grace=0)
        left.join(right, lambda order, _: order, windows=windows, value=str, name=name).to("out")
        return app.build().build("shop")

    hint = refusal(joined("paid"), joined("settled")).hint
    assert 'name="new name", was="old name"' in hint
    assert hint.count("was=") == 1


def test_without_a_new_store_nothing_was_renamed() -> None:
    app = App("shop")
    app.stream("sales", key=str, value=int).to("out")
    assert "was=" not in refusal(counts("sold"), app.build().build("shop")).hint


def test_the_name_of_a_new_store_is_to_be_given_where_it_is_generated() -> None:
    app = App("shop")
    app.stream("sales", key=str, value=int).filter(bool).group_by_key().count()
    old = App("shop")
    old.stream("sales", key=str, value=int).group_by_key().count()
    hint = refusal(old.build().build("shop"), app.build().build("shop")).hint
    assert 'name="new name", was="KSTREAM-AGGREGATE-STATE-STORE-0000000001"' in hint


def test_a_renamed_field_is_refused_with_how_to_keep_its_name_in_the_bytes() -> None:
    hint = refusal(final_sums(), final_sums(Euros)).hint
    assert "a field with another name is another field: if value.cents is now euros, keep the name" in hint
    for way in ('euros = msgspec.field(name="cents")', 'AliasChoices("euros", "cents")'):
        assert way in hint
    assert "another name is another field" not in refusal(final_sums(), final_sums(Cents)).hint


def climate(name: str) -> BuiltTopology:
    app = App("hives")
    hives = app.stream("hives", key=str, value=dict).group_by_key()
    hives.aggregate(**{name: agg.mean("t"), "n": agg.count()}, name="climate")
    return app.build().build("hives")


def test_a_renamed_argument_of_declared_aggregates_is_refused_with_how_to_rename_its_field_afterwards() -> (
    None
):
    hint = refusal(climate("temp"), climate("celsius")).hint
    assert (
        "if value.temp is now celsius, keep the argument of aggregate(), temp=, and rename the field afterwards: "
        ".to_stream().map_values(…)"
    ) in hint
    assert "msgspec" not in hint


@dataclass
class Reading:
    celsius: float


@dataclass
class NewReading:
    degrees: float = 0.0


def last_reading(model: type) -> BuiltTopology:
    app = App("hives")
    hives = app.stream("hives", key=str, value=model).group_by_key()
    hives.aggregate(reading=agg.last(), name="climate")
    return app.build().build("hives")


def test_a_renamed_field_of_a_model_inside_of_declared_aggregates_keeps_its_name_in_the_bytes() -> None:
    hint = refusal(last_reading(Reading), last_reading(NewReading)).hint
    assert 'degrees = msgspec.field(name="celsius")' in hint
    assert "argument of aggregate()" not in hint
