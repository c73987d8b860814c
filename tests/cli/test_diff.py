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


FIRST = (
    "sales = app",
    'app.stream("first", key=str, value=str).group_by_key().count(name="f")\nsales = app',
)
OTHER = ('name="names")', 'name="names").filter(lambda value: value)')
UNLOGGED = ('count(name="sold")', 'count(name="sold", logged=False)')
IN_MEMORY = ('count(name="sold")', 'count(name="sold", logged=False, persistent=False)')


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
    assert why == "value was text, is now int in 8 bytes"
    assert "pystreams reset" in found.err


def test_a_store_with_another_name_starts_empty(pystreams, old, new):
    found = pystreams("diff", old, new(('name="sold"', 'name="sales-count"')))
    told = rows(found)
    assert told[("store", "sold")] == ["loses its content", "perhaps it is now sales-count"]
    assert told[("store", "sales-count")] == ["is new", "it starts empty; perhaps it was sold before"]
    assert found.err.splitlines()[1:] == [
        "Content is lost: store sold.",
        '- keep the content of sold, if it is now sales-count: name="sales-count", was="sold"',
        "- accept that this content is lost: run … --accept-loss sold (or the setting accept_loss)",
        "- compute all again: pystreams reset, another application id, or a backfill",
    ]


def test_each_store_that_loses_content_is_named_for_the_acceptance(pystreams, old, new):
    found = pystreams(
        "diff",
        old,
        new(('count(name="sold")', 'count(name="sold", logged=False)'), ("value=str", "value=int")),
    )
    assert "run … --accept-loss sold --accept-loss names (or" in found.err
    assert "was=" not in found.err


def test_what_no_run_finds_is_lost_without_a_question(pystreams, new, folder):
    old_json = pystreams("describe", new(IN_MEMORY), "--format", "json").out
    (folder / "was.json").write_text(old_json, encoding="utf-8")
    found = pystreams("diff", "was.json", new(IN_MEMORY, OTHER))
    assert found.err.rstrip().endswith("Content is lost: store sold.")


def test_a_repartition_topic_with_another_number_of_partitions_leaves_one_way(pystreams, new, folder):
    wider = ("letters.group_by_key()", 'letters.repartition(name="letters", partitions=2).group_by_key()')
    described = pystreams("describe", new(wider), "--format", "json").out
    (folder / "was.json").write_text(described, encoding="utf-8")
    found = pystreams("diff", "was.json", new((wider[0], wider[1].replace("2", "4"))))
    assert found.err.splitlines()[-1].startswith("- compute all again: pystreams reset")
    assert "--accept-loss" not in found.err


def test_what_waits_for_the_end_of_its_window_is_lost_and_accepted_with_the_store(pystreams, new, folder):
    def final(size_ms):
        windows = f".windowed_by(TimeWindows.tumbling({size_ms}, grace=0))"
        return new(
            ("import App", "import App, Suppressed, TimeWindows"),
            (
                '.count(name="sold")',
                f'{windows}.count(name="sold").suppress(Suppressed.until_window_closes(), step="final")',
            ),
        )

    (folder / "was.json").write_text(
        pystreams("describe", final(10), "--format", "json").out, encoding="utf-8"
    )
    found = pystreams("diff", "was.json", final(20))
    assert rows(found)[("store", "final-store")][0] == "must be built anew"
    assert "Content is lost: store sold (and with it what waits in final-store).\n" in found.err
    assert "run … --accept-loss sold (or" in found.err


def test_a_store_whose_content_is_carried_over_says_from_where(pystreams, old, new):
    found = pystreams("diff", old, new(('name="sold"', 'name="sales-count", was="sold"')))
    assert rows(found)[("store", "sales-count")] == ["keeps its content", "carried over from sold"]
    assert found.code == 2


def test_a_generated_name_that_moved_is_reported(pystreams, new, folder):
    without = ('count(name="sold")', "count()")
    old_json = pystreams("describe", new(without), "--format", "json").out
    moved = new(without, ("sales.group_by_key", "sales.filter(lambda value: value > 0).group_by_key"))
    (folder / "was.json").write_text(old_json, encoding="utf-8")
    compared = pystreams("diff", "was.json", moved)
    found = rows(compared)
    was, now = "KSTREAM-AGGREGATE-STATE-STORE-0000000001", "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    assert found[("store", was)] == [
        "loses its content",
        f"perhaps it is now {now}",
    ]
    assert found[("store", now)][0] == "is new"
    assert f'name="new name", was="{was}"' in compared.err
    kept = new(
        (without[0], f"count(name={was!r})"), ("sales.group_by_key", "sales.filter(bool).group_by_key")
    )
    assert rows(pystreams("diff", "was.json", kept))[("store", was)] == [
        "keeps its content, which was computed in another way",
        "from now on KSTREAM-FILTER-0000000001 is new before it",
    ]


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (
            "sales.group_by_key",
            "sales.filter(bool).group_by_key",
            "KSTREAM-FILTER-0000000001 is new before it",
        ),
        (
            "sales.group_by_key",
            "sales.map_values(str, value=str).group_by_key",
            "KSTREAM-MAPVALUES-0000000001 is new",
        ),
    ],
)
def test_other_steps_before_a_store_mix_its_content(pystreams, old, new, was, now, told):
    verdict, why = rows(pystreams("diff", old, new((was, now))))[("store", "sold")]
    assert verdict == "keeps its content, which was computed in another way"
    assert why.startswith(f"from now on {told}")


def test_steps_before_the_repartition_topic_count_too(pystreams, old, new):
    found = rows(pystreams("diff", old, new(("sales.map_values(", "sales.filter(bool).map_values("))))
    verdict, why = found[("store", "letters")]
    assert verdict == "keeps its content, which was computed in another way"
    assert why.endswith("is new before it")


def test_what_only_reads_a_store_changes_nothing_in_it(pystreams, old, new):
    join = 'sales.join(app.table("x", key=str, value=str), lambda a, b: a, value=int)'
    more = ('name="names")', f'name="names")\n{join}\napp.stream("y", key=str, value=str)')
    joined = (
        'name="names")',
        'name="names").group_by(lambda k, v: (v, k), key=str, value=str).count(name="by")',
    )
    for change in (more, joined):
        found = rows(pystreams("diff", old, new(change)))
        assert found[("store", "names")][0] == "keeps its content"
        assert found[("store", "sold")][0] == "keeps its content"


def test_another_name_of_a_repartition_topic_changes_nothing_in_the_store(pystreams, old, new):
    found = rows(
        pystreams("diff", old, new(("letters.group_by_key()", 'letters.group_by_key(repartition="l")')))
    )
    assert found[("store", "letters")] == ["keeps its content", ""]
    assert found[("repartition topic", "shop-l-repartition")][0] == "is new"
    assert found[("repartition topic", "shop-letters-repartition")][0] == "is not used any more"


def test_a_table_that_is_restored_from_its_topic_needs_that_compacted(pystreams, old, new):
    on = new(('App("shop")', 'App("shop", topology_optimization="all")'))
    verdict, why = rows(pystreams("diff", old, on))[("store", "names")]
    assert verdict == "keeps its content"
    assert why.startswith("it will be restored from articles, which must be compacted")
    assert rows(pystreams("diff", on, old))[("store", "names")] == [
        "loses its content",
        "it was restored from articles: its new changelog does not have those rows",
    ]


def test_tasks_with_other_numbers_are_restored(pystreams, old, new):
    found = rows(pystreams("diff", old, new(FIRST)))
    assert found[("store", "sold")] == [
        "keeps its content",
        "it is restored from its changelog first, because its tasks change from 0_… to 1_…",
    ]


@pytest.mark.parametrize(
    ("was", "now", "verdict", "why"),
    [
        (
            [UNLOGGED],
            [UNLOGGED, FIRST],
            "loses its content",
            "it has no changelog, and its tasks change from 0_… to 1_…, which have other folders",
        ),
        (
            [UNLOGGED],
            [UNLOGGED, OTHER],
            "keeps its content",
            "but only where its files are: it has no changelog",
        ),
        ([IN_MEMORY], [IN_MEMORY, OTHER], "loses its content", "it is in memory, and has no changelog"),
        ([UNLOGGED], [IN_MEMORY, OTHER], "loses its content", "it will be in memory, and has no changelog"),
    ],
)
def test_a_store_without_a_changelog_has_what_its_folder_has(pystreams, new, folder, was, now, verdict, why):
    old_json = pystreams("describe", new(*was), "--format", "json").out
    (folder / "was.json").write_text(old_json, encoding="utf-8")
    found = rows(pystreams("diff", "was.json", new(*now)))
    assert found[("store", "sold")] == [verdict, why]


def test_windows_of_another_size_and_another_grace(pystreams, new, folder):
    windows = (
        "sales.group_by_key().count",
        "sales.group_by_key().windowed_by(TimeWindows.tumbling({})).count",
    )
    imported = ("import App", "import App, TimeWindows")

    def windowed(told, kept="90_000"):
        retention = ('name="sold"', f'name="sold", retention={kept}')
        described = new(imported, (windows[0], windows[1].format(told)), retention)
        return pystreams("describe", described, "--format", "json").out

    for name, told in (
        ("was", ["10"]),
        ("size", ["20"]),
        ("grace", ["10, grace=5"]),
        ("less", ["10", "60_000"]),
    ):
        (folder / f"{name}.json").write_text(windowed(*told), encoding="utf-8")
    assert rows(pystreams("diff", "was.json", "size.json"))[("store", "sold")] == [
        "must be built anew",
        "its windows change from 10 to 20 ms",
    ]
    verdict, why = rows(pystreams("diff", "was.json", "grace.json"))[("store", "sold")]
    assert verdict == "keeps its content, which was computed in another way"
    assert why.endswith("grace_ms 0 becomes 5")
    verdict, why = rows(pystreams("diff", "was.json", "less.json"))[("store", "sold")]
    assert verdict == "loses a part of its content"
    assert why == "windows older than 60000 ms are deleted: its retention was 90000 ms"
    assert rows(pystreams("diff", "less.json", "was.json"))[("store", "sold")] == ["keeps its content", ""]


def test_outputs_are_reported(pystreams, old, new):
    found = rows(pystreams("diff", old, new(("sales.group_by_key", 'sales.to("copy")\nsales.group_by_key'))))
    assert found[("output", "copy")] == ["is new", "the topic must exist"]
    back = rows(pystreams("diff", new(("sales.group_by_key", 'sales.to("copy")\nsales.group_by_key')), old))
    assert back[("output", "copy")][0] == "is not used any more"


def test_inputs_and_repartition_topics_are_reported(pystreams, old, new):
    found = rows(
        pystreams("diff", old, new(('"sales", key', '"orders", key'), ('name="letters"', 'name="first"')))
    )
    assert found[("input", "orders")][0] == "is new"
    assert found[("input", "sales")][0] == "is not used any more"
    assert found[("repartition topic", "shop-letters-repartition")][0] == "is not used any more"


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


def test_stores_that_are_to_keep_headers_keep_their_content(pystreams, old, new):
    found = pystreams("diff", old, new(('App("shop")', 'App("shop", dsl_store_format="HEADERS")')))
    for store in ("sold", "letters", "names"):
        verdict, why = rows(found)[("store", store)]
        assert verdict == "keeps its content"
        assert why == "its values are rewritten with headers when it is opened"
    assert "one member at a time" in found.err
    assert "reset" not in found.err
