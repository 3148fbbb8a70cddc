"""Objects that a real API server accepts and sends are decided, despite failurePolicy Ignore."""

import base64
import datetime as dt
import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, write_policies
from tests.cluster import Cluster
from tests.patience import PATIENCE_SECONDS
from tests.system.replicas import WEBHOOKS, until
from webhook.api.admission import MEMBERS_MAX
from webhook.certificates.pairs import self_signed

NAMESPACE = "deep-and-large"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

WEBHOOK_SECONDS = 30
"""The most that an API server waits for a webhook: the machine may be busy."""

REQUEST_SECONDS = 60
"""The most that an API server takes for a request itself; not asked for more it takes 34."""


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the API server asks about ConfigMaps of one namespace; they need an owner."""
    folder = tmp_path_factory.mktemp("deep")
    pair = self_signed(["localhost", "127.0.0.1"], dt.datetime.now(tz=dt.UTC))
    certificates = folder / "certificates"
    certificates.mkdir()
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    needs_owner = constraint("needs-owner", "owner").replace("Pod, Namespace", "ConfigMap")
    policies = write_policies(folder / "policies", REQUIRED_LABELS, needs_owner)
    cluster.api.apply(
        f"/api/v1/namespaces/{NAMESPACE}",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    with Server(policies, f"--cert-dir={certificates}") as server:
        server.ready()
        webhook = {
            "name": "validation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"https://127.0.0.1:{server.ports['admission']}/v1/admit",
                "caBundle": base64.b64encode(pair.certificate).decode(),
            },
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": WEBHOOK_SECONDS,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["configmaps"],
                }
            ],
        }
        cluster.api.apply(
            f"{WEBHOOKS}/{NAMESPACE}",
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": NAMESPACE},
                "webhooks": [webhook],
            },
        )
        try:
            until(lambda: "needs-owner" in denial(cluster, b"[]"), "the webhook is in place")
            yield server
        finally:
            cluster.api.request("DELETE", f"{WEBHOOKS}/{NAMESPACE}")
            cluster.api.request("DELETE", CONFIG_MAPS)


def denial(cluster: Cluster, managed_fields: bytes, name: str = "odd", **labels: str) -> str:
    """Returns the denial of a ConfigMap with these managedFields; empty if there is none."""
    metadata = {"name": name, "labels": labels, "managedFields": "@here@"}
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).encode()
    request = urllib.request.Request(
        cluster.server + CONFIG_MAPS + f"?dryRun=All&timeout={REQUEST_SECONDS}s",
        method="POST",
        data=body.replace(b'"@here@"', managed_fields),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(
            request, timeout=PATIENCE_SECONDS, context=cluster.api.context
        ) as answer:
            answer.read()  # as deep as what was sent
    except urllib.error.HTTPError as error:
        with error:
            message: str = json.loads(error.read())["message"]
            return message
    return ""


def nested(levels: int) -> bytes:
    """ManagedFields so deep."""
    fields = b'{"f:a":' * levels + b"{}" + b"}" * levels
    return entry(fields)


def entry(fields: bytes) -> bytes:
    """ManagedFields with these fields."""
    return (
        b'[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2024-01-01T00:00:00Z",'
        b'"fieldsType":"FieldsV1","fieldsV1":' + fields + b"}]"
    )


@pytest.mark.parametrize("levels", [950, 1_100, 3_000, 9_900])
def test_a_violation_is_denied_however_deep_its_object_is(
    cluster: Cluster, server: Server, levels: int
) -> None:
    message = denial(cluster, nested(levels))
    assert message.endswith("denied the request: [needs-owner] label <owner> is missing")
    assert denial(cluster, nested(levels), owner="me") == ""


@pytest.mark.parametrize("size", [1_300_000, 3_000_000])
def test_a_violation_is_denied_however_much_of_it_go_escapes(
    cluster: Cluster, server: Server, size: int
) -> None:
    fields = entry(b'{"f:' + b"<" * size + b'":{}}')
    message = denial(cluster, fields)
    assert message.endswith("denied the request: [needs-owner] label <owner> is missing")


@pytest.mark.parametrize(
    ("members", "refusal"),
    [
        (170_000, "[needs-owner] label <owner> is missing"),
        (200_000, f"the object cannot be reviewed: an object has more than {MEMBERS_MAX} members"),
    ],
)
def test_a_violation_is_denied_however_much_memory_its_object_takes(
    cluster: Cluster, server: Server, members: int, refusal: str
) -> None:
    # In order: the API server keeps names sorted and puts each in its place, which took it half a
    # minute by itself where they came in another.
    fields = entry(b'{"f:a":{' + b",".join(b'"f:%06x":{}' % n for n in range(members)) + b"}}")
    message = denial(cluster, fields)
    assert message.endswith(f"denied the request: {refusal}")
