"""A connection's answers, as bytes arrive: in parts, and beside another one's."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from webhook.external_data.connection import ProviderConnection, WholeAnswer, read_buffer

FIRST, SECOND = b'{"response": {"first": 1}}', b'{"response": {"second": 2}}'


def answer(body: bytes) -> bytes:
    """As a provider sends it."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def arrive(connection: ProviderConnection, data: bytes) -> None:
    """Hand bytes to a connection, as a transport does."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


@pytest.mark.parametrize("cut", [1, 20, 45, 60])
def test_connections_that_read_to_one_buffer_keep_their_answers_apart(cut: int) -> None:
    async def main() -> tuple[WholeAnswer, WholeAnswer]:
        buffer = read_buffer()
        transport = SimpleNamespace(write=lambda _: None, abort=lambda: None)
        one, other = ProviderConnection(buffer), ProviderConnection(buffer)
        for connection in (one, other):
            connection.connection_made(cast("asyncio.Transport", transport))
        waits = one.post(b"", lambda: None), other.post(b"", lambda: None)
        arrive(one, answer(FIRST)[:cut])
        arrive(other, answer(SECOND)[:cut])
        arrive(one, answer(FIRST)[cut:])
        arrive(other, answer(SECOND)[cut:])
        return await waits[0], await waits[1]

    answers = asyncio.run(main())
    assert answers == (WholeAnswer(200, FIRST, False), WholeAnswer(200, SECOND, False))


def test_an_answer_is_larger_than_what_is_read_at_once() -> None:
    body = bytes(range(256)) * 1024

    async def main() -> WholeAnswer:
        connection = ProviderConnection(read_buffer())
        transport = SimpleNamespace(write=lambda _: None, abort=lambda: None)
        connection.connection_made(cast("asyncio.Transport", transport))
        waits = connection.post(b"", lambda: None)
        data, size = answer(body), len(connection.get_buffer(-1))
        for at in range(0, len(data), size):
            arrive(connection, data[at : at + size])
        return await waits

    assert asyncio.run(main()).body == body
