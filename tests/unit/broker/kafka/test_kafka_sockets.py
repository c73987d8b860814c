"""The client of the membership protocol leaves no socket open, whenever and however it ends."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from pystreams.broker.kafka import coordination
from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.errors import BrokerUnavailableError


@contextmanager
def all_closed() -> Iterator[None]:
    """Fails if a socket that was made within is found by the garbage collector."""
    gc.collect()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(warning.message) for warning in found] == []


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        yield listener


def connected_in_vain(address: tuple[str, int]) -> None:
    with pytest.raises(BrokerUnavailableError):
        GroupConnection(KafkaSettings(f"{address[0]}:{address[1]}"), "client", "group")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination, "CONNECT_TIMEOUT_S", 0.5)


def test_where_nobody_listens(listener: socket.socket) -> None:
    address = listener.getsockname()
    listener.close()
    with all_closed():
        connected_in_vain(address)


def test_where_it_is_given_up_before_it_is_connected(listener: socket.socket) -> None:
    address = listener.getsockname()
    with ExitStack() as stack:
        for _ in range(4):  # more than the listener lets wait: who comes after them hangs
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        with all_closed():
            connected_in_vain(address)


def test_where_the_broker_says_nothing(listener: socket.socket) -> None:
    with all_closed():
        connected_in_vain(listener.getsockname())
