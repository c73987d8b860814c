"""Each way to change a program: what ``diff`` says, what ``run`` does, and what is left of the state of a real run."""

from __future__ import annotations

import json

import pytest

from tests.cli.changes.programs import CHANGES, Change


@pytest.fixture
def shop(folder, pystreams):
    """Topics, and what writes to them and reads them."""
    assert pystreams("topics", "create", "sales", "sales2", "totals", "copies").code == 0
    return Shop(folder, pystreams)


class Shop:
    def __init__(self, folder, pystreams):
        self.folder = folder
        self.pystreams = pystreams

    def write(self, name: str, program: str) -> str:
        (self.folder / f"{name}.py").write_text(program, encoding="utf-8")
        return f"{name}.py"

    def sell(self, amount: int) -> None:
        sold = self.pystreams(
            "produce",
            "sales",
            *("-k", "=", "--value-type", "int", "--timestamp", "2024-05-01T10:00:00Z"),
            stdin=f"anna={amount}\n",
        )
        assert sold.code == 0, sold.err

    def run(self, program: str, *options: str):
        return self.pystreams("run", program, "--until-caught-up", "--allow-expired", *options)

    def total(self) -> str:
        return self.pystreams("consume", "totals", "--value-type", "str").lines[-1].split("\t")[-1]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change(change: Change, shop: Shop):
    old, new = shop.write("old_version", change.program), shop.write("new_version", change.changed())
    shop.sell(100)
    assert shop.run(old).code == 0
    first = shop.total()
    compared = shop.pystreams("diff", new, "--json")
    assert compared.code == change.diff, compared
    assert json.loads(compared.out)["exit_code"] == change.diff
    shop.sell(5)
    ran = shop.run(new)
    if not change.refused:
        assert ran.code == 0, ran.err
        assert shop.total() == change.left
        # What was carried over once is not carried over again.
        assert shop.run(new).code == 0
        assert shop.pystreams("diff", new, "--json").code == 0
        return
    assert ran.code == 3, ran.err
    assert change.refused in ran.err
    assert shop.total() == first
    # Nothing was touched: the old version goes on. It is not run, for the next record is the new one's.
    assert shop.pystreams("diff", old, "--json").code == 0
    options = ("--accept-loss", change.store)
    accepted = shop.run(new, *options)
    if change.accepted is None:
        assert accepted.code != 0
        return
    assert accepted.code == 0, accepted.err
    assert shop.total() == change.accepted
    # It is as if the new version had always been there, and to say it again does no harm.
    assert shop.run(new).code == 0
    assert shop.run(new, *options).code == 0
