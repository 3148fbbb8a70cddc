"""Answers of an API server and ours to the same cases: the same message, or the same object."""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.cluster import Api, ApiError, serves
from tests.differential.admission_policies.made import API, Case, parameters
from tests.differential.admission_policies.requests import (
    CASE,
    CONFIG,
    SPACE,
    WIDGETS,
    Json,
    Request,
)
from tests.patience import until
from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.limits import Limits
from webhook.constraint.targets.known import TARGETS
from webhook.policies.manifests import Manifest
from webhook.policies.policy_files import PolicyFiles
from webhook.policy_kinds.known import foreign_parts
from webhook.policy_kinds.parts import read_admission_policy
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, value_of

GROUP = f"/apis/{API}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
EVERYTHING: Json = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview",
    "spec": {
        "user": "*",
        "resourceAttributes": dict.fromkeys(
            ("verb", "group", "resource", "subresource", "namespace", "name"), "*"
        ),
    },
    "status": {"allowed": True},
}
"""The tests' user may do everything."""

_DENIED = re.compile(r"^(?:.*? is forbidden: )?", re.DOTALL)
SETTLING_SECONDS = 20.0
"""An API server that goes by a policy may not have its parameters yet: it is asked again so long."""
_SET_BY_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")


def install(api: Api, cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Create all, and wait until the API server goes by the last of them.

    Gives those that it takes, and those that it refuses.
    """
    for one in parameters():
        _create(api, CONFIG.path, one)
    _create(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
    until(lambda: serves(api, WIDGETS), "the custom resources are served")
    for request in (one for case in cases for one in case.requests if one.stored):
        assert _create(api, request.kind.path, request.stored or {})
    kind = cases[0].policy["kind"]
    taken, refused = [], []
    for made in (*cases, _sentinel(kind, f"last-after-{cases[0].name}")):
        if not _create(api, f"{GROUP}/{PLURALS[kind]}", made.policy):
            refused.append(made)
            continue
        taken.append(made)
        for binding in made.bindings:
            assert _create(api, f"{GROUP}/{PLURALS[binding['kind']]}", binding)
    (probe,) = taken.pop().requests
    until(lambda: server_verdict(api, probe)[0], "the API server goes by the last policy")
    return taken, refused


def remove(api: Api, cases: Sequence[Case]) -> None:
    """Delete what :func:`install` made: others may count an API server's policies."""
    kind = cases[0].policy["kind"]
    for made in (*cases, _sentinel(kind, f"last-after-{cases[0].name}")):
        for one in (*made.bindings, made.policy):
            path = f"{GROUP}/{PLURALS[one['kind']]}/{one['metadata']['name']}"
            with contextlib.suppress(ApiError):  # one that was refused is not there
                api.request("DELETE", path)


def _create(api: Api, path: str, document: Json) -> bool:
    """Whether the API server takes an object; one that is there already is taken."""
    try:
        api.request("POST", path, document)
    except ApiError as error:
        if error.status == 422:
            return False
        if error.status != 409:
            raise
    return True


def _sentinel(kind: str, name: str) -> Case:
    """A policy that refuses what is labelled with its name."""
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ],
            "objectSelector": {"matchLabels": {CASE: name}},
        },
        "validations": [{"expression": "false"}],
    }
    bound: Json = {"policyName": name, "validationActions": ["Deny"]}
    if kind == "MutatingAdmissionPolicy":
        del spec["validations"], bound["validationActions"]
        spec["reinvocationPolicy"] = "Never"
        patch = '[JSONPatch{op: "remove", path: "/none"}]'
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    head: Json = {"apiVersion": API, "metadata": {"name": name}}
    policy = {**head, "kind": kind, "spec": spec}
    binding = {**head, "kind": f"{kind}Binding", "spec": bound}
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SPACE, "labels": {CASE: name}},
    }
    return Case(name, policy, (binding,), (Request(CONFIG, "CREATE", name, obj),))


def server_verdict(api: Api, request: Request) -> tuple[str, Any]:
    """Returns the API server's refusal of a request, and the object that it would store."""
    try:
        made = _send(api, request)
    except ApiError as error:
        message = str(_message(error))
        if request.operation == "CONNECT" and "AdmissionPolicy" not in message:
            return "", None  # no node runs the Pod
        return _DENIED.sub("", message), None
    if request.operation != "DELETE":
        for name in _SET_BY_SERVER:
            made["metadata"].pop(name, None)
    return "", made


def _send(api: Api, request: Request) -> Any:
    """Send a request as a dry run, and return the answer."""
    if request.operation == "CONNECT":
        command = (request.object or {})["command"][0]
        return api.request("POST", f"{request.path}?command={command}&stdout=1&stderr=1")
    if request.operation == "DELETE":
        return api.request("DELETE", request.path, {"dryRun": ["All"]})
    if request.operation == "UPDATE":
        return api.request("PUT", f"{request.path}?dryRun=All", request.object)
    path = request.path if request.kind.sub else request.kind.path
    return api.request("POST", f"{path}?dryRun=All", request.object)


def old_object(api: Api, request: Request) -> Json | None:
    """Returns what the API server holds of the object that a request changes or deletes."""
    if request.operation in {"CREATE", "CONNECT"}:
        return None
    return dict(api.request("GET", request.path))


def _message(error: ApiError) -> Any:
    return json.loads(error.body)["message"]


def policies_of(cases: Sequence[Case]) -> PolicySet:
    """All of them, as doors over files read them."""
    documents = [EVERYTHING]
    for one in cases:
        documents += [one.policy, *one.bindings]
    client = Client(targets=TARGETS, drivers=(CelDriver(),))
    given = [Manifest(one, "made", 1) for one in documents]
    policies, report = PolicyFiles(client, (), given, foreign=foreign_parts()).load()
    assert not report.faults, report.faults
    for parameter in parameters():
        client.add_data(parameter)
    return PolicySet(client.snapshot, stages=policies.stages)


def our_verdict(policies: PolicySet, request: Request, old: Json | None) -> tuple[list[str], Any]:
    """Returns our denials of a request, and the object that we would store."""
    value = value_of(request.review(old), policies.snapshot.namespaces)
    found = review(policies, Subject(value, limits=Limits()))
    denials = [one.msg for one in found.responses.results if "deny" in one.actions]
    denials += [str(one) for one in found.responses.undecided]
    return [*denials, *filter(None, [found.unmutated])], found.object


def differences(api: Api, cases: Sequence[Case]) -> Iterator[str]:
    """Yields the cases with different answers."""
    taken, refused = install(api, cases)
    for one in refused:
        try:
            read_admission_policy(one.policy)
        except InvalidAdmissionPolicy:
            continue
        yield f"{one.name}: the API server refuses the policy; we read it"
    policies = policies_of(taken)
    for case in taken:
        for request in case.requests:
            old = old_object(api, request)
            if old is not None and request.object is not None:  # custom resources must have it
                request.object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            end = time.monotonic() + SETTLING_SECONDS
            while (
                text := _difference(api, policies, case, request, old)
            ) and time.monotonic() < end:
                time.sleep(0.1)
            if text:
                title = f"{request.operation} {request.kind.name} {request.name}"
                yield f"{case.name} {title}: {text}"


def _difference(
    api: Api, policies: PolicySet, case: Case, request: Request, old: Json | None
) -> str:
    """The verdicts of both on a request, where they differ; empty where they do not."""
    ours, made = our_verdict(policies, request, old)
    message, stored = server_verdict(api, request)
    if not ours and case.policy["kind"] == "MutatingAdmissionPolicy":
        # Our object, which no policy matches any more, becomes the same object, or is
        # refused for the same reason.
        again, stored_of_ours = server_verdict(api, replace(request, object=_out_of(made)))
        if (again, stored_of_ours) != (message, stored and _out_of(stored)):
            return f"the API server: {message or stored}; we: {again or stored_of_ours}"
    elif bool(message) != bool(ours):
        return f"the API server: {message or 'admitted'}; we: {ours or 'admitted'}"
    elif message and not any(_same_text(message, one) for one in ours):
        return f"the API server says {message}; we say {ours}"
    return ""


def _out_of(obj: Json) -> Json:
    """The same, which is of no case."""
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), CASE: "none"}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _same_text(message: str, ours: str) -> bool:
    """Whether a message of ours has what the API server tells of why."""
    why = re.split(r"denied request: ", message, maxsplit=1)[-1]
    return why.strip() in ours
