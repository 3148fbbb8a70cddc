"""The state of the API server's own policies in a cluster: bindings, faults, and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission_policies.kinds import BINDING, MUTATING_BINDING
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.audit.admission_policies import AdmissionPolicyReading, read_admission_policies
from webhook.cluster.discovery import Discovery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.cluster.client import ClusterClient

_BINDINGS = (BINDING, MUTATING_BINDING)


class AdmissionPolicyStanding(NamedTuple):
    """A policy, or a binding without one: whether it decides requests, and its mistakes.

    ``state`` is Bound, NotBound, Unusable, or NotFound for a policy that only bindings name.
    ``bindings`` are names with their actions. ``cost`` is the estimated part, of 1, of the API
    server's limit that its expressions use; ``costliest`` is the field that uses most.
    """

    kind: str
    name: str
    state: str
    bindings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()
    cost: float | None = None
    costliest: str = ""

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind}/{self.name}"


async def admission_policy_standings(client: ClusterClient) -> list[AdmissionPolicyStanding]:
    """Returns the state of each policy of a cluster, mutating ones last.

    Raises as :func:`~webhook.audit.admission_policies.read_admission_policies`.
    """
    reading = await read_admission_policies(client, mutating=True)
    served = _Served(Discovery(client))
    unserved = {
        (policy.kind, policy.name): [text async for text in served.missing(policy.policy.document)]
        for policy in reading.policies.listed()
    }
    return standings_of(reading, unserved)


def standings_of(
    reading: AdmissionPolicyReading, unserved: Mapping[tuple[str, str], list[str]]
) -> list[AdmissionPolicyStanding]:
    """Returns a row for each policy.

    ``unserved`` returns a policy's rules without served resources.
    """
    notes = _notes(reading)
    standings = []
    for listed in reading.policies.listed():
        key, policy = (listed.kind, listed.name), listed.policy
        unlisted = reading.unlisted.get(policy.param_kind) if policy.param_kind else None
        texts = (
            *((f"spec.paramKind: {unlisted}",) if unlisted else ()),
            *unserved.get(key, ()),
            *notes.pop(key, ()),
        )
        state = "Bound" if listed.bindings else "NotBound"
        cost = policy.cost
        standings.append(
            AdmissionPolicyStanding(*key, state, listed.bindings, texts, cost.share, cost.field)
        )
    broken = {(fault.kind, fault.name): fault.text for fault in reading.faults}
    for key in sorted(notes.keys() | broken.keys()):
        # The policy of an unusable object exists: its bindings are not at fault.
        texts = (broken[key],) if key in broken else tuple(notes[key])
        state = "Unusable" if key in broken else "NotFound"
        standings.append(AdmissionPolicyStanding(*key, state, (), texts))
    return sorted(
        standings,
        key=lambda standing: (standing.kind.startswith("Mutating"), standing.kind, standing.name),
    )


def _notes(reading: AdmissionPolicyReading) -> dict[tuple[str, str], list[str]]:
    """Returns notes on each policy, by kind and name."""
    notes: dict[tuple[str, str], list[str]] = {}
    for kind, name, text in reading.policies.warnings({}):
        if kind in _BINDINGS:
            key, note = reading.policies.policy_of(kind, name), f"binding {name}: {text}"
        else:
            key, note = (kind, name), text
        notes.setdefault(key, []).append(note)
    return notes


class _Served:
    """Finds the resources in rules that an API server does not serve."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    async def missing(self, document: Mapping[str, Any]) -> Any:
        """Returns a text for each rule of a policy that names something that is not served."""
        matched = object_of(object_of(document.get("spec")).get("matchConstraints"))
        for number, rule in enumerate(objects_of(matched.get("resourceRules"))):
            served: set[str] = set()
            groups, versions = texts_of(rule.get("apiGroups")), texts_of(rule.get("apiVersions"))
            if "*" in groups:
                continue
            for group in groups:
                for version in versions:
                    served |= await self._plurals(group, version)
            missing = [resource for resource in _named(rule) if resource not in served]
            if missing:
                where = ", ".join(
                    f"{group or 'core'}/{name}" for group in groups for name in versions
                )
                yield (
                    f"spec.matchConstraints.resourceRules[{number}]: the API server serves no "
                    f"{', '.join(missing)} of {where}: apply the CustomResourceDefinition, or correct the "
                    "rule"
                )

    async def _plurals(self, group: str, version: str) -> frozenset[str]:
        key = group, version
        if key not in self._known:
            resources = (
                await self._discovery.of_group(group)
                if version == "*"
                else await self._discovery.kinds(group, version)
            )
            self._known[key] = frozenset(resource.plural for resource in resources)
        return self._known[key]


def _named(rule: Mapping[str, Any]) -> Iterator[str]:
    """Returns the resources in a rule; a subresource counts as its resource."""
    for resource in texts_of(rule.get("resources")):
        plural = resource.partition("/")[0]
        if plural != "*":
            yield plural
