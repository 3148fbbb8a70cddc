"""The API server's own policies in a cluster, read so that audit and reports review by them.

They are read whole, again and again: policies, bindings, and the objects that bindings name as
parameters. Those that Waddle or Gatekeeper generates say what constraints say already, and are left
out. Nobody enforces anything by them here: the API server does.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission_policies.kinds import POLICY
from webhook.admission_policies.parameters import ParameterStore
from webhook.admission_policies.reading import read_binding, read_policy
from webhook.api.gvk import gvk_of, name_of
from webhook.api.shapes import object_of, objects_of
from webhook.audit.pages import ListStatistics, Pages
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import POLICIES, POLICY_BINDINGS
from webhook.cluster.page_size import PageSize
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.metrics.audit import ADMISSION_POLICIES
from webhook.review.admission_policies import AdmissionPolicies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Serving

READ_SECONDS: Final = 30.0
"""Between two readings at most: an audit's interval is a minute, unless it is set."""

POLICIES_OF_A_PAGE: Final = 500

_GENERATORS: Final = ("templates.gatekeeper.sh", "constraints.gatekeeper.sh")


class AdmissionPolicyReader:
    """Keeps :attr:`Serving.admission_policies` as a cluster has them. Used by one task."""

    def __init__(
        self, serving: Serving, registry: Registry, log: Logger, seconds: float = READ_SECONDS
    ) -> None:
        """``seconds`` are between two readings."""
        serving.awaits_admission_policies = True
        self._seconds = seconds
        self._serving = serving
        self._registry = registry
        self._log = log
        self._told: frozenset[str] = frozenset()

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
        read, faults = await read_admission_policies(client)
        bound = set(read.keys)
        unbound = [kind for kind, _, _ in read.unbound()]
        self._registry.replace(
            ADMISSION_POLICIES,
            {
                ("bound",): float(len(bound)),
                ("unbound",): float(unbound.count(POLICY)),
                ("unusable",): float(len(faults)),
            },
        )
        self._serving.admission_policies = read if bound else None
        self._tell(faults)

    def _tell(self, faults: list[str]) -> None:
        """Log what is wrong, once as long as it is the same."""
        told = frozenset(faults)
        for text in sorted(told - self._told):
            self._log.warning("an admission policy is not audited by", error=text, process="audit")
        self._told = told


async def read_admission_policies(
    client: ClusterClient,
) -> tuple[AdmissionPolicies, list[str]]:
    """Those that are in force, and what cannot be used, each with its reason.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    items: list[Any] = []
    faults: list[str] = []
    for resource, read in ((POLICIES, read_policy), (POLICY_BINDINGS, read_binding)):
        for document in await _listed(client, resource):
            if not is_generated(document):
                _take(document, read, items, faults)
    made = AdmissionPolicies(items)
    store = ParameterStore()
    discovery = Discovery(client)
    for kind in made.kinds_of_parameters:
        await _add_parameters(client, discovery, kind, store, faults)
    return made.with_parameters(store), faults


class AdmissionPolicyStanding(NamedTuple):
    """A policy of a cluster: whether something is reviewed by it, and what is odd about it.

    ``state`` is Bound, NotBound or Unusable. ``bindings`` are names with their actions.
    """

    name: str
    state: str
    bindings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()


async def admission_policy_standings(client: ClusterClient) -> list[AdmissionPolicyStanding]:
    """How each policy of a cluster stands; what cannot be used is among them.

    Raises as :func:`read_admission_policies`.
    """
    read, faults = await read_admission_policies(client)
    notes: dict[str, list[str]] = {}
    for kind, name, text in read.warnings({}):
        policy = name if kind == POLICY else read.policy_of(name)
        notes.setdefault(policy, []).append(text if kind == POLICY else f"binding {name}: {text}")
    standings = [
        AdmissionPolicyStanding(
            name,
            "Bound" if bindings else "NotBound",
            bindings,
            (*notes.pop(name, ()), *type_warnings(document)),
        )
        for name, document, bindings in read.listed()
    ]
    standings += [
        AdmissionPolicyStanding(name, "Unusable", (), tuple(texts))
        for name, texts in sorted(notes.items())
    ]
    for text in faults:
        title, _, why = text.partition(": ")
        standings.append(
            AdmissionPolicyStanding(title.partition("/")[2] or title, "Unusable", (), (why,))
        )
    return standings


def type_warnings(document: Mapping[str, Any]) -> list[str]:
    """Return the warnings of the API server's type check, from a policy's status."""
    checked = object_of(object_of(document.get("status")).get("typeChecking"))
    return [
        f"{one.get('fieldRef')}: {' '.join(str(one.get('warning')).split())}"
        for one in objects_of(checked.get("expressionWarnings"))
    ]


def is_generated(document: Mapping[str, Any]) -> bool:
    """Whether it is made of a template or a constraint, by whoever makes them."""
    owners = objects_of((document.get("metadata") or {}).get("ownerReferences"))
    return any(gvk_of(owner).group in _GENERATORS for owner in owners)


def _take(
    document: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Any],
    items: list[Any],
    faults: list[str],
) -> None:
    try:
        items.append(read(document))
    except ConstraintFrameworkError as error:
        faults.append(f"{gvk_of(document).kind}/{name_of(document)}: {error}")


async def _add_parameters(
    client: ClusterClient,
    discovery: Discovery,
    kind: GroupVersionKind,
    store: ParameterStore,
    faults: list[str],
) -> None:
    try:
        resource = await discovery.resource(kind)
        objects = await _listed(client, resource)
    except UnknownKind as error:
        faults.append(f"parameters of {kind}: {error}")
    except ApiError as error:
        faults.append(f"parameters of {kind}: {error}: a ClusterRole must let Waddle list them")
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
