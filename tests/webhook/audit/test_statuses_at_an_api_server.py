"""Results of an audit that are more than etcd takes: cut until they fit, with their total."""

import asyncio
from typing import Any

from tests.cluster import Cluster, serves
from tests.patience import until
from tests.policies import definition
from webhook.audit.sink import SweepEnd
from webhook.audit.statuses import ConstraintStatuses
from webhook.audit.tally import Count, StatusViolation
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.constraint.constraint import Constraint
from webhook.log import Log

NAME = "toomany.constraints.gatekeeper.sh"
CRD_PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
PATH = "/apis/constraints.gatekeeper.sh/v1beta1/toomany/all"
OBJECTS = 6000


def found() -> Count:
    """More violations than etcd takes in one object, all of which the status is to show."""
    count = Count(OBJECTS)
    for number in range(OBJECTS):
        name = f"{number:05}-{'n' * 200}"
        count.add(StatusViolation("", "v1", "Pod", "space", name, "m" * 250, "deny"))
    return count


def test_a_status_beyond_what_etcd_takes_is_cut_and_keeps_its_total(cluster: Cluster) -> None:
    api = cluster.api
    crd = definition(
        "TooMany", "toomany", "constraints.gatekeeper.sh", version="v1beta1", with_status=True
    )
    api.apply(CRD_PATH, crd)
    try:
        until(lambda: serves(api, crd), "the kind is served")
        body = {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": "TooMany",
            "metadata": {"name": "all"},
            "spec": {"parameters": {"text": "x" * 100_000}},
        }
        document = api.apply(PATH, body)

        async def write() -> ConstraintStatuses:
            async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
                statuses = ConstraintStatuses(client, Log(lambda _: None).logger("test"))
                constraint = Constraint("TooMany", "all", document)
                await statuses.publish(ending(constraint), {constraint.key: found()})
                return statuses

        statuses = asyncio.run(write())
        assert (statuses.writes, statuses.failures) == (1, 0)
        status = api.request("GET", PATH)["status"]
        assert status["totalViolations"] == OBJECTS
        shown = [item["name"][:5] for item in status["violations"]]
        assert 500 < len(shown) < OBJECTS
        assert shown == [f"{number:05}" for number in range(len(shown))][::-1]
    finally:
        api.request("DELETE", CRD_PATH)


def ending(constraint: Constraint) -> SweepEnd:
    """The end of a sweep of that constraint alone."""

    class Policies:
        constraints = (constraint,)

    snapshot: Any = Policies()
    return SweepEnd("2026-01-01T00:00:00Z", snapshot, frozenset())
