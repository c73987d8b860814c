"""What stands on the command line becomes an application, or an answer that helps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pystreams import App, Topology
from pystreams.cli.application.loading import load_application
from pystreams.errors import AppLoadError

PROGRAM = "from pystreams import App\n{name} = App({name!r})\n{name}.stream('in', value=str).to('out')\n"


@pytest.fixture
def program(folder):
    """Writes a Python file into the folder."""

    def write(path: str, text: str) -> Path:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(reference: str) -> str:
    with pytest.raises(AppLoadError) as refused:
        load_application(reference)
    return str(refused.value)


@pytest.mark.parametrize(
    "reference", ["jobs.orders", "jobs.orders:app", "jobs/orders.py", "jobs/orders.py:app"]
)
def test_a_module_an_attribute_and_a_file_name_the_same(program, reference):
    program("jobs/orders.py", PROGRAM.format(name="app"))
    assert load_application(reference).name == "app"


def test_the_only_application_needs_no_name(program):
    program("lonely.py", PROGRAM.format(name="orders"))
    assert load_application("lonely").name == "orders"


def test_app_is_taken_among_several(program):
    program("several_with_app.py", PROGRAM.format(name="other") + PROGRAM.format(name="app"))
    assert load_application("several_with_app").name == "app"


def test_several_without_app_are_listed(program):
    program("several.py", PROGRAM.format(name="orders") + PROGRAM.format(name="refunds"))
    text = refusal("several")
    assert "found orders, refunds" in text
    assert "several:orders" in text


def test_a_second_name_for_the_same_application_is_no_second_application(program):
    program("alias.py", PROGRAM.format(name="orders") + "same = orders\n")
    assert isinstance(load_application("alias"), App)


def test_a_topology_is_an_application(program):
    program("plain.py", "from pystreams import StreamsBuilder\ntopology = StreamsBuilder().build()\n")
    assert isinstance(load_application("plain"), Topology)


def test_a_misspelt_module_is_answered_with_the_nearest(program):
    program("jobs/orders.py", PROGRAM.format(name="app"))
    text = refusal("jobs.oders")
    assert "There is no module jobs.oders" in text
    assert "did you mean jobs.orders?" in text
    assert "did you mean jobs?" in refusal("jbos.orders")


def test_a_folder_that_is_on_the_path_twice_is_named_once(program, monkeypatch):
    program("twice/orders.py", PROGRAM.format(name="app"))
    monkeypatch.syspath_prepend("")
    assert f"looked in {Path.cwd() / 'twice'}\n" in refusal("twice.oders") + "\n"


def test_a_misspelt_file_is_answered_with_the_nearest(program):
    program("jobs/orders.py", PROGRAM.format(name="app"))
    assert "did you mean orders.py?" in refusal("jobs/oders.py")
    assert "the folder nowhere does not exist" in refusal("nowhere/orders.py")


def test_a_module_taken_for_a_package_is_explained(program):
    program("orders_module.py", PROGRAM.format(name="app"))
    assert "orders_module:app" in refusal("orders_module.app")


def test_a_misspelt_attribute_is_answered_with_what_is_there(program):
    program("attributes.py", PROGRAM.format(name="orders"))
    text = refusal("attributes:oders")
    assert "applications found in it: orders" in text
    assert "did you mean orders?" in text


def test_an_attribute_that_is_no_application_is_named(program):
    program("not_an_app.py", PROGRAM.format(name="orders") + "limit = 3\n")
    assert "not_an_app:limit is not an application but an int" in refusal("not_an_app:limit")


def test_a_module_without_application_says_how_to_make_one(program):
    program("empty_module.py", "limit = 3\n")
    text = refusal("empty_module")
    assert "it has limit" in text
    assert "App(" in text


def test_text_that_is_no_name_is_explained(folder):
    assert "apps.wordcount" in refusal("my-app")


@pytest.mark.parametrize(
    "text,what",
    [
        ("import no_such_package_anywhere\n", "ModuleNotFoundError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("def f():\n    return missing_name\nf()\n", "NameError"),
    ],
)
def test_a_module_that_fails_shows_the_users_own_line(program, text, what):
    program("failing.py", text)
    shown = refusal("failing")
    assert what in shown
    assert "failing.py:" in shown
    assert "importlib" not in shown
    sys.modules.pop("failing", None)
    assert what in refusal("failing.py")


def test_a_mistake_in_the_topology_keeps_its_own_message(pystreams, program):
    program(
        "wrong_arity.py",
        "from pystreams import App\napp = App('a')\napp.stream('in').map_values(lambda a, b, c: a)\n",
    )
    answered = pystreams("describe", "wrong_arity")
    assert answered.code == 3
    assert "wrong_arity.py:3" in answered.err
    assert "Traceback" not in answered.err


@pytest.mark.parametrize(
    "wrong,hint",
    [
        pytest.param("TimeWindows.tumblin(1)", "did you mean tumbling?", id="similar"),
        pytest.param("TimeWindows.of(1)", "TimeWindows has hopping, tumbling", id="unlike any"),
        pytest.param("Record(1, 2, 3).ort", "Record has headers, key, timestamp, value", id="of an object"),
    ],
)
def test_what_a_class_of_pystreams_lacks_is_answered_with_what_it_has(pystreams, program, wrong, hint):
    name = f"wrong_{wrong.partition('.')[2].partition('(')[0]}"
    program(f"{name}.py", f"import pystreams\npystreams.{wrong}\n")
    answered = pystreams("describe", name)
    assert answered.code == 3
    assert hint in answered.err


def test_an_error_of_pystreams_is_not_answered_with_what_exceptions_have(pystreams, program):
    program("wrong_error.py", "import pystreams\npystreams.TopologyError('x').ort\n")
    assert "has add_note" not in pystreams("describe", "wrong_error").err


def test_every_command_that_takes_an_application_answers_in_the_same_way(pystreams, program):
    program("orders.py", PROGRAM.format(name="app"))
    for command in ("run", "describe", "reset"):
        answered = pystreams(command, "oders")
        assert answered.code == 3
        assert "did you mean orders?" in answered.err
        assert "Traceback" not in answered.err


def test_a_file_of_a_package_that_imports_relative_to_it_is_to_be_run_as_a_module(program):
    program("shop/__init__.py", "")
    program("shop/eu/__init__.py", "")
    program("shop/eu/app.py", "from .model import Sale\n")
    assert "must be named as a module of its package: shop.eu.app" in refusal("shop/eu/app.py")


def test_the_line_that_failed_is_shown_once(pystreams, program):
    program("failing_once.py", "1 / 0\n")
    answered = pystreams("describe", "failing_once")
    assert answered.code == 3
    assert answered.err.count("failing_once.py:1") == 1


def test_of_a_package_whose_module_app_has_the_application_the_module_is_named(program):
    program("rental/__init__.py", "")
    program("rental/app.py", PROGRAM.format(name="app"))
    assert "did you mean rental.app?" in refusal("rental")


def test_a_misspelt_step_is_reported_with_those_that_may_be_meant(program):
    program("misspelt.py", 'from pystreams import App\napp = App("a")\napp.stream("in").map_value(len)\n')
    text = refusal("misspelt")
    assert "'KStream' object has no attribute 'map_value'" in text
    assert "did you mean map_values" in text
