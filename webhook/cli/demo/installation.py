"""Writes an installation to a cluster, and replaces the kubelet for replicas as processes."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Final

from webhook.api.names import CONSTRAINTS
from webhook.cli.cluster_access import NAMESPACE, TEMPLATES, await_served
from webhook.cli.demo import sources
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import CRDS, NAMESPACES, PODS, SECRETS, WEBHOOK_CONFIGURATIONS
from webhook.policy_kinds.known import constraints_of
from webhook.replicas.pods import AUDIT_PODS, WEBHOOK_PODS
from webhook.settings.serve import KEY_SECRET

if TYPE_CHECKING:
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object

SHOP: Final = "waddle-demo-shop"
LAB: Final = "waddle-demo-lab"
NAMES: Final = (NAMESPACE, SHOP, LAB)
"""Namespaces: of the replicas, of reviewed objects, of objects for a bad policy."""

CONFIGURATION: Final = "waddle-validating-webhook-configuration"

SERVED_SECONDS_MAX: Final = 180
"""The longest wait for a new CRD's kind, in seconds."""

_RULES: Final = (("*", "*"),)
_CONDITIONS: Final = {
    "exclude-namespaces": (
        f"!has(request.namespace) || !(request.namespace in ['{NAMESPACE}', 'kube-system'])"
    ),
    # Objects that replicas write: in a demo, replicas and the user of kubectl are the same user.
    "exclude-own": (
        "!(request.resource.group in ['policy.waddle.dev', 'status.gatekeeper.sh',"
        " 'wgpolicyk8s.io', 'openreports.io', 'apiextensions.k8s.io'])"
    ),
    "exclude-leases": (
        "!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')"
    ),
    "exclude-events": (
        "!(request.resource.group in ['', 'events.k8s.io'] && request.resource.resource == 'events')"
    ),
}
_NARROW_RULES: Final = (
    ("apps", "deployments"),
    ("", "configmaps"),
    (TEMPLATES.gvk.group, TEMPLATES.plural),
    (CONSTRAINTS, "*"),
)
_NARROW: Final = {
    "demonstration": f"!has(request.namespace) || request.namespace in ['', '{SHOP}', '{LAB}']"
}

_AGAIN_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 10


class Occupied(Exception):
    """The cluster already has policies, or objects of these names; the message names them."""


class Installation:
    """Creates it in a cluster without an installation, and remembers what to remove."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._made: list[str] = []

    async def refuse_occupied(self) -> None:
        """Raises :class:`Occupied` if parts of an installation exist.

        Existing CRDs of reports are used unchanged, since other products use them, too.
        """
        policies = (crd["metadata"]["name"] for crd in sources.crds() if not _is_shared(crd))
        for resource, name in (
            (WEBHOOK_CONFIGURATIONS, CONFIGURATION),
            *((NAMESPACES, name) for name in NAMES),
            *((CRDS, name) for name in policies),
        ):
            if await self._exists(resource, name):
                raise Occupied(
                    f"this cluster has {resource.plural}/{name}: the demonstration needs a cluster "
                    "without policies and without objects of its names"
                )

    async def make(self) -> None:
        """Creates namespaces, CRDs, and the Secret of keys."""
        for name in NAMES:
            await self._client.create(NAMESPACES, _named("v1", "Namespace", name))
        # Empty, as in the manifests: replicas add the keys that sign PolicyRevisions.
        await self._client.create(SECRETS, _named("v1", "Secret", KEY_SECRET, NAMESPACE), NAMESPACE)
        for crd in sources.crds():
            if not (_is_shared(crd) and await self._exists(CRDS, crd["metadata"]["name"])):
                await self._client.create(CRDS, crd)
                self._made.append(crd["metadata"]["name"])
        await await_served(self._client, TEMPLATES, within_seconds=SERVED_SECONDS_MAX)

    async def remove_rest(self) -> None:
        """Removes the rest after `waddle uninstall`: created CRDs of reports, and namespaces."""
        for name in self._made:
            await self._client.delete(CRDS, name)
        for name in NAMES:
            await self._client.delete(NAMESPACES, name)

    # --- replicas -----------------------------------------------------------------------------

    async def pod(self, name: str, *, audit: bool = False) -> str:
        """Returns the UID of a Pod object for a process; no scheduler takes it."""
        labels = dict(
            pair.split("=") for pair in (AUDIT_PODS if audit else WEBHOOK_PODS).split(",")
        )
        body = {
            **_named("v1", "Pod", name, NAMESPACE),
            "spec": {
                "schedulerName": "waddle-demo",
                "automountServiceAccountToken": False,
                "containers": [{"name": "webhook", "image": "waddle"}],
            },
        }
        body["metadata"]["labels"] = labels
        created = await self._create_allowed(PODS, body, NAMESPACE)
        return str(created["metadata"]["uid"])

    async def mark(self, name: str, *, ready: bool) -> None:
        """Sets a Pod's conditions, as a kubelet would after its probes."""
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"status": {"phase": "Running", "conditions": [condition]}}
        await self._client.merge(PODS, name, NAMESPACE, status, subresource="status")

    async def remove_pod(self, name: str) -> None:
        """Deletes a Pod, as when its node is lost."""
        await self._client.delete(PODS, name, NAMESPACE)

    async def register(
        self, address: str, port: int, certificate: bytes, *, everywhere: bool
    ) -> None:
        """Registers the webhooks at the API server.

        Everywhere: for all requests of the manifests' webhook, as in an installation. Otherwise for
        policies, and for a few kinds in the demonstration's namespaces.
        """
        rules, conditions = (_RULES, _CONDITIONS) if everywhere else (_NARROW_RULES, _NARROW)
        webhook = {
            "name": "validation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"https://{address}:{port}/v1/admit",
                "caBundle": base64.b64encode(certificate).decode(),
            },
            "failurePolicy": "Ignore",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": _TIMEOUT_SECONDS,
            "matchConditions": [
                {"name": name, "expression": text} for name, text in conditions.items()
            ],
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [plural],
                }
                for group, plural in rules
            ],
        }
        body = _named(
            "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", CONFIGURATION
        )
        await self._client.apply(WEBHOOK_CONFIGURATIONS, {**body, "webhooks": [webhook]})

    async def unregister(self) -> None:
        """Removes the webhooks."""
        await self._client.delete(WEBHOOK_CONFIGURATIONS, CONFIGURATION)

    # --- policies -----------------------------------------------------------------------------

    async def apply_policies(self, file: str) -> None:
        """Applies templates, and constraints as soon as their kinds are served.

        Raises :class:`ApiError` with the webhook's message for a refused policy.
        """
        for document in sources.policies(file):
            resource = TEMPLATES
            if document["kind"] != TEMPLATES.gvk.kind:
                resource = constraints_of(document["kind"])
                await await_served(self._client, resource, within_seconds=SERVED_SECONDS_MAX)
            await self._client.apply(resource, document)

    async def _create_allowed(self, resource: Resource, body: Object, namespace: str) -> Object:
        """Creates an object; retries while it is forbidden: until its service account is there."""
        async with asyncio.timeout(SERVED_SECONDS_MAX):
            while True:
                try:
                    return await self._client.create(resource, body, namespace)
                except ApiError as error:
                    if not error.is_forbidden:
                        raise
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _exists(self, resource: Resource, name: str) -> bool:
        try:
            await self._client.get(resource, name)
        except ApiError as error:
            if not error.is_absent:
                raise
            return False
        return True


def _is_shared(crd: Object) -> bool:
    return not str(crd["spec"]["group"]).endswith((".gatekeeper.sh", ".waddle.dev"))


def deployment(name: str, *, owner: str = "", privileged: bool = False) -> Object:
    """Returns a Deployment of no Pods."""
    container: dict[str, Any] = {"name": "app", "image": "registry.example/app:1"}
    if privileged:
        container["securityContext"] = {"privileged": True}
    labels = {"app": name}
    document = _named("apps/v1", "Deployment", name, SHOP)
    document["metadata"]["labels"] = labels | ({"owner": owner} if owner else {})
    document["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return document


def config_map(name: str, namespace: str) -> Object:
    """Returns an object that the demonstration's traffic creates."""
    return {**_named("v1", "ConfigMap", name, namespace), "data": {"from": "waddle demo"}}


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
