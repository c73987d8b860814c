"""The dead letters of a backfill are replayed to the application that continues it, each once, as those of a run."""

from __future__ import annotations

from tests.cli.dlq.dlq_kit import create, read

SHOP = """
from pystreams import App

app = App("filled", processing_exception_handler="dead_letter", errors_dead_letter_queue_topic_name="dead")
prices = app.stream("prices", key=str, value=str).select_key(lambda key, value: key[0], key=str)
prices.repartition(name="r", key=str, value=str).map_values(PARSE, step="cents", value=int).group_by_key().reduce(
    max, name="highest"
).to_stream().to("highest")
"""


def test_they_return_to_the_application_that_continues_it(pystreams, folder):
    create("prices", "highest", "dead", partitions=2)
    pystreams("produce", "prices", "--key-separator", "=", stdin="tea=4\ntea=f\ncake=3\ncake=x\n")
    program = folder / "filled_shop.py"
    program.write_text(SHOP.replace("PARSE", "int"), encoding="utf-8")
    options = ("--source", "embedded", "--emit", "topic", "--hand-over", "embedded")
    filled = pystreams("backfill", "filled_shop.py", "--master", "none", *options)
    assert filled.code == 0, filled.err
    listed = pystreams("dlq", "list", "dead")
    assert [line.split("\t")[:4] for line in listed.lines] == [
        ["cents", "ValueError", "filled-r-repartition", "2"]
    ]
    program.write_text(SHOP.replace("PARSE", "lambda text: int(text, 16)"), encoding="utf-8")
    assert pystreams("dlq", "replay", "dead", "--yes").lines == ["2\tto filled-r-repartition"]
    assert pystreams("run", "filled_shop.py", "--until-caught-up").code == 0
    assert {record["key"]: record["value"] for record in read(pystreams, "highest")} == {"t": 15, "c": 3}
    (line,) = pystreams("dlq", "list", "dead").lines
    assert line.split("\t")[3:6] == ["3", "2", "1"]
