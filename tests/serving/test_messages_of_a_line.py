"""Messages between two processes come out whole and in order, in whatever pieces their bytes come."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pystreams.serving.stores.lines import _LENGTH_BYTES, _READ_BYTES, _Inbox
from tests.serving.asyncio_kit import run_apart

#: Lengths of messages: short ones, and some that need several reads.
LENGTHS = st.lists(st.integers(0, 40) | st.integers(_READ_BYTES - 10, 3 * _READ_BYTES), max_size=8)


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(_LENGTH_BYTES) + message


async def taken(pieces: list[bytes]) -> list[bytes]:
    """The messages of a line that ends after these pieces."""
    reader = asyncio.StreamReader()

    async def feed() -> None:
        for piece in pieces:
            reader.feed_data(piece)
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.create_task(feed())
    inbox, found = _Inbox(reader), []
    try:
        while True:
            some = await inbox.take()
            assert some
            found += some
    except EOFError:
        await feeding
        return found


@given(lengths=LENGTHS, data=st.data())
def test_messages_are_whole_and_in_order(lengths: list[int], data: st.DataObject) -> None:
    messages = [bytes([number + 1]) * length for number, length in enumerate(lengths)]
    stream = b"".join(map(framed, messages))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    pieces = [stream[begin:end] for begin, end in pairwise([0, *cuts, len(stream)])]
    assert run_apart(taken(pieces)) == messages


def test_half_a_message_at_the_end_is_none() -> None:
    assert run_apart(taken([framed(b"whole"), framed(b"half")[:-1]])) == [b"whole"]


def test_who_has_much_to_read_lets_others_have_their_turn() -> None:
    async def turns_of_others() -> int:
        reader = asyncio.StreamReader()
        reader.feed_data(framed(b"message") * (4 * _READ_BYTES))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        inbox = _Inbox(reader)
        for _ in range(10):
            await inbox.take()
        task.cancel()
        return turns

    assert run_apart(turns_of_others()) >= 9
