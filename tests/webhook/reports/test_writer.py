"""Reports written to a real API server: by several at once, into namespaces that end, within a cap."""

import asyncio
import time
import uuid
from pathlib import Path

import pytest
import yaml

from tests.cluster import ApiError as Refused
from tests.patience import PATIENCE_SECONDS
from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupVersionKind
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.errors import ApiUnreachable
from webhook.log import open_log
from webhook.reports.capacity import Capacity
from webhook.reports.finding import Assessment, Policy, ReportSubject, digest, settled
from webhook.reports.keeper import ResourceReports
from webhook.reports.known import known_reports
from webhook.reports.policy_reports import PolicyReports
from webhook.reports.report import finding_in
from webhook.reports.report_api import WGPOLICY
from webhook.reports.writer import NotServed, ReportWriter

MANIFESTS = Path(__file__).parents[3] / "manifests" / "reports" / "wgpolicyk8s"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def api(cluster):
    """The shared API server with the reports' CRDs."""
    for file in MANIFESTS.glob("*reports.yaml"):
        manifest = yaml.safe_load(file.read_text())
        cluster.api.apply(f"{CRDS}/{manifest['metadata']['name']}", manifest)
    end = time.monotonic() + PATIENCE_SECONDS
    for resource in WGPOLICY.resources:
        while True:
            try:
                cluster.api.request("GET", resource.collection())
                break
            except Refused:
                assert time.monotonic() < end, "never served"
                time.sleep(0.05)
    return cluster.api


@pytest.fixture
def owner(api):
    """A ConfigMap in a namespace of the test's own."""
    namespace = f"reports-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    api.request("POST", "/api/v1/namespaces", body)
    made = api.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}},
    )
    gvk = GroupVersionKind("", "v1", "ConfigMap")
    yield ReportSubject(gvk, namespace, "owner", made["metadata"]["uid"])
    api.request("DELETE", f"/api/v1/namespaces/{namespace}")


def run(cluster, work, reports_max=1000):
    """Run ``work(client, writer)``, ``writer`` making one writer of its own at each call."""

    async def with_client():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            log = open_log().logger("test")

            def writer():
                capacity = Capacity(client, WGPOLICY, reports_max, log)
                return ReportWriter(client, WGPOLICY, capacity, log)

            async with asyncio.timeout(PATIENCE_SECONDS):
                return await work(client, writer)

    return event_loop.run(with_client())


def stored(api, subject):
    path = WGPOLICY.namespaced.path(subject.uid, subject.namespace)
    try:
        return api.request("GET", path)
    except Refused as error:
        if error.status != 404:
            raise
        return None


def test_a_report_is_made_replaced_left_and_deleted(cluster, api, owner):
    async def work(client, writer):
        del client
        one = writer()
        reports = ResourceReports(one, WGPOLICY)
        for findings in (["a"], ["a"], ["a", "b"], [], []):
            found = Assessment(settled(map(finding, findings)))
            await reports.put(owner, found, is_new=False)
        return one

    one = run(cluster, work)
    assert dict(one.outcomes) == {"create": 1, "unchanged": 2, "replace": 1, "delete": 1}
    assert dict(one.requests) == {"create": 1, "replace": 1, "delete": 1}
    assert stored(api, owner) is None


def test_writers_that_race_lose_no_report_and_the_last_one_stands(cluster, api, owner):
    """Each finds what it finds, again and again; when all agree the report says so."""

    async def work(client, writer):
        del client
        writers = [writer() for _ in range(4)]

        async def write(number):
            reports = ResourceReports(writers[number], WGPOLICY)
            for round_ in range(10):
                text = f"{number} {round_}" if round_ < 9 else "agreed"
                found = Assessment(settled([finding(message=text)]))
                while True:
                    try:
                        await reports.put(owner, found, is_new=round_ == 0)
                        break
                    except ApiUnreachable:  # others were faster time and again
                        continue

        async with asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(write(number))
        # The first "agreed" may have been overwritten by another writer's ninth.
        await ResourceReports(writers[0], WGPOLICY).put(
            owner, Assessment(settled([finding(message="agreed")])), is_new=False
        )
        return writers

    writers = run(cluster, work)
    (result,) = stored(api, owner)["results"]
    assert result["message"] == "agreed"
    made = sum(one.outcomes["create"] for one in writers)
    assert made == 1
    lost = sum(sum(one.requests.values()) for one in writers) - sum(
        one.outcomes["create"] + one.outcomes["replace"] for one in writers
    )
    assert lost > 0, "there was a race"


def test_a_report_is_not_deleted_in_a_state_that_nobody_read(cluster, api, owner):
    """A deletion that another's write overtakes looks again, and finds nothing to delete for."""

    async def work(client, writer):
        del client
        one = writer()
        await ResourceReports(one, WGPOLICY).put(
            owner, Assessment(settled([finding("a")])), is_new=False
        )
        seen = await one.read(owner.uid, owner.namespace)
        await ResourceReports(writer(), WGPOLICY).put(
            owner, Assessment(settled([finding("b")])), is_new=False
        )
        return await one.swap(seen, None, owner.namespace)

    assert run(cluster, work) == "conflict"
    assert stored(api, owner)["results"][0]["rule"] == "b"


def test_nothing_is_made_in_a_namespace_that_ends(cluster, api, owner):
    finalized = f"/api/v1/namespaces/{owner.namespace}/configmaps/owner"
    patch = {"metadata": {"finalizers": ["example.com/held"]}}
    api.request("PATCH", finalized, patch, content_type="application/merge-patch+json")
    api.request("DELETE", f"/api/v1/namespaces/{owner.namespace}")

    async def work(client, writer):
        del client
        one = writer()
        await ResourceReports(one, WGPOLICY).put(
            owner, Assessment(settled([finding()])), is_new=False
        )
        gone = owner._replace(namespace="no-such-namespace")
        await ResourceReports(one, WGPOLICY).put(
            gone, Assessment(settled([finding()])), is_new=False
        )
        return one

    assert dict(run(cluster, work).outcomes) == {"terminating": 2}
    patch = {"metadata": {"finalizers": None}}
    api.request("PATCH", finalized, patch, content_type="application/merge-patch+json")


def test_kinds_that_are_not_served_are_distinguished(cluster, api, owner):
    del api

    async def work(client, writer):
        del writer
        log = open_log().logger("test")
        away = WGPOLICY.namespaced.gvk._replace(group="no.such.group")
        unserved = type(WGPOLICY)(
            "none",
            type(WGPOLICY.namespaced)(away, "policyreports", namespaced=True),
            WGPOLICY.cluster,
        )
        capacity = Capacity(client, WGPOLICY, 1000, log)
        reports = ResourceReports(ReportWriter(client, unserved, capacity, log), unserved)
        with pytest.raises(NotServed):
            await reports.put(owner, Assessment(settled([finding()])), is_new=False)

    run(cluster, work)


def test_what_reports_say_is_read_back_with_a_digest(cluster, api, owner):
    del api

    async def work(client, writer):
        findings = settled([finding("a"), finding("b", verdict="warn")])
        await ResourceReports(writer(), WGPOLICY).put(owner, Assessment(findings), is_new=True)
        first = await known_reports(client, WGPOLICY, by_resource=True)
        other = await known_reports(client, WGPOLICY, by_resource=False)
        return first.known[owner.uid], other

    known, other = run(cluster, work)
    assert known.subject == owner
    assert known.digest == digest(settled([finding("a"), finding("b", verdict="warn")]))
    assert (owner.namespace, owner.uid) in other.others


def test_several_writers_of_one_policy_s_reports_lose_no_entry(cluster, api, owner):
    """Each puts resources of its own into the same reports."""
    policy = Policy("RequireRunAsNonRoot", "must-run-as-non-root")

    async def work(client, writer):
        del client
        log = open_log().logger("test")
        stores = [
            PolicyReports(writer(), WGPOLICY, log, entries_max=5, resources_max=1000)
            for _ in range(3)
        ]

        async def put(number):
            for index in range(4):
                about = owner._replace(uid=f"{number}-{index}", name=f"r{number}-{index}")
                await stores[number].put(
                    about, Assessment(settled([finding()]), {policy: ""}), is_new=True
                )

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(store.run()) for store in stores]
            for number in range(3):
                await put(number)
            while not all(store.is_idle for store in stores):  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.02)
            for task in running:
                task.cancel()

    run(cluster, work)
    reports = api.request("GET", WGPOLICY.namespaced.collection(owner.namespace))["items"]
    names = [entry["resources"][0]["name"] for item in reports for entry in item["results"]]
    assert sorted(set(names)) == sorted(f"r{n}-{i}" for n in range(3) for i in range(4))
    assert {finding_in(entry).rule for item in reports for entry in item["results"]} == {
        policy.name
    }
    assert all(item["summary"]["fail"] == len(item["results"]) <= 5 for item in reports)
