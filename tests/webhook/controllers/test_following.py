"""A session at a cluster, as far as one request of it goes."""

import asyncio
from typing import Any

import pytest

from tests.webhook.cluster.fault_server import scripted, status
from webhook.api.pod_status import Pod
from webhook.app.cluster import generation_options
from webhook.cluster.client import ClusterClient
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.follow.following import Following
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.serving.revision import NamespaceAnswer, Serving
from webhook.settings.serve import ServeSettings

FOUND = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","uid":"u"}}'


def following(client: ClusterClient) -> Following:
    """A session that has not begun."""
    return Following(
        client,
        Pod("waddle-1", "waddle-system", "uid-1", ("webhook",)),
        Client(targets=[AdmissionTarget()], drivers=[RegoDriver()]),
        Serving(),
        operations=frozenset({"webhook"}),
        wait_for_broken=False,
        kept_revisions=0,
        key_secret="waddle-revision-keys",
        registry=Registry(),
        log=Log(list[bytes]().append).logger("cluster"),
        notify=lambda state, faults: None,
        record=lambda event, **details: None,
        certificate_writes=None,
        generation=generation_options(ServeSettings()),
    )


@pytest.mark.parametrize(
    ("answer", "seconds", "document", "fault"),
    [
        ((200, [FOUND], "end"), 60.0, {"name": "shop", "uid": "u"}, ""),
        (status(404), 60.0, None, ""),
        (status(403, "no rights"), 60.0, None, "403: no rights"),
        ((200, [], "tear"), 60.0, None, "GET /api/v1/namespaces/shop"),
        ((200, [], "hang"), 0.05, None, "no answer in time"),
    ],
    ids=["found", "there is none", "refused", "torn", "silent"],
)
def test_a_namespace_that_no_watch_has_reported_is_read(
    tmp_path: Any, answer: Any, seconds: float, document: Any, fault: str
) -> None:
    async def run() -> NamespaceAnswer:
        async with (
            scripted(tmp_path, answer) as (_, credentials),
            ClusterClient(credentials) as client,
        ):
            return await following(client).read_namespace("shop", seconds)

    found = asyncio.run(run())
    assert (found.document or {}).get("metadata") == document
    assert fault in found.fault
    assert bool(found.fault) is bool(fault)
