"""Marked resources read back at a real API server, and what becomes of those that cannot be."""

import asyncio
import uuid

import pytest

from tests.cluster import ApiError as Refused
from tests.patience import PATIENCE_SECONDS
from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupVersionKind
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.discovery import Discovery
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.log import open_log
from webhook.reports.finding import Assessment, Policy, ReportSubject, settled
from webhook.reports.refresher import Refresher
from webhook.reports.writer import NotServed

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


class Everything:
    """Finds one thing in every resource, and nothing before its time."""

    def __init__(self, not_yet=0):
        self.not_yet = not_yet
        self.assessed = []

    async def assess(self, resource, obj):
        self.assessed.append((resource.plural, obj["kind"], obj["metadata"]["name"]))
        if self.not_yet:
            self.not_yet -= 1
            return None
        return Assessment(settled([finding()]), self.policies(None))

    def policies(self, subject):
        del subject
        return {Policy("RequireRunAsNonRoot", "must-run-as-non-root"): "uid"}


class Kept:
    """Keeps its input, after as many failures as a test sets."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.put_ = []

    async def put(self, subject, assessment, *, is_new):
        if self.failures:
            raise self.failures.pop(0)
        self.put_.append((subject, assessment, is_new))


@pytest.fixture
def there(cluster):
    """A ConfigMap that is there."""
    name = f"refreshed-{uuid.uuid4().hex[:8]}"
    path = "/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    made = cluster.api.request("POST", path, body)
    yield ReportSubject(CONFIG_MAP, "default", name, made["metadata"]["uid"])
    try:
        cluster.api.request("DELETE", f"{path}/{name}")
    except Refused as error:
        if error.status != 404:
            raise


def refreshed(cluster, store, *marks, assessor=None):
    """A refresher that has done with these marks."""

    async def run():
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            log = open_log().logger("test")
            refresher = Refresher(client, Discovery(client), assessor or Everything(), store, log)
            # Retries are waited for, but not for as long as in a cluster.
            refresher._backoff.initial_seconds = refresher._backoff.max_seconds = 0.05
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                running = tasks.create_task(refresher.run())
                for subject in marks:
                    assert refresher.mark(subject)
                while not refresher.is_idle:  # noqa: ASYNC110  # no event tells
                    await asyncio.sleep(0.01)
                running.cancel()
            return refresher

    return event_loop.run(run())


def test_a_marked_resource_is_read_back_and_assessed(cluster, there):
    store, assessor = Kept(), Everything()
    refreshed(cluster, store, there, there, assessor=assessor)
    ((subject, assessment, _),) = store.put_
    assert subject == there
    assert len(assessment.findings) == 1
    assert assessor.assessed == [("configmaps", "ConfigMap", there.name)]


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "of-one-before"},
        {"name": "never-there"},
        {"gvk": GroupVersionKind("no.such.group", "v1", "Thing")},
    ],
    ids=["replaced", "gone", "kind-gone"],
)
def test_what_is_not_that_resource_any_more_has_no_findings(cluster, there, change):
    store, assessor = Kept(), Everything()
    marked = there._replace(**change)
    refreshed(cluster, store, marked, assessor=assessor)
    ((subject, assessment, _),) = store.put_
    assert subject == marked
    assert assessment.findings == ()
    assert set(assessment.policies) == set(assessor.policies(None))
    assert assessor.assessed == []


def test_a_review_without_a_verdict_is_made_again(cluster, there):
    store, assessor = Kept(), Everything(not_yet=2)
    refreshed(cluster, store, there, assessor=assessor)
    assert (len(assessor.assessed), len(store.put_)) == (3, 1)


def test_what_passes_is_tried_again_and_given_up_in_the_end(cluster, there):
    store = Kept(*[ApiUnreachable("away")] * 2)
    refresher = refreshed(cluster, store, there)
    assert (len(store.put_), dict(refresher.lost)) == (1, {})
    store = Kept(*[ApiError(500, "broken")] * 100)
    refresher = refreshed(cluster, store, there)
    assert (store.put_, dict(refresher.lost)) == ([], {"failed": 1})


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ApiError(403, "no right"), "forbidden"),
        (ApiError(422, "severity: Unsupported value"), "refused"),
        (NotServed("no such kind"), "not_served"),
    ],
    ids=["forbidden", "refused", "not-served"],
)
def test_what_does_not_pass_is_left_to_the_next_audit(cluster, there, error, reason):
    store = Kept(error, error)
    refresher = refreshed(cluster, store, there)
    assert dict(refresher.lost) == {reason: 1}
    assert len(store.failures) == 1, "it was not tried again"
