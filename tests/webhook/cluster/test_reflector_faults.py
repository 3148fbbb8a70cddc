"""The reflector and faults that a real API server cannot be made to show."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.config_maps import CONFIG_MAP, PAGES
from tests.webhook.cluster.fault_server import error_event, event, listed, obj, scripted, status
from tests.webhook.cluster.recording import Recorder, running
from webhook.api.encoding import encode
from webhook.cluster.client import RETRY_AFTER_SECONDS_MAX, ClusterClient
from webhook.cluster.errors import ApiError
from webhook.cluster.reflector import Reflector
from webhook.cluster.store import slim
from webhook.log import Log

NOBODY: Any = None
"""For what is never asked here."""


END = {"annotations": {"k8s.io/initial-events-end": "true"}}


def play(folder, *script, settings=PAGES, transform=slim, lines=None):
    """Run a reflector until the script is played; what it told, its counts, and the requests.

    ``lines`` receives its log.
    """

    async def run():
        log = Log((lines if lines is not None else []).append).logger("cluster")
        async with scripted(folder, *script) as (server, credentials):
            async with ClusterClient(credentials, log=log) as client:
                seen = Recorder()
                reflector = Reflector(
                    client, CONFIG_MAP, seen, settings=settings, transform=transform
                )
                async with running(reflector), asyncio.timeout(PATIENCE_SECONDS):
                    await server.done.wait()
            return seen, reflector.statistics(), [query for _, query in server.requests]

    return asyncio.run(run())


def test_a_torn_watch_goes_on_where_it_stopped(tmp_path):
    seen, found, requests = play(
        tmp_path,
        listed(obj("a", 1), version=1),
        (200, [event("ADDED", "b", 2), event("ADDED", "c", 3)[:20]], "tear"),
        (200, [event("ADDED", "c", 3)], "end"),
    )
    assert seen.changes == [("set", "a"), ("synced", ""), ("set", "b"), ("set", "c")]
    assert [query.get("resourceVersion") for query in requests] == [None, "1", "2", "3"]
    assert found.lists == 1


def test_an_error_is_over_with_the_next_event(tmp_path):
    """Whoever asks whether a watch is behind hears of an error only until the watch goes on."""

    async def run():
        script = (
            listed(obj("a", 1), version=1),
            (200, [event("ADDED", "b", 2), event("ADDED", "c", 3)[:20]], "tear"),
            (200, [event("ADDED", "c", 3)], "hang"),
        )
        async with (
            scripted(tmp_path, *script) as (_, credentials),
            ClusterClient(credentials) as client,
        ):
            seen = Recorder()
            reflector = Reflector(client, CONFIG_MAP, seen, settings=PAGES)
            async with running(reflector), asyncio.timeout(PATIENCE_SECONDS):
                while ("set", "c") not in seen.changes:  # noqa: ASYNC110  # a list has no event
                    await asyncio.sleep(0.01)
                return reflector.statistics()

    found = asyncio.run(run())
    assert (found.errors, found.last_error) == (1, "")


def test_an_event_that_comes_again_is_reported_once(tmp_path):
    seen, _, _ = play(
        tmp_path,
        listed(obj("a", 5), version=5),
        (
            200,
            [event("ADDED", "a", 5), event("MODIFIED", "a", 6), event("MODIFIED", "a", 6)],
            "end",
        ),
    )
    assert seen.changes == [("set", "a"), ("synced", ""), ("set", "a")]


def test_a_connection_that_says_nothing_is_given_up_and_all_is_listed_anew(tmp_path):
    """A watch of a history that is no more says nothing either; one more may be given up."""

    async def run():
        both = listed(obj("a", 2), obj("b", 3), version=3)
        script = (
            listed(version=1),
            (200, [event("ADDED", "a", 2)], "hang"),
            *[both, (200, [], "hang")] * 100,
        )
        async with (
            scripted(tmp_path, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            seen = Recorder()
            settings = replace(PAGES, inactivity_seconds=0.3)
            reflector = Reflector(client, CONFIG_MAP, seen, settings=settings)
            async with running(reflector):
                await seen.until(lambda seen: {"a", "b"} <= seen.objects.keys())
            return server.requests, reflector.statistics().silences

    requests, silences = asyncio.run(run())
    assert silences >= 1
    versions = [query.get("resourceVersion") for _, query in requests]
    assert versions[:3] == [None, "1", None]


@pytest.mark.parametrize(
    ("bookmarks", "factors"),
    [
        ([], [1, 2, 4, 8, 8, 8, 8]),
        ([event("BOOKMARK", "", 2)], [1, 1, 1, 1, 2, 4, 8]),
    ],
)
def test_silence_is_believed_longer_where_there_seem_to_be_no_bookmarks(
    tmp_path, monkeypatch, bookmarks, factors
):
    """Two connections that died one after the other were taken for a server without bookmarks."""
    waits = []

    @asynccontextmanager
    async def dying(self, path, query, *, inactivity_seconds):
        waits.append(inactivity_seconds)

        async def parts():
            for bookmark in bookmarks if len(waits) == 1 else ():
                yield bookmark
            raise TimeoutError

        yield SimpleNamespace(iter_any=parts)

    monkeypatch.setattr(ClusterClient, "stream", dying)
    settings = replace(PAGES, inactivity_seconds=90.0, backoff_initial_seconds=0.0)
    play(tmp_path, *[listed(obj("a", 2), version=2)] * len(factors), settings=settings)
    assert waits == [90.0 * factor for factor in factors]


def test_a_watch_that_is_renewed_goes_on_where_it_stopped(tmp_path):
    """However long its silence may last, and no failure; renewed while there is none, nothing is."""

    async def run():
        script = (
            listed(version=1),
            (200, [event("ADDED", "a", 2)], "hang"),
            (200, [event("ADDED", "b", 3)], "hang"),
        )
        async with (
            scripted(tmp_path, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            seen = Recorder()
            settings = replace(PAGES, inactivity_seconds=PATIENCE_SECONDS)
            reflector = Reflector(client, CONFIG_MAP, seen, settings=settings)
            reflector.renew()
            async with running(reflector):
                await seen.until(lambda seen: "a" in seen.objects)
                reflector.renew()
                reflector.renew()
                await seen.until(lambda seen: "b" in seen.objects)
            reflector.renew()
            return server.requests, reflector.statistics()

    requests, found = asyncio.run(run())
    assert [query.get("resourceVersion") for _, query in requests] == [None, "1", "2"]
    assert (found.lists, found.watches, found.errors) == (1, 2, 0)


def test_bookmarks_alone_move_the_place_where_a_watch_goes_on(tmp_path):
    _, found, requests = play(
        tmp_path,
        listed(version=1),
        (200, [event("BOOKMARK", "", 7)], "end"),
        (200, [event("ADDED", "a", 8)], "end"),
    )
    assert found.bookmarks == 1
    assert requests[1]["allowWatchBookmarks"] == "true"
    assert requests[2]["resourceVersion"] == "7"


def test_a_place_that_is_forgotten_makes_a_new_list_wherever_it_is_said(tmp_path):
    """410 as the status of a watch, as an event, and in the middle of a list."""
    seen, found, requests = play(
        tmp_path,
        listed(obj("a", 1), obj("b", 1), version=1),
        status(410),
        listed(obj("b", 2), version=2, token="next"),
        status(410),
        listed(obj("b", 2), obj("c", 3), version=3),
        (200, [event("ADDED", "d", 4), error_event(410)], "end"),
        listed(obj("c", 3), obj("d", 4), version=9),
    )
    assert seen.changes == [
        ("set", "a"),
        ("set", "b"),
        ("synced", ""),
        ("delete", "a"),
        ("set", "b"),
        ("set", "c"),
        ("synced", ""),
        ("set", "d"),
        ("delete", "b"),
        ("synced", ""),
    ]
    assert found.gone == 3
    assert requests[3]["continue"] == "next"
    assert "limit" not in requests[4]
    assert requests[7]["resourceVersion"] == "9"


def test_other_error_events_end_a_watch_but_not_what_is_known(tmp_path):
    seen, found, requests = play(
        tmp_path,
        listed(obj("a", 1), version=1),
        (200, [event("ADDED", "b", 2), error_event(500)], "end"),
        (200, [event("ADDED", "c", 3)], "end"),
    )
    assert seen.objects.keys() == {"a", "b", "c"}
    assert (found.lists, found.errors) == (1, 1)
    assert requests[2]["resourceVersion"] == "2"


def test_refusals_are_waited_out_and_counted(tmp_path):
    seen, found, _ = play(
        tmp_path, status(403), status(500), listed(obj("a", 1), version=1), status(403)
    )
    assert seen.objects.keys() == {"a"}
    assert found.errors == 3
    assert "403" in found.last_error


def test_a_kind_that_is_gone_takes_its_objects_with_it(tmp_path):
    seen, found, _ = play(tmp_path, listed(obj("a", 1), version=1), status(404), status(404))
    assert seen.changes == [("set", "a"), ("synced", ""), ("delete", "a")]
    assert found.absent


def test_initial_events_are_one_list_up_to_the_marked_bookmark(tmp_path):
    seen, found, requests = play(
        tmp_path,
        (
            200,
            [
                event("ADDED", "a", 1),
                event("BOOKMARK", "", 2),
                event("ADDED", "b", 2),
                event("BOOKMARK", "", 5, **END),
                event("ADDED", "c", 6),
            ],
            "end",
        ),
        settings=replace(PAGES, watch_list=True),
    )
    assert seen.changes == [("set", "a"), ("set", "b"), ("synced", ""), ("set", "c")]
    assert requests[0]["sendInitialEvents"] == "true"
    assert requests[1]["resourceVersion"] == "6"
    assert (found.lists, found.watches) == (1, 2)


def test_initial_events_that_were_torn_count_for_nothing(tmp_path):
    seen, _, _ = play(
        tmp_path,
        (200, [event("ADDED", "a", 1)], "tear"),
        (200, [event("ADDED", "b", 2), event("BOOKMARK", "", 5, **END)], "end"),
        settings=replace(PAGES, watch_list=True),
    )
    assert seen.changes == [("set", "b"), ("synced", "")]


def test_a_server_without_initial_events_is_asked_for_pages(tmp_path):
    seen, _, requests = play(
        tmp_path,
        status(422),
        listed(obj("a", 1), version=1),
        status(410),
        listed(obj("a", 1), version=2),
        settings=replace(PAGES, watch_list=True),
    )
    assert seen.changes == [("set", "a"), ("synced", ""), ("synced", "")]
    assert "sendInitialEvents" not in requests[3]


def test_lines_may_be_longer_than_any_buffer(tmp_path):
    seen, _, _ = play(
        tmp_path,
        listed(version=1),
        (200, [event("ADDED", "a", 2, annotations={"long": "x" * 5_000_000})], "end"),
    )
    assert len(seen.objects["a"]["metadata"]["annotations"]["long"]) == 5_000_000


def test_an_object_that_was_deleted_and_made_anew_unseen_is_two_changes(tmp_path):
    seen, _, _ = play(
        tmp_path,
        listed(obj("a", 1), version=1),
        status(410),
        listed(obj("a", 9, uid="another"), version=9),
    )
    assert seen.changes == [
        ("set", "a"),
        ("synced", ""),
        ("delete", "a"),
        ("set", "a"),
        ("synced", ""),
    ]


def deep(levels):
    """A value that nests so deep."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_an_object_as_deep_as_the_api_server_keeps_it_is_followed_with_the_others(tmp_path):
    """In a list, in an event, and in a list that is streamed."""
    whole = encode(obj("deep", 3) | {"data": deep(3_000)})
    seen, found, _ = play(
        tmp_path,
        (
            200,
            [b'{"items":[' + whole + b'],"metadata":{"resourceVersion":"3"}}'],
            "end",
        ),
        (200, [b'{"type":"ADDED","object":' + whole.replace(b'"deep"', b'"more"') + b"}\n"], "end"),
    )
    assert seen.objects.keys() == {"deep", "more"}
    assert found.lists == 1


def small(**bounds):
    return replace(PAGES, **bounds)


def test_a_continue_token_that_comes_again_ends_the_list_which_is_tried_again(tmp_path):
    seen, found, requests = play(
        tmp_path,
        listed(obj("a", 1), version=1, token="x"),
        listed(obj("b", 1), version=1, token="y"),
        listed(obj("c", 1), version=1, token="x"),
        listed(obj("d", 2), version=2),
    )
    assert seen.changes == [("set", "d"), ("synced", "")]
    assert found.errors == 1
    assert "continue" not in requests[3]


def test_a_list_without_end_is_given_up_at_its_bound(tmp_path):
    pages = [listed(obj(f"a{number}", 1), version=1, token=f"t{number}") for number in range(40)]
    lines = []
    seen, found, requests = play(
        tmp_path,
        *pages[:21],
        listed(obj("z", 2), version=2),
        settings=small(list_bytes_max=2_000),
        lines=lines,
    )
    assert "z" in seen.objects
    assert len(seen.objects) < 21
    assert "a list of over 2000 bytes" in b"".join(lines).decode()
    assert not found.last_error, "it goes on"
    assert [query.get("continue") for query in requests].count(None) >= 2


def test_initial_events_without_end_are_given_up_at_their_bound(tmp_path):
    events = [event("ADDED", f"a{number}", 1) for number in range(100)]
    last = event("ADDED", "z", 2), event("BOOKMARK", "", 2, **END)
    lines = []
    seen, found, _ = play(
        tmp_path,
        (200, events, "hang"),
        (200, list(last), "end"),
        settings=small(watch_list=True, list_bytes_max=4_000),
        lines=lines,
    )
    assert seen.objects.keys() == {"z"}
    assert "a list of over 4000 bytes" in b"".join(lines).decode()
    assert not found.last_error, "it goes on"


@pytest.mark.parametrize("watch_list", [False, True])
def test_what_is_not_kept_of_a_list_does_not_count_for_its_bound(tmp_path, watch_list):
    """Pods of a large cluster of which policies read a field: 800 MB that become 40."""
    large = {"annotations": {"filling": "x" * 1_000}}
    if watch_list:
        events = [event("ADDED", f"a{number}", 1, **large) for number in range(20)]
        script = [(200, [*events, event("BOOKMARK", "", 2, **END)], "end")]
    else:
        page = [obj(f"a{number}", 1, **large) for number in range(20)]
        script = [listed(*page[:10], version=1, token="x"), listed(*page[10:], version=1)]
    seen, found, _ = play(
        tmp_path,
        *script,
        settings=small(watch_list=watch_list, list_bytes_max=6_000),
        transform=without_annotations,
    )
    assert len(seen.objects) == 20
    assert found.lists == 1


def without_annotations(item):
    """Returns an item as a projection makes it that keeps only an object's names."""
    return item | {"metadata": item["metadata"] | {"annotations": {}}}


def test_a_watch_that_drips_is_given_up(tmp_path):
    lines = []
    seen, found, requests = play(
        tmp_path,
        listed(version=1),
        (200, [event("ADDED", "a", 2), b"{"], "drip"),
        (200, [event("ADDED", "b", 3)], "end"),
        settings=small(line_seconds_max=0.05, inactivity_seconds=60.0),
        lines=lines,
    )
    assert seen.objects.keys() == {"a", "b"}
    assert "a line that takes over" in b"".join(lines).decode()
    assert not found.last_error, "it goes on"
    assert requests[2]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    "line",
    [b"5", b'"x"', b"[]", b"{}", b'{"type":5,"object":{}}', b'{"type":"ADDED"}', b"null"],
)
def test_an_event_of_the_wrong_shape_ends_the_watch_which_goes_on(tmp_path, line):
    seen, found, requests = play(
        tmp_path,
        listed(obj("a", 1), version=1),
        (200, [event("ADDED", "b", 2), line + b"\n"], "end"),
        (200, [event("ADDED", "c", 3)], "end"),
    )
    assert seen.objects.keys() == {"a", "b", "c"}
    assert found.errors == 1
    assert requests[2]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    "page",
    [b"5", b"[]", b"{}", b'{"items":5,"metadata":{"resourceVersion":"1"}}', b'{"metadata":5}'],
)
def test_a_page_of_the_wrong_shape_is_asked_for_again(tmp_path, page):
    seen, found, _ = play(tmp_path, (200, [page], "end"), listed(obj("a", 1), version=1))
    assert seen.objects.keys() == {"a"}
    assert found.errors == 1


STRANGE = [5, "x", None, {}, {"metadata": 5}, {"metadata": {"name": 5}}, {"metadata": {}}]


@pytest.mark.parametrize("strange", STRANGE, ids=str)
def test_what_is_no_object_is_left_out_and_the_others_are_followed(tmp_path, strange):
    line = encode({"type": "ADDED", "object": strange}) + b"\n"
    seen, found, _ = play(
        tmp_path,
        listed(obj("a", 1), strange, obj("b", 1), version=1),
        (200, [line, event("ADDED", "c", 2)], "end"),
    )
    assert seen.objects.keys() == {"a", "b", "c"}
    assert (found.malformed, found.errors) == (2, 0)


def test_a_wait_of_an_hour_that_is_asked_for_is_not_waited_out():
    reflector = Reflector(ClusterClient(NOBODY), CONFIG_MAP, Recorder(), settings=PAGES)
    error = ApiError(429, "busy", retry_after_seconds=3_600.0)
    assert reflector._after(error) <= RETRY_AFTER_SECONDS_MAX


def test_what_fails_is_logged_once_while_it_lasts(tmp_path):
    lines = []

    async def run():
        script = [status(500)] * 4 + [listed(obj("a", 1), version=1)]
        async with scripted(tmp_path, *script) as (server, credentials):
            log = Log(lines.append).logger("cluster")
            async with ClusterClient(credentials, log=log) as client:
                reflector = Reflector(client, CONFIG_MAP, Recorder(), settings=PAGES)
                async with running(reflector), asyncio.timeout(PATIENCE_SECONDS):
                    await server.done.wait()

    asyncio.run(run())
    assert len([line for line in lines if b"a list or watch failed" in line]) == 1
    assert b"Kind=ConfigMap" in lines[0]
