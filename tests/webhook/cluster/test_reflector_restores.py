"""The reflector and an API server whose history went back, as after a restore of etcd.

The same at a real API server: tests/system/test_etcd_is_restored.py.
"""

import asyncio
from dataclasses import replace

import pytest

from tests.webhook.cluster.config_maps import CONFIG_MAP, PAGES
from tests.webhook.cluster.fault_server import event, listed, obj, scripted, status
from tests.webhook.cluster.recording import Recorder, running
from webhook.cluster.client import ClusterClient
from webhook.cluster.reflector import Reflector, is_older


def follow(folder, script, version, until, settings=PAGES):
    """Run a reflector at an API server that is at a version, until so much is seen."""

    async def run():
        async with (
            scripted(folder, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            server.version = version
            seen = Recorder()
            reflector = Reflector(client, CONFIG_MAP, seen, settings=settings)
            async with running(reflector):
                await seen.until(until)
            return seen, reflector, server

    return asyncio.run(run())


def test_a_server_that_went_back_is_noticed_before_a_watch_goes_on(tmp_path):
    """As after a restore of etcd: a watch from the version known would tell nothing, or too little."""
    script = (
        listed(obj("a", 5), obj("b", 7), version=9),
        (200, [event("MODIFIED", "a", 10)], "tear"),
        listed(obj("a", 5), version=6),
        (200, [event("ADDED", "c", 7)], "hang"),
    )
    seen, reflector, server = follow(tmp_path, script, 6, lambda seen: "c" in seen.objects)
    found = reflector.statistics()
    assert [query.get("resourceVersion") for _, query in server.requests] == [None, "9", None, "6"]
    assert ("delete", "b") in seen.changes
    assert (found.restores, found.outdated, server.comparisons) == (1, False, 1)


def test_an_object_of_the_same_version_is_compared_as_a_whole_after_a_server_went_back(tmp_path):
    """The restored history came to the same version by another change."""
    script = (
        listed(obj("a", 5), version=9),
        (200, [], "tear"),
        listed(obj("a", 5, labels={"of": "another history"}), version=7),
        (200, [], "hang"),
    )
    seen, _, _ = follow(tmp_path, script, 7, lambda seen: seen.changes.count(("synced", "")) == 2)
    assert seen.changes.count(("set", "a")) == 2


def test_a_bookmark_of_an_older_version_ends_the_watch_and_the_version_is_asked_for(tmp_path):
    bookmark = event("BOOKMARK", "", 4)
    script = (
        listed(obj("a", 5), version=9),
        (200, [bookmark], "hang"),
        listed(version=4),
        (200, [], "hang"),
    )
    _, reflector, _ = follow(tmp_path, script, 4, lambda seen: ("delete", "a") in seen.changes)
    assert reflector.statistics().restores == 1


def test_until_it_has_listed_anew_a_reflector_says_that_it_is_outdated(tmp_path):
    async def run():
        script = (
            listed(version=9),
            (200, [], "tear"),
            *[status(500)] * 20,
            listed(version=4),
            (200, [event("ADDED", "a", 5)], "hang"),
        )
        async with (
            scripted(tmp_path, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            server.version = 4
            seen, states = Recorder(), []
            reflector = Reflector(client, CONFIG_MAP, seen, settings=PAGES)
            async with running(reflector):
                while "a" not in seen.objects:
                    states.append(reflector.statistics().outdated)
                    await asyncio.sleep(0)
            return states, reflector.statistics()

    states, found = asyncio.run(run())
    assert True in states
    assert (found.outdated, found.restores) == (False, 1)


def test_what_only_the_answer_to_a_write_has_reported_is_known_too(tmp_path):
    """No watch had told of it: its writer took it for there, and never wrote it again."""
    script = (
        listed(obj("a", 5), version=9),
        (200, [], "hang"),
        listed(obj("a", 5), version=10),
        (200, [], "hang"),
        (200, [event("ADDED", "b", 11)], "hang"),
    )

    async def run():
        async with (
            scripted(tmp_path, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            server.version = 10
            seen = Recorder()
            reflector = Reflector(client, CONFIG_MAP, seen, settings=PAGES)
            async with running(reflector):
                await seen.until(lambda seen: ("synced", "") in seen.changes)
                client.answered[CONFIG_MAP.collection()] = "12"
                reflector.renew()
                await seen.until(lambda seen: seen.changes.count(("synced", "")) == 2)
                # That answer is of a history which is no more: it counts once.
                reflector.renew()
                await seen.until(lambda seen: "b" in seen.objects)
            return reflector.statistics(), server.requests

    found, requests = asyncio.run(run())
    versions = [query.get("resourceVersion") for _, query in requests]
    assert versions == [None, "9", None, "10", "10"]
    assert (found.restores, found.outdated) == (1, False)


def test_after_an_outage_all_is_listed_anew(tmp_path):
    """The server may have been restored meanwhile, and be beyond the version known by now."""
    script = (
        listed(obj("a", 5), version=9),
        (200, [], "tear"),
        listed(obj("b", 8), version=12),
        (200, [], "hang"),
    )
    settings = replace(PAGES, outage_seconds=0.0)
    _, reflector, _ = follow(
        tmp_path, script, 12, lambda seen: ("delete", "a") in seen.changes, settings
    )
    assert reflector.statistics().restores == 0


@pytest.mark.parametrize(
    ("version", "known", "older"),
    [
        *(("9", "10", True), ("10", "9", False), ("10", "10", False), ("0012", "13", True)),
        *(("", "5", False), ("5", "", False), ("5/1", "9", False), ("٣", "9", False)),
        ("1" * 5000, "2" * 5000, True),
    ],
)
def test_versions_are_compared_where_they_are_numbers(version, known, older):
    assert is_older(version, known) is older
