"""``pystreams diff`` tells what a new version does to what the old one has stored."""

from __future__ import annotations

import pytest

OLD = """
from pystreams import App

app = App("shop")
sales = app.stream("sales", key=str, value=int)
sales.group_by_key().count(name="sold")
letters = sales.map_values(lambda value: value, value=int).select_key(lambda key, value: key[:1], key=str)
letters.group_by_key().count(name="letters")
app.table("articles", key=str, value=str, name="names")
"""


@pytest.fixture
def old(folder):
    (folder / "old_shop.py").write_text(OLD, encoding="utf-8")
    return "old_shop.py"


@pytest.fixture
def new(folder):
    def write(*replacements):
        program = OLD
        for was, now in replacements:
            assert was in program
            program = program.replace(was, now)
        (folder / "new_shop.py").write_text(program, encoding="utf-8")
        return "new_shop.py"

    return write


def rows(found):
    return {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in found.out.splitlines()}


def test_equal_topologies_need_nothing(pystreams, old, new):
    found = pystreams("diff", old, new(("lambda value: value,", "lambda value: value + 1,")))
    assert found.code == 0
    assert found.out == ""
    assert "equal" in found.err


def test_what_is_not_touched_keeps_its_content(pystreams, old, new):
    found = pystreams("diff", old, new(('name="names")', 'name="names").filter(lambda value: value)')))
    assert rows(found)[("store", "sold")][0] == "keeps its content"
    assert "reset" not in found.err


def test_another_type_means_a_new_beginning(pystreams, old, new):
    found = pystreams("diff", old, new(("value=str", "value=int")))
    verdict, why = rows(found)[("store", "names")]
    assert verdict == "must be built anew"
    assert why == "its type of values changes: StrSerde to IntSerde(8)"
    assert "pystreams reset" in found.err


def test_a_store_with_another_name_starts_empty(pystreams, old, new):
    found = rows(pystreams("diff", old, new(('name="sold"', 'name="sales-count"'))))
    assert found[("store", "sold")][0] == "loses its content"
    assert found[("store", "sales-count")][0] == "is new and starts empty"


def test_a_generated_name_that_moved_is_told(pystreams, new, folder):
    without = ('count(name="sold")', "count()")
    old_json = pystreams("describe", new(without), "--format", "json").out
    moved = new(without, ("sales.group_by_key", "sales.filter(lambda value: value > 0).group_by_key"))
    (folder / "was.json").write_text(old_json, encoding="utf-8")
    found = rows(pystreams("diff", "was.json", moved))
    lost = [why for (kind, _), (verdict, why) in found.items() if kind == "store" and "loses" in verdict]
    assert len(lost) == 1
    assert "generated names change" in lost[0]


def test_other_steps_before_a_store_mix_its_content(pystreams, old, new):
    found = rows(pystreams("diff", old, new(("sales.group_by_key", "sales.filter(bool).group_by_key"))))
    assert found[("store", "sold")][0].startswith(
        "keeps its content, which the steps before it made in another way"
    )


def test_inputs_and_repartition_topics_are_told(pystreams, old, new):
    found = rows(
        pystreams("diff", old, new(('"sales", key', '"orders", key'), ('name="letters"', 'name="first"')))
    )
    assert found[("input", "orders")][0] == "is new and starts empty"
    assert found[("input", "sales")][0] == "loses its content"
    assert found[("repartition topic", "shop-letters-repartition")][0] == "loses its content"


def test_without_an_old_one_it_is_what_ran_here_last(pystreams, old, new):
    assert pystreams("diff", new()).code == 3
    assert pystreams("topics", "create", "sales", "articles").code == 0
    assert pystreams("run", old, "--until-caught-up").code == 0
    assert "equal" in pystreams("diff", new()).err
    found = rows(pystreams("diff", new(("value=str", "value=int"))))
    assert found[("store", "names")][0] == "must be built anew"


def test_a_file_that_is_no_topology_is_refused(pystreams, old, folder):
    (folder / "other.json").write_text("[]", encoding="utf-8")
    found = pystreams("diff", "other.json", old)
    assert found.code == 3
    assert "describe MODULE --format json" in found.err
