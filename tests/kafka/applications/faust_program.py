"""A Faust application, run as a process of its own: it writes orders, and tells what it reads of totals.

python -m tests.kafka.applications.faust_program BOOTSTRAP_SERVERS write NUMBER
python -m tests.kafka.applications.faust_program BOOTSTRAP_SERVERS read NUMBER
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from decimal import Decimal

import faust


class Line(faust.Record):
    sku: str
    count: int


class Order(faust.Record, coerce=True):
    id: int
    at: datetime
    price: Decimal
    lines: list[Line]


class Total(faust.Record, serializer="json"):
    sku: str
    count: int


def order(number: int) -> Order:
    return Order(
        id=number,
        at=datetime.fromtimestamp(1_700_000_000 + number, UTC),
        price=Decimal(number).scaleb(-2),
        lines=[Line(f"sku-{number % 3}", number), Line("sku-0", 1)],
    )


def application(servers: str, folder: str) -> faust.App:
    """``folder`` is where it keeps what it has."""
    return faust.App(
        "theirs",
        datadir=folder,
        broker=f"kafka://{servers}",
        store="memory://",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
    )


async def write(app: faust.App, number: int) -> None:
    orders = app.topic("orders", key_type=str, value_type=Order)
    async with app.producer:
        for n in range(number):
            await (await orders.send(key=f"order-{n}", value=order(n)))


def read(app: faust.App, number: int) -> None:
    """Print totals until so many were read."""
    totals = app.topic("totals", key_type=str, value_type=Total)

    @app.agent(totals)
    async def tell(stream: faust.Stream[Total]) -> None:
        read = 0
        async for key, total in stream.items():
            print(key, type(total).__name__, total.sku, total.count, flush=True)
            read += 1
            if read == number:
                app.worker_stop.set()  # type: ignore[attr-defined]

    async def work() -> None:
        app.worker_stop = asyncio.Event()  # type: ignore[attr-defined]
        async with app:
            await app.worker_stop.wait()  # type: ignore[attr-defined]

    asyncio.run(work())


if __name__ == "__main__":
    servers, what, number = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        app = application(servers, folder)
        if what == "write":
            asyncio.run(write(app, int(number)))
        else:
            read(app, int(number))
