"""Connections that are read one after the other."""

import asyncio

from webhook.server.http.large_bodies import AT_ONCE_BYTES_MAX, LargeBodies
from webhook.server.http.read_queue import Turns


class Reader:
    """Notes when it is read."""

    def __init__(self, name: str, read: list[str]) -> None:
        self.name = name
        self.read = read

    def read_more(self) -> None:
        self.read.append(self.name)

    def let_in(self, size: int) -> None:
        self.read.append(f"{self.name} has {size}")


def test_of_those_that_wait_one_is_read_at_a_time_in_their_order() -> None:
    async def run() -> list[list[str]]:
        read: list[str] = []
        turns = Turns()
        for name in ("first", "second", "third"):
            turns.wait(Reader(name, read))
        seen = [list(read)]
        while len(read) < 3:
            await asyncio.sleep(0)
            if len(read) == len(seen):
                seen.append(list(read))
        return seen

    assert asyncio.run(run()) == [[], ["first"], ["first", "second"], ["first", "second", "third"]]


def test_a_large_body_is_alone_until_another_has_a_place() -> None:
    large = LargeBodies(100)
    read: list[str] = []
    assert large.reserve(Reader("first", read), 60)
    assert large.is_alone(60)
    assert large.reserve(Reader("second", read), 40)
    assert not large.is_alone(60)
    assert not large.reserve(Reader("third", read), 20)
    large.release(60)
    assert read == ["third has 20"]
    large.release(40)
    assert large.is_alone(20)


def test_the_smallest_that_waits_for_a_place_is_the_next_and_a_few_have_places_besides() -> None:
    large = LargeBodies(80)
    read: list[str] = []
    assert large.reserve(Reader("first", read), 80)
    assert not large.reserve(Reader("largest", read), 80)
    assert not large.reserve(Reader("larger", read), 40)
    assert not large.reserve(Reader("large", read), 20)
    assert large.reserve(Reader("small", read), 10)
    assert not large.reserve(Reader("another", read), 10)
    large.release(80)
    assert read == ["another has 10", "large has 20", "larger has 40"]


def test_a_body_beyond_the_usual_size_is_read_in_turns_even_when_it_is_alone() -> None:
    large = LargeBodies(2 * AT_ONCE_BYTES_MAX)
    assert large.reserve(Reader("usual", []), AT_ONCE_BYTES_MAX)
    assert large.is_read_at_once(AT_ONCE_BYTES_MAX)
    large.release(AT_ONCE_BYTES_MAX)
    assert large.reserve(Reader("larger", []), AT_ONCE_BYTES_MAX + 1)
    assert not large.is_read_at_once(AT_ONCE_BYTES_MAX + 1)
