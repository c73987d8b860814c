"""The programs that are changed, and the changes: what ``diff`` says of each, what ``run`` does, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

#: Sums by key.
ACCOUNTS = """
from dataclasses import dataclass

from pystreams import App
from pystreams.serde import MsgpackSerde


@dataclass
class Account:
    cents: int = 0
    sales: int = 0


def booked(account, amount):
    return Account(account.cents + amount, account.sales + 1)


app = App("shop")
sales = app.stream("sales", key=str, value=int)
accounts = sales.group_by_key().aggregate(Account, booked, value=Account, name="sums")
accounts.to_stream().map_values(lambda account: str(account), value=str).to("totals")
"""

#: Two streams, each with a store, the first of which is not looked at.
COUNTED = 'app.stream("sales2", key=str, value=int).group_by_key().count(name="others")\n'
BOOKED = ACCOUNTS[ACCOUNTS.index("sales = ") :]
BRANCHES = ACCOUNTS.replace(BOOKED, COUNTED + BOOKED)

#: Counts by key and window.
WINDOWS = """
from pystreams import App, TimeWindows

app = App("shop")
sales = app.stream("sales", key=str, value=int)
windows = TimeWindows.tumbling(60_000)
counted = sales.group_by_key().windowed_by(windows).count(name="sums", retention=7_200_000)
counted.to_stream().map(lambda window, count: (window.key, str(count)), key=str, value=str).to("totals")
"""

#: Counts by another key, behind a repartition topic, in stores without names.
PARTS = """
from pystreams import App

app = App("shop")
sales = app.stream("sales", key=str, value=int)
by_letter = sales.select_key(lambda key, value: key[:1], key=str)
letters = by_letter.repartition(name="letters", partitions=2)
letters.group_by_key().count(name="sums").to_stream().map_values(str, value=str).to("totals")
"""

#: A processor with a store of its own.
PROCESSOR = """
from pystreams import App, Processor, Stores

STORE = Stores.key_value_store("sums", str, int)


class Sum(Processor):
    def init(self, context):
        self.context, self.sums = context, context.store("sums")

    def process(self, record):
        self.sums.put(record.key, (self.sums.get(record.key) or 0) + record.value)
        self.context.forward(record.with_value(str(self.sums.get(record.key))))


app = App("shop")
sales = app.stream("sales", key=str, value=int)
sales.process(Sum, stores=[STORE], key=str, value=str).to("totals")
"""


@dataclass(frozen=True)
class Change:
    """One way to change a program, and what comes of it.

    ``replaced`` are texts of the program and what stands there instead. ``diff`` is the exit code. ``left`` is what the
    next record finds: the output for a sale of 5 after one of 100. Where the start is ``refused``, the text names the
    reason; ``accepted`` is what is left with ``--accept-loss``, None if that does not help.
    """

    what: str
    program: str
    replaced: tuple[tuple[str, str], ...]
    diff: int
    left: str = ""
    refused: str = ""
    accepted: str | None = None
    store: str = "sums"
    #: What the page says of the state.
    told: str = ""

    @property
    def name(self) -> str:
        return self.what.replace("`", "").replace(" ", "-")

    @property
    def row(self) -> tuple[str, ...]:
        """As the page has it."""
        run = "starts"
        if self.refused:
            run = "refuses" if self.accepted is None else "refuses, unless `--accept-loss`"
        return self.what, str(self.diff), run, self.told

    def changed(self) -> str:
        program = self.program
        for was, now in self.replaced:
            assert was in program, was
            program = program.replace(was, now)
        return program


KEPT = "Account(cents=105, sales=2)"
ANEW = "Account(cents=5, sales=1)"

CHANGES = (
    Change(
        "the body of a function",
        ACCOUNTS,
        (("+ amount", "+ 2 * amount"),),
        0,
        "Account(cents=110, sales=2)",
        told="kept; the new function processes new records",
    ),
    Change(
        "the name of a class",
        ACCOUNTS,
        (("Account", "Wallet"),),
        0,
        "Wallet(cents=105, sales=2)",
        told="kept: names of classes are not stored",
    ),
    Change(
        "caches and commits",
        ACCOUNTS,
        (('App("shop")', 'App("shop", commit_interval_ms=50, statestore_cache_max_bytes=0)'),),
        0,
        KEPT,
        told="kept",
    ),
    Change(
        "a store's `cached=`", ACCOUNTS, (('name="sums"', 'name="sums", cached=False'),), 0, KEPT, told="kept"
    ),
    Change(
        "topic settings of a changelog",
        ACCOUNTS,
        (('name="sums"', 'name="sums", changelog_config={"segment.ms": "60000"}'),),
        0,
        KEPT,
        told="kept; a topic that exists keeps its settings (`pystreams topics alter`)",
    ),
    Change(
        "the name of a step", ACCOUNTS, (('name="sums"', 'name="sums", step="book"'),), 2, KEPT, told="kept"
    ),
    Change(
        "a new step after a store",
        ACCOUNTS,
        (("accounts.to_stream()", "accounts.to_stream().filter(lambda key, value: True)"),),
        2,
        KEPT,
        told="kept",
    ),
    Change(
        "a new step before a store",
        ACCOUNTS,
        (("sales.group", "sales.filter(lambda key, value: value < 50).group"),),
        2,
        KEPT,
        told="kept; values stored before have not passed the new step",
    ),
    Change(
        "a new stream before others",
        ACCOUNTS,
        (("int)\naccounts", 'int)\napp.stream("sales2", key=str, value=int).to("copies")\naccounts'),),
        2,
        KEPT,
        told="kept if stores have names; tasks get other numbers, so their stores are restored once",
    ),
    Change(
        "the order of steps",
        BRANCHES,
        ((COUNTED + BOOKED, BOOKED + COUNTED),),
        2,
        KEPT,
        told="kept if stores have names; tasks get other numbers, so their stores are restored once",
    ),
    Change(
        "a new field with a default",
        ACCOUNTS,
        (("sales: int = 0", 'sales: int = 0\n    note: str = ""'),),
        2,
        "Account(cents=105, sales=2, note='')",
        told="kept; old values have the default",
    ),
    Change(
        "a new field without a default",
        ACCOUNTS,
        (
            (
                "class Account:\n    cents: int = 0\n    sales: int = 0",
                "class Account:\n    owner: str\n    cents: int = 0\n    sales: int = 0",
            ),
            ("return Account(", 'return Account("me", '),
            ("(Account, booked", '(lambda: Account("me"), booked'),
        ),
        1,
        refused="owner",
        accepted="Account(owner='me', cents=5, sales=1)",
        told="old values cannot be read; accepted: the store starts empty",
    ),
    Change(
        "a removed field",
        ACCOUNTS,
        (("    sales: int = 0\n", ""), (", account.sales + 1", "")),
        1,
        refused="sales",
        accepted="Account(cents=105)",
        told="accepted: kept without the field",
    ),
    Change(
        "a renamed field",
        ACCOUNTS,
        (("cents", "euros"),),
        1,
        refused="cents",
        accepted="Account(euros=5, sales=2)",
        told="accepted: kept; the new field has its default",
    ),
    Change(
        "a renamed field that keeps its name in the bytes",
        ACCOUNTS,
        (
            ("cents", "euros"),
            ("from dataclasses import dataclass", "import msgspec"),
            ("@dataclass\nclass Account:", "class Account(msgspec.Struct):"),
            ("euros: int = 0", 'euros: int = msgspec.field(default=0, name="cents")'),
        ),
        0,
        "Account(euros=105, sales=2)",
        told="kept: see [rename a field](how-to/schema-changes.md#rename-a-field)",
    ),
    Change(
        "a wider type: `int` to `float`",
        ACCOUNTS,
        (("cents: int = 0", "cents: float = 0"),),
        2,
        "Account(cents=105.0, sales=2)",
        told="kept",
    ),
    Change(
        "another type: `int` to `str`",
        ACCOUNTS,
        (("cents: int = 0", 'cents: str = ""'), ("account.cents + amount", "account.cents + str(amount)")),
        1,
        refused="cents",
        accepted="Account(cents='5', sales=1)",
        told="old values cannot be read; accepted: the store starts empty",
    ),
    Change(
        "a serde: JSON to msgpack",
        ACCOUNTS,
        (("value=Account", "value=MsgpackSerde(Account)"),),
        1,
        refused="sums",
        accepted=ANEW,
        told="old values cannot be read; accepted: the store starts empty",
    ),
    Change(
        "the type of keys",
        ACCOUNTS,
        (("key=str, value=int)\nacc", "key=bytes, value=int)\nacc"),),
        1,
        refused="key",
        accepted=ANEW,
        told="new records never find the old keys; accepted: the store starts empty",
    ),
    Change(
        "the name of a store",
        ACCOUNTS,
        (('name="sums"', 'name="revenue"'),),
        1,
        refused="sums",
        accepted=ANEW,
        told="accepted: the old content is deleted, the new store is empty",
    ),
    Change(
        "the name of a store, with `was=`",
        ACCOUNTS,
        (('name="sums"', 'name="revenue", was="sums"'),),
        2,
        KEPT,
        told="kept: copied to the new name",
    ),
    Change(
        "a removed store",
        ACCOUNTS,
        (
            ('accounts = sales.group_by_key().aggregate(Account, booked, value=Account, name="sums")\n', ""),
            (
                "accounts.to_stream().map_values(lambda account: str(account), value=str)",
                "sales.map_values(str, value=str)",
            ),
        ),
        1,
        refused="sums",
        accepted="5",
        told="accepted: its changelog is deleted",
    ),
    Change(
        "a store in memory",
        ACCOUNTS,
        (('name="sums"', 'name="sums", persistent=False'),),
        2,
        KEPT,
        told="kept: restored from the changelog at each start",
    ),
    Change(
        "a store without a changelog",
        ACCOUNTS,
        (('name="sums"', 'name="sums", logged=False'),),
        1,
        refused="sums",
        accepted=ANEW,
        told="accepted: the store starts empty",
    ),
    Change(
        "the kind of a store",
        WINDOWS,
        (
            ('.windowed_by(windows).count(name="sums", retention=7_200_000)', '.count(name="sums")'),
            (
                ".map(lambda window, count: (window.key, str(count)), key=str, value=str)",
                ".map_values(str, value=str)",
            ),
        ),
        1,
        refused="sums",
        accepted="1",
        told="accepted: the store starts empty",
    ),
    Change(
        "the size of windows",
        WINDOWS,
        (("tumbling(60_000)", "tumbling(120_000)"),),
        1,
        refused="120000",
        accepted="1",
        told="accepted: the store starts empty",
    ),
    Change(
        "the grace of windows",
        WINDOWS,
        (("tumbling(60_000)", "tumbling(60_000, grace=5_000)"),),
        2,
        "2",
        told="kept",
    ),
    Change(
        "the retention of windows, longer",
        WINDOWS,
        (("7_200_000", "14_400_000"),),
        2,
        "2",
        told="kept",
    ),
    Change(
        "the retention of windows, shorter",
        WINDOWS,
        (("7_200_000", "3_600_000"),),
        1,
        refused="windows older than 3600000 ms are deleted",
        accepted="2",
        told="accepted: kept without the windows that are older than the retention",
    ),
    Change(
        "partitions of a repartition topic",
        PARTS,
        (("partitions=2", "partitions=4"),),
        1,
        refused="shop-letters-repartition",
        told="keys would be in other partitions; `pystreams reset` is the only way",
    ),
    Change(
        "a processor's store, with `was=`",
        PROCESSOR,
        (
            ('"sums", str, int', '"revenue", str, int, was="sums"'),
            ('store("sums")', 'store("revenue")'),
        ),
        2,
        "105",
        told="kept: copied to the new name",
    ),
)
