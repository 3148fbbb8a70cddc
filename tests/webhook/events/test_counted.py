"""An Event that comes again is counted up where there is one, and made where there is none."""

import asyncio
from typing import Any

import pytest

from tests.webhook.events.refusing import RefusingServer, forbidden
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.events import counted
from webhook.events.counted import CountedEvents, event_name


def event(time: int, name: str = "web.1", message: str = "a") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop", "annotations": {"said": message}},
        "message": "m",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def write(server: Any, *events: dict[str, Any], by: CountedEvents | None = None) -> CountedEvents:
    """Write one after the other; the writer remembers them."""
    writer = by or CountedEvents(server)

    async def run() -> None:
        for one in events:
            await writer.write(one)

    asyncio.run(run())
    return writer


def test_what_comes_again_is_counted_up_with_its_last_time_and_words():
    server = RefusingServer()
    write(server, event(1), event(2), event(3, message="b"))

    assert server.requests == ["create", "merge", "merge"]
    assert server.events == {
        ("shop", "web.1"): event(1, message="b") | {"count": 3, "lastTimestamp": 3}
    }


def test_one_that_has_expired_is_made_anew_and_counted_from_one():
    server = RefusingServer()
    writer = write(server, event(1), event(2))
    server.events.clear()
    write(server, event(3), event(4), by=writer)

    assert server.requests == ["create", "merge", "merge", "create", "merge"]
    assert server.events == {("shop", "web.1"): event(3) | {"count": 2, "lastTimestamp": 4}}


def test_one_that_another_process_made_is_counted_on_from_there():
    """The other process may be an earlier one of ours before a restart."""
    server = RefusingServer()
    server.events["shop", "web.1"] = event(1) | {"count": 7}
    writer = write(server, event(2))

    assert server.requests == ["create", "merge", "merge"]
    assert server.events == {("shop", "web.1"): event(1) | {"count": 8, "lastTimestamp": 2}}

    write(server, event(3), by=writer)
    assert server.requests == ["create", "merge", "merge", "merge"]
    assert server.events == {("shop", "web.1"): event(1) | {"count": 9, "lastTimestamp": 3}}


def test_what_several_processes_count_is_counted_once_for_each():
    server = RefusingServer()
    writer = write(server, event(1))
    other = write(server, event(2))
    write(server, event(3), by=writer)
    write(server, event(4), by=other)

    assert server.events["shop", "web.1"]["count"] == 4


def test_an_event_that_others_count_all_the_time_is_given_up_and_reported():
    server = RefusingServer()
    writer = write(server, event(1))
    merge = server.merge

    async def beaten(*of: Any) -> dict[str, Any]:
        if "count" in of[-1]:
            server.count_elsewhere("shop", "web.1")
        return await merge(*of)

    server.merge = beaten  # type: ignore[method-assign, assignment]
    with pytest.raises(ApiError, match="others count"):
        write(server, event(2), by=writer)


def test_one_that_says_no_count_was_made_once():
    server = RefusingServer()
    server.events["shop", "web.1"] = event(1) | {"count": None}
    write(server, event(2), event(3))
    assert server.events["shop", "web.1"]["count"] == 3


@pytest.mark.parametrize(
    ("refusals", "request_count"),
    [
        ([forbidden()], ["create"]),
        ([ApiUnreachable("gone")], ["create"]),
        ([None, forbidden()], ["create", "merge"]),
        ([None, ApiUnreachable("gone")], ["create", "merge"]),
    ],
    ids=["made", "made by nobody", "counted up", "counted up by nobody"],
)
def test_what_the_api_server_refuses_is_the_callers_to_tell_and_not_asked_again(
    refusals, request_count
):
    server = RefusingServer(*refusals)
    with pytest.raises((ApiError, ApiUnreachable)) as raised:
        write(server, event(1), event(2))

    assert raised.value is refusals[-1]
    assert server.requests == request_count


def test_a_count_that_could_not_be_written_goes_on_where_it_was():
    server = RefusingServer(None, None, ApiUnreachable("gone"))
    writer = CountedEvents(server)  # type: ignore[arg-type]
    with pytest.raises(ApiUnreachable):
        write(server, event(1), event(2), event(3), by=writer)
    write(server, event(4), by=writer)

    assert server.requests == ["create", "merge", "merge", "merge"]
    assert server.events == {("shop", "web.1"): event(1) | {"count": 3, "lastTimestamp": 4}}


def test_of_too_many_the_one_that_was_written_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(counted, "KNOWN_MAX", 2)
    server = RefusingServer()
    writer = write(server, event(1, "a"), event(2, "b"), event(3, "a"), event(4, "c"))
    assert server.requests == ["create", "create", "merge", "create"]

    server.requests.clear()
    write(server, event(5, "a"), event(6, "c"), event(7, "b"), by=writer)
    assert server.requests == ["merge", "merge", "create", "merge", "merge"], (
        "b is there, and nobody knew it"
    )
    assert {name: one["count"] for (_, name), one in server.events.items()} == {
        "a": 3,
        "b": 2,
        "c": 2,
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("web", "web.0123"),
        ("system:Node", "system-node.0123"),
        ("", "0123"),
        ("a.-", "a.0123"),
        ("x" * 253, f"{'x' * 248}.0123"),
        (f"{'x' * 247}-{'y' * 5}", f"{'x' * 247}.0123"),
    ],
    ids=["plain", "of RBAC", "none", "ends in signs", "long", "cut at a sign"],
)
def test_an_events_name_is_one_that_the_api_server_takes(name, found):
    assert event_name(name, "0123") == found
