"""The API server's own policies in a cluster, read so that audit and reports review by them.

They are read whole, again and again: policies, bindings, and the objects that bindings name as
parameters. Those that Waddle or Gatekeeper generates say what constraints say already, and are left
out. Nobody enforces anything by them here: the API server does.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission_policies.kinds import (
    BINDING,
    GROUP,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    VERSIONS,
)
from webhook.admission_policies.parameters import ParameterStore
from webhook.admission_policies.reading import (
    read_binding,
    read_mutating_binding,
    read_mutating_policy,
    read_policy,
)
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.api.shapes import objects_of
from webhook.audit.pages import ListStatistics, Pages
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.page_size import PageSize
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.metrics.audit import ADMISSION_POLICIES
from webhook.review.admission_policies import AdmissionPolicies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Serving

READ_SECONDS: Final = 30.0
"""Between two readings at most: an audit's interval is a minute, unless it is set."""

POLICIES_OF_A_PAGE: Final = 500

_VALIDATING: Final = (POLICY, BINDING)

_READERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    POLICY: read_policy,
    BINDING: read_binding,
    MUTATING_POLICY: read_mutating_policy,
    MUTATING_BINDING: read_mutating_binding,
}

_GENERATORS: Final = ("templates.gatekeeper.sh", "constraints.gatekeeper.sh")


class AdmissionPolicyReader:
    """Keeps :attr:`Serving.admission_policies` as a cluster has them. Used by one task."""

    def __init__(
        self,
        serving: Serving,
        registry: Registry,
        log: Logger,
        seconds: float = READ_SECONDS,
        *,
        mutating: bool = False,
    ) -> None:
        """``seconds`` are between two readings; ``mutating`` is whether drift is reported."""
        serving.awaits_admission_policies = True
        self._seconds = seconds
        self._mutating = mutating
        self._serving = serving
        self._registry = registry
        self._log = log
        self._logged: frozenset[str] = frozenset()

    async def run(self, client: ClusterClient) -> None:
        """Read until cancelled; what was read stays where the API server does not answer."""
        while True:
            try:
                await self._read(client)
            except (ApiError, ApiUnreachable) as error:
                self._tell([f"they cannot be read: {error}"])
            # Also where they cannot be read: the audit goes by constraints then.
            self._serving.awaits_admission_policies = False
            await asyncio.sleep(self._seconds * random.uniform(0.8, 1.2))  # noqa: S311  # no secret

    async def _read(self, client: ClusterClient) -> None:
        reading = await read_admission_policies(client, mutating=self._mutating)
        bound = set(reading.policies.keys)
        unbound = [kind for kind, _, _ in reading.policies.unbound()]
        self._registry.replace(
            ADMISSION_POLICIES,
            {
                ("bound",): float(len(bound)),
                ("unbound",): float(unbound.count(POLICY)),
                ("unusable",): float(len(reading.faults)),
            },
        )
        self._serving.admission_policies = (
            reading.policies if bound or reading.policies.mutates else None
        )
        self._tell(reading.texts)

    def _tell(self, faults: list[str]) -> None:
        """Log what is wrong, once as long as it is the same."""
        texts = frozenset(faults)
        for text in sorted(texts - self._logged):
            self._log.warning("an admission policy is not audited by", error=text, process="audit")
        self._logged = texts


class UnusableAdmissionPolicy(NamedTuple):
    """A policy or a binding that cannot be used, and why."""

    kind: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}: {self.text}"


class AdmissionPolicyReading(NamedTuple):
    """Policies that can be used, those that cannot, and kinds of parameters that cannot be listed."""

    policies: AdmissionPolicies
    faults: Sequence[UnusableAdmissionPolicy]
    unlisted: Mapping[GroupVersionKind, str]

    @property
    def texts(self) -> list[str]:
        """The faults, a text each."""
        listed = [f"parameters of {kind}: {text}" for kind, text in self.unlisted.items()]
        return [*map(str, self.faults), *listed]


async def read_admission_policies(
    client: ClusterClient, *, mutating: bool = False
) -> AdmissionPolicyReading:
    """Read those of a cluster, with their parameters; the mutating ones, too, where it is said.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    items: list[Any] = []
    faults: list[UnusableAdmissionPolicy] = []
    discovery = Discovery(client)
    for kind, read in _READERS.items():
        if kind in _VALIDATING or mutating:
            for document in await _of_kind(client, discovery, kind):
                if not is_generated(document):
                    _take(document, read, items, faults)
    policies = AdmissionPolicies(items)
    store = ParameterStore()
    unlisted: dict[GroupVersionKind, str] = {}
    for gvk in policies.kinds_of_parameters:
        await _add_parameters(client, discovery, gvk, store, unlisted)
    return AdmissionPolicyReading(policies.with_parameters(store), faults, unlisted)


def is_generated(document: Mapping[str, Any]) -> bool:
    """Whether it is made of a template or a constraint, by whoever makes them."""
    owners = objects_of((document.get("metadata") or {}).get("ownerReferences"))
    return any(gvk_of(owner).group in _GENERATORS for owner in owners)


def _take(
    document: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Any],
    items: list[Any],
    faults: list[UnusableAdmissionPolicy],
) -> None:
    try:
        items.append(read(document))
    except ConstraintFrameworkError as error:
        faults.append(UnusableAdmissionPolicy(gvk_of(document).kind, name_of(document), str(error)))


async def _of_kind(client: ClusterClient, discovery: Discovery, kind: str) -> list[Object]:
    """All policies or bindings of a kind, at whatever version it is served; none where it is not."""
    gvk = GroupVersionKind(GROUP, VERSIONS[0], kind)
    try:
        return await _listed(client, await discovery.of_versions(gvk, VERSIONS))
    except UnknownKind:
        return []


async def _add_parameters(
    client: ClusterClient,
    discovery: Discovery,
    kind: GroupVersionKind,
    store: ParameterStore,
    unlisted: dict[GroupVersionKind, str],
) -> None:
    try:
        resource = await discovery.resource(kind)
        objects = await _listed(client, resource)
    except UnknownKind as error:
        unlisted[kind] = f"{error}: apply its CustomResourceDefinition, or mend spec.paramKind"
        store.lack(kind, unlisted[kind])
    except ApiError as error:
        unlisted[kind] = f"{error}: a ClusterRole must let Waddle list them"
        store.lack(kind, unlisted[kind])
    else:
        store.put(kind, objects, namespaced=resource.namespaced)


async def _listed(client: ClusterClient, resource: Resource) -> list[Object]:
    """All objects of a kind, each with its kind; none where it is not served."""
    pages = Pages(
        client, resource, size=PageSize.first(POLICIES_OF_A_PAGE), statistics=ListStatistics()
    )
    head = {"apiVersion": resource.gvk.group_version, "kind": resource.gvk.kind}
    try:
        return [{**head, **item} async for page in pages for item in page]
    except ApiError as error:
        if error.is_absent:
            return []
        raise
