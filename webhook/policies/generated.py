"""Compares generated policies with the webhook's decisions, request by request."""

from __future__ import annotations

import time
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.api.admission import InvalidReview, read_request
from webhook.api.config import WEBHOOK_PROCESS
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import object_of
from webhook.constraint import enforcement
from webhook.constraint.limits import Limits
from webhook.constraint.match import for_process
from webhook.constraint.placement import request_to_review
from webhook.constraint.review import AugmentedReview
from webhook.exceptions.withdrawal import withdrawn_for
from webhook.generation.plan import Enforced, GenerationPlan, Options, Planner
from webhook.generation.scope import PolicyScope
from webhook.generation.verdict import GeneratedPolicy, UnusablePolicy
from webhook.policies.samples import samples
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.client import Client
    from webhook.constraint.snapshot import Snapshot
    from webhook.exceptions.exception import PolicyException

_REQUESTS: Final = PolicyScope(
    rules=(
        {
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "operations": ["*"],
            "resources": ["*", "*/*"],
            "scope": "*",
        },
    )
)
"""Every request: the webhook's own scope applies equally to its policies."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A request with different decisions of webhook and policy."""

    constraint: tuple[str, str]
    request: str
    webhook: tuple[str, ...]
    policy: tuple[str, ...]


@dataclass(slots=True)
class Agreement:
    """The number of compared reviews, and their differences.

    ``left_to_webhook`` counts errors of evaluations that a policy leaves to the webhook;
    ``not_generated`` lists constraints without a policy, and the reasons.
    """

    compared: int = 0
    left_to_webhook: int = 0
    differences: list[Disagreement] = field(default_factory=list)
    not_generated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pair:
    policy: GeneratedPolicy
    binding: Json
    document: Mapping[str, Any]


def request_of(document: Mapping[str, Any]) -> Json:
    """Returns the creation of an object, as a request."""
    gvk = gvk_of(document)
    kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    resource = {
        "group": gvk.group,
        "version": gvk.version,
        "resource": f"{gvk.kind.lower()}s",
    }
    return {
        "uid": "check",
        "kind": kind,
        "resource": resource,
        "name": name_of(document),
        "namespace": namespace_of(document),
        "operation": "CREATE",
        "userInfo": {"username": "check", "groups": []},
        "object": dict(document),
        "oldObject": None,
        "dryRun": False,
        "options": None,
    }


def agreement(
    client: Client,
    keys: Collection[tuple[str, str]],
    requests: Iterable[Json],
    options: Options,
    seconds: float,
    exceptions: Collection[PolicyException] = (),
) -> Agreement:
    """Compares decisions on the samples of these constraints, and on more requests.

    A review may take so many ``seconds``. During an exception of ``exceptions`` there is no
    binding.
    """
    agreement = Agreement()
    pairs = _pairs(client.snapshot, keys, options, exceptions, agreement)
    if not pairs:
        return agreement
    snapshot = _decided_everywhere(client, pairs)
    all_requests = [
        request_of(sample)
        for pair in pairs.values()
        for sample in samples((pair.document.get("spec") or {}).get("match"))
    ]
    all_requests += requests
    for request in all_requests:
        _compare(snapshot, pairs, request, agreement, seconds)
    return agreement


def _decided_everywhere(client: Client, keys: Collection[tuple[str, str]]) -> Snapshot:
    """Returns the policies as the enforcement point vap.k8s.io decides by them.

    They have results of its scoped actions, and spare the namespaces that admissions leave out.
    """
    other = client.copy()
    other.adopt(client.snapshot)
    for constraint in client.snapshot.constraints:
        if constraint.key not in keys:
            continue
        spec = {**object_of(constraint.document.get("spec"))}
        if constraint.enforcement_action == "scoped":
            spec.pop("scopedEnforcementActions")
            spec["enforcementAction"] = "deny"
        match = for_process(object_of(spec.get("match")), WEBHOOK_PROCESS)
        if "processes" in match:
            spec["match"] = {name: value for name, value in match.items() if name != "processes"}
        if spec != constraint.document.get("spec"):
            other.add_constraint({**constraint.document, "spec": spec})
    return other.snapshot


def _pairs(
    snapshot: Snapshot,
    keys: Collection[tuple[str, str]],
    options: Options,
    exceptions: Collection[PolicyException],
    agreement: Agreement,
) -> dict[tuple[str, str], _Pair]:
    constraints = {
        constraint.key: constraint for constraint in snapshot.constraints if constraint.key in keys
    }
    plan = Planner(options, "v1").plan(
        {entry.template.name: entry.template.document for entry in snapshot.entries},
        {
            key: Enforced(constraint.document, constraint.enforcement_action)
            for key, constraint in constraints.items()
        },
        _REQUESTS,
        lambda _: "",
        partial(withdrawn_for, exceptions, now=time.time()),
    )
    agreement.not_generated = {
        name: generated.error for name, generated in plan.templates.items() if generated.error
    }
    pairs: dict[tuple[str, str], _Pair] = {}
    for key, generated in plan.constraints.items():
        if why := generated.error or generated.withdrawn:
            agreement.not_generated["/".join(key)] = why
            continue
        try:
            pairs[key] = _pair(plan, generated.binding, constraints[key].document)
        except UnusablePolicy as error:
            agreement.not_generated["/".join(key)] = f"an API server would refuse it: {error}"
    return pairs


def _pair(plan: GenerationPlan, name: str, document: Mapping[str, Any]) -> _Pair:
    bound = plan.bindings[name]
    policy = GeneratedPolicy(plan.policies[bound["spec"]["policyName"]])
    return _Pair(policy, bound, document)


def _compare(
    snapshot: Snapshot,
    pairs: Mapping[tuple[str, str], _Pair],
    request: Json,
    agreement: Agreement,
    seconds: float,
) -> None:
    try:
        whole = read_request(request)
        read = request_to_review(whole)
    except InvalidReview:
        return
    place = read.namespace
    namespace = snapshot.namespaces.get(place) if place else None
    if place and namespace is None:
        labels = {"kubernetes.io/metadata.name": place}
        namespace = {"metadata": {"name": place, "labels": labels}}
    # An API server policy reviews one object as it is received: only such reviews are compared.
    subject = Subject(
        AugmentedReview(read, namespace=namespace),
        point=enforcement.AUDIT,
        limits=Limits(time.monotonic() + seconds),
        excludes=False,
        mutates=False,
        expands=False,
        releases=False,
    )
    responses = review(PolicySet(snapshot), subject).responses
    messages: dict[tuple[str, str], list[str]] = {}
    for result in responses.results:
        messages.setdefault(result.constraint.key, []).append(result.msg)
    shown = f"{read.operation} {read.kind.kind} " + "/".join(filter(None, (place, read.name)))
    for key, pair in pairs.items():
        mine = messages.get(key, [])
        verdict = pair.policy.say(pair.binding, dict(pair.document), whole.document, namespace)
        agreement.compared += 1
        if verdict.ignored and set(verdict.messages) <= set(mine):
            agreement.left_to_webhook += 1
        elif sorted(mine) != sorted(verdict.messages):
            agreement.differences.append(
                Disagreement(key, shown, tuple(sorted(mine)), tuple(sorted(verdict.messages)))
            )
