"""Kyverno's policies in CEL at a real API server: enforced by three replicas, audited, and told."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.catch_all_webhooks import EVERYTHING, NOBODY
from tests.cluster import ApiError
from tests.patience import PATIENCE_SECONDS, until
from tests.policies import definition
from tests.system import reporting
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import (
    CRD_PATH,
    NAMESPACE,
    PATIENT_SECONDS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
)
from tests.system.reporting import by_scope, make_namespace, metric
from tests.webhook.cli.in_process import waddle
from tests.webhook.kyverno.making import LABEL, applied, document
from webhook.policy_kinds.table import KYVERNO_KINDS
from webhook.reports.report_api import WGPOLICY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

Json = dict[str, Any]
GROUP = "policies.kyverno.io"
VERSION = "v1"
POLICIES = f"/apis/{GROUP}/{VERSION}/validatingpolicies"
EXCEPTIONS = f"/apis/{GROUP}/{VERSION}/namespaces/{WORKLOADS}/policyexceptions"
SPACE = "kyverno-audited"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
MESSAGE = "pods of the host's network are refused"
NO_LEASES = f"{NOBODY} && request.resource.resource != 'leases'"
ENFORCE = "--kyverno-policies=enforce"


def install(plane: Plane) -> None:
    """Waddle's CRDs and the reports', and those of an installation of Kyverno."""
    reporting.install(plane)
    for row in KYVERNO_KINDS:
        path = f"{CRD_PATH}/{row.plural}.{GROUP}"
        plane.api.apply(
            path,
            definition(row.kind, row.plural, GROUP, version=VERSION, namespaced=row.namespaced),
        )
        until(lambda path=path: reporting.is_established(plane, path), f"{path} is served")
    make_namespace(plane, SPACE)
    plane.await_account(SPACE)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of an installation of Kyverno."""
    with control_plane(tmp_path_factory.mktemp("kyverno"), install=install) as made:
        yield made


@pytest.fixture
def trio(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas that enforce Kyverno's policies, one of which the API server asks."""
    with ExitStack() as stack:
        started = []
        for number in range(3):
            name = f"kyverno-{number}"
            stack.callback(plane.delete_pod, name)
            started.append(stack.enter_context(Replica(plane, name, *ALL_OPERATIONS, ENFORCE)))
        for replica in started:
            replica.wait_ready()
        stack.callback(plane.unregister)
        resources, groups = ("pods", "deployments"), ("", "apps")
        plane.register(started[0].ports["admission"], resources=resources, groups=groups)
        yield started


@pytest.fixture
def policed(plane: Plane) -> Iterator[Plane]:
    """The plane with a policy, which is gone afterwards as its exceptions are.

    What the configuration sends that sends everything is then what it was.
    """
    plane.api.apply(f"{POLICIES}/host", policy())
    yield plane
    send(plane, NOBODY)
    for folder in (POLICIES, EXCEPTIONS):
        for item in plane.api.request("GET", folder)["items"]:
            plane.api.request("DELETE", f"{folder}/{item['metadata']['name']}")


def send(plane: Plane, expression: str, folder: str = WEBHOOKS) -> None:
    """Let the configuration send only requests for which an expression is true."""
    path = f"{folder}/{EVERYTHING}"
    document = plane.api.request("GET", path)
    document["webhooks"][0]["matchConditions"][0]["expression"] = expression
    plane.api.request("PUT", path, document)


def policy(
    expression: str = "object.spec.?hostNetwork.orValue(false) == false", **more: Any
) -> Json:
    """Returns a policy that refuses Pods of the host's network, and their controllers."""
    spec = {
        "matchConstraints": {"resourceRules": [PODS]},
        "validations": [{"expression": expression, "message": MESSAGE}],
        **more,
    }
    head = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ValidatingPolicy"}
    return {**head, "metadata": {"name": "host"}, "spec": spec}


def exception(expression: str) -> Json:
    """Returns an exception from that policy, for objects that match an expression."""
    spec = {
        "policyRefs": [{"kind": "ValidatingPolicy", "name": "host"}],
        "matchConditions": [{"name": "is-meant", "expression": expression}],
    }
    head = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "PolicyException"}
    return {**head, "metadata": {"name": "meant", "namespace": WORKLOADS}, "spec": spec}


def pod(name: str, *, host: bool = True, namespace: str = WORKLOADS) -> Json:
    """A Pod of the host's network, or of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hostNetwork": host, "containers": [{"name": "c", "image": "app:1"}]},
    }


def deployment(name: str) -> Json:
    """A Deployment whose Pods are of the host's network."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": WORKLOADS},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def refusal(plane: Plane, obj: Json) -> str:
    """Returns the API server's refusal of an object; empty if it is admitted."""
    group = "/api/v1" if obj["kind"] == "Pod" else "/apis/apps/v1"
    path = f"{group}/namespaces/{WORKLOADS}/{obj['kind'].lower()}s?dryRun=All"
    try:
        plane.api.request("POST", path, obj)
    except ApiError as error:
        if error.status != 403:
            raise
        return error.body
    return ""


def denies(replica: Replica, obj: Json) -> bool:
    """Whether a replica that is asked itself denies an object."""
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return replica.admit(obj, resource=resource)["allowed"] is False


def test_every_replica_denies_by_a_policy_of_kyverno_s_and_by_what_it_implies(
    policed: Plane, trio: list[Replica]
) -> None:
    until(lambda: all(denies(one, pod("bad")) for one in trio), "every replica denies")
    assert f"[host] {MESSAGE}" in refusal(policed, pod("bad"))
    assert f"[host] {MESSAGE}" in refusal(policed, deployment("bad"))
    assert refusal(policed, pod("good", host=False)) == ""

    policed.api.apply(f"{EXCEPTIONS}/meant", exception("object.metadata.name == 'meant'"))
    until(lambda: not any(denies(one, pod("meant")) for one in trio), "every replica excuses it")
    assert refusal(policed, pod("meant")) == ""
    assert MESSAGE in refusal(policed, pod("bad"))

    policed.api.request("DELETE", f"{EXCEPTIONS}/meant")
    until(lambda: all(denies(one, pod("meant")) for one in trio), "none excuses it any more")


def test_a_policy_that_cannot_be_used_is_reported_and_leaves_the_last_good_one(
    policed: Plane, trio: list[Replica]
) -> None:
    until(lambda: all(denies(one, pod("bad")) for one in trio), "every replica denies")
    policed.api.apply(f"{POLICIES}/host", policy("random() == ''"))
    until(
        lambda: all(metric(one, "waddle_kyverno_policies", status="error") == 1 for one in trio),
        "every replica says that the policy is in error",
    )
    assert all(denies(one, pod("bad")) for one in trio)
    output = waddle("status", "--kubeconfig", policed.cluster.kubeconfig, "-n", NAMESPACE)
    options = ("--kubeconfig", policed.cluster.kubeconfig, "-n", NAMESPACE)
    output = waddle("status", *options)
    assert "ValidatingPolicy/host: spec.validations[0].expression: " in output.stdout, output.stderr
    (row,) = json.loads(waddle("status", *options, "-o", "json").stdout)["kyvernoPolicies"]
    assert (row["name"], row["state"]) == ("ValidatingPolicy/host", "Unusable")


def test_one_that_nobody_is_asked_about_is_reported_until_a_rule_sends_what_it_is_for(
    policed: Plane, trio: list[Replica]
) -> None:
    """By the metric, status and wait."""
    plane, named = policed, "ValidatingPolicy/silent"
    send(plane, NO_LEASES)
    rule = {**PODS, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    made = policy("true", matchConstraints={"resourceRules": [rule]})
    made["metadata"]["name"] = "silent"
    options = ("--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    plane.mark_pod(trio[0].name, ready=True)
    plane.api.apply(f"{POLICIES}/silent", made)
    count = "waddle_kyverno_policies"
    until(
        lambda: all(metric(one, count, status="notasked") == 1 for one in trio),
        "every replica says that nobody is asked",
    )
    shown = {
        one["name"]: one
        for one in json.loads(waddle("status", *options, "-o", "json").stdout)["kyvernoPolicies"]
    }
    assert (shown[named]["state"], shown["ValidatingPolicy/host"]["state"]) == (
        "NotAsked",
        "Usable",
    )
    until(lambda: "NotAsked: the matchCondition" in end_of_wait(named, *options), "wait says why")

    send(plane, NOBODY)
    done = waddle("wait", named, f"--timeout={PATIENCE_SECONDS:.0f}s", *options)
    assert done.returncode == 0, done
    until(
        lambda: all(metric(one, count, status="notasked") == 0 for one in trio),
        "every replica says that somebody is asked",
    )


def test_what_violates_is_reported_and_counted_and_no_admission_is_denied(plane: Plane) -> None:
    made = policy()
    made["metadata"]["name"] = "audited"
    flags = ("--operation=webhook", "--operation=audit", "--audit-interval=1", "--reports")
    drifting = labelling()
    drifting["metadata"] = {"name": "drifting"}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}
    rule = {**PODS, "operations": ["UPDATE"]}
    drifting["spec"]["matchConstraints"] = {"resourceRules": [rule], **here}
    drift = {"mutator_kind": "MutatingPolicy", "mutator_name": "drifting"}
    plane.api.request("POST", f"/api/v1/namespaces/{SPACE}/pods", pod("bad", namespace=SPACE))
    audited = ("--kyverno-policies=audit", "--report-mutation-drift")
    labels = {"policy": "audited", "enforcement_action": "deny"}
    plane.api.apply(f"{POLICIES}/audited", made)
    plane.api.apply(f"{MUTATING}/drifting", drifting)
    try:
        with Replica(plane, "kyverno-auditor", *flags, *audited) as replica:
            replica.wait_ready()

            def messages_of() -> dict[tuple[str, str], str]:
                results = by_scope(plane, SPACE).get("bad", {"results": ()})["results"]
                return {(one["policy"], one["rule"]): one["message"] for one in results}

            until(lambda: len(messages_of()) == 2, "what both policies find is reported")
            messages = messages_of()
            assert messages["ValidatingPolicy", "audited"] == MESSAGE
            changes = messages["MutatingPolicy", "drifting"]
            assert changes.startswith("once it is enforced, would change /metadata/labels")
            until(
                lambda: metric(replica, "waddle_kyverno_policy_violations", **labels) >= 1,
                "the audit counts it",
            )
            assert not denies(replica, pod("bad"))
            until(
                lambda: metric(replica, "waddle_mutation_drift_objects", **drift) == 1,
                "the audit counts what a mutating policy would change, once it is enforced",
            )
    finally:
        plane.api.request("DELETE", f"{MUTATING}/drifting")
        plane.api.request("DELETE", f"{POLICIES}/audited")
        plane.delete_pod("kyverno-auditor")
        reporting.delete_all(plane, WGPOLICY, SPACE)
        path = f"/api/v1/namespaces/{SPACE}/pods/bad?gracePeriodSeconds=0"
        plane.api.request("DELETE", path)


MUTATING = f"/apis/{GROUP}/{VERSION}/mutatingpolicies"
MUTATING_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
CONFIGURATION = f"{MUTATING_WEBHOOKS}/kyverno-tests"
NO_SECRETS = f"{NOBODY} && request.resource.resource != 'secrets'"
CONFIG_MAPS = f"/api/v1/namespaces/{WORKLOADS}/configmaps"


def labelling(*mutations: Json, **more: Any) -> Json:
    """Returns a policy that labels created ConfigMaps."""
    rule = {**PODS, "resources": ["configmaps"]}
    made = document(*(mutations or (applied(LABEL),)), **more)
    made["spec"]["matchConstraints"] = {"resourceRules": [rule]}
    return {**made, "metadata": {"name": "team"}}


@pytest.fixture
def changers(plane: Plane) -> Iterator[list[Replica]]:
    """Two replicas mutate by Kyverno's policies; the API server calls the first."""
    operations = (*ALL_OPERATIONS, "--operation=mutation-webhook", ENFORCE)
    with ExitStack() as stack:
        started = []
        for number in range(2):
            name = f"kyverno-changer-{number}"
            stack.callback(plane.delete_pod, name)
            started.append(stack.enter_context(Replica(plane, name, *operations)))
        for replica in started:
            replica.wait_ready()
        webhook = {
            "name": "mutation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"https://127.0.0.1:{started[0].ports['admission']}/v1/mutate",
                "caBundle": plane.bundle,
            },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": PATIENT_SECONDS,
            "matchConditions": [
                {"name": "own", "expression": "request.name.startsWith('changed-')"}
            ],
            "rules": [{**PODS, "resources": ["configmaps"]}],
        }
        head = {"apiVersion": "admissionregistration.k8s.io/v1"}
        body = {**head, "kind": "MutatingWebhookConfiguration", "webhooks": [webhook]}
        plane.api.apply(CONFIGURATION, {**body, "metadata": {"name": "kyverno-tests"}})
        stack.callback(plane.api.request, "DELETE", CONFIGURATION)
        stack.callback(send, plane, NOBODY, MUTATING_WEBHOOKS)
        yield started
        for item in plane.api.request("GET", MUTATING)["items"]:
            plane.api.request("DELETE", f"{MUTATING}/{item['metadata']['name']}")


def config_map() -> Json:
    """A ConfigMap that the webhook is asked about."""
    metadata = {"name": "changed-one", "namespace": WORKLOADS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def stored_labels(plane: Plane) -> Json:
    """The labels with which the API server would store it."""
    made = plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map())
    return made["metadata"].get("labels") or {}


def test_objects_are_stored_as_a_mutating_policy_makes_them(
    plane: Plane, changers: list[Replica]
) -> None:
    plane.api.apply(f"{MUTATING}/team", labelling())
    until(lambda: stored_labels(plane) == {"team": "a"}, "the API server stores the label")
    until(
        lambda: all(
            metric(one, "waddle_kyverno_policies", status="active") == 1 for one in changers
        ),
        "both replicas know it",
    )

    refused = labelling(evaluation={"mutateExisting": {"enabled": True}})
    plane.api.apply(f"{MUTATING}/team", refused)
    until(
        lambda: all(
            metric(one, "waddle_kyverno_policies", status="error") == 1 for one in changers
        ),
        "both replicas say that it is in error",
    )
    assert stored_labels(plane) == {"team": "a"}, "its last good generation stays"
    output = waddle("status", "--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    assert "MutatingPolicy/team: spec.evaluation.mutateExisting: " in output.stdout, output.stderr

    failing = labelling(applied(LABEL.replace('"a"', "object.data.none")))
    plane.api.apply(f"{MUTATING}/team", failing)

    def is_refused() -> bool:
        try:
            stored_labels(plane)
        except ApiError as error:
            return "MutatingPolicy/team no such key: " in error.body
        return False

    until(is_refused, "what cannot be changed is refused")
    plane.api.request("DELETE", f"{MUTATING}/team")
    until(lambda: stored_labels_or_none(plane) == {}, "nothing is changed any more")


def test_a_mutating_policy_that_nobody_is_asked_about_or_that_costs_too_much_says_so(
    plane: Plane, changers: list[Replica]
) -> None:
    """By the metric, status and wait."""
    secrets = labelling()
    rule = {**PODS, "resources": ["secrets"]}
    secrets["spec"]["matchConstraints"] = {"resourceRules": [rule]}
    secrets["metadata"] = {"name": "secrets"}
    loops = "!has(object.data) || object.data.all(a, object.data.all(b, object.data.all(c, "
    condition = f"{loops}object.data.all(d, d == a + b + c))))"
    costly = labelling(matchConditions=[{"name": "loops", "expression": condition}])
    costly["metadata"] = {"name": "costly"}
    options = ("--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    plane.mark_pod(changers[0].name, ready=True)
    send(plane, NO_SECRETS, MUTATING_WEBHOOKS)
    for one in (secrets, costly):
        plane.api.apply(f"{MUTATING}/{one['metadata']['name']}", one)
    count = "waddle_kyverno_policies"
    until(
        lambda: all(
            (metric(one, count, status="active"), metric(one, count, status="notasked")) == (1, 1)
            for one in changers
        ),
        "every replica says that nobody is asked about one of the two",
    )
    shown = json.loads(waddle("status", *options, "-o", "json").stdout)["kyvernoPolicies"]
    by_name = {one["name"]: one for one in shown}
    silent, used = by_name["MutatingPolicy/secrets"], by_name["MutatingPolicy/costly"]
    assert (silent["state"], used["state"]) == ("NotAsked", "Usable")
    assert "Waddle would end it where lists and maps have" in " ".join(used["notes"])
    secrets_wait = ("MutatingPolicy/secrets", *options)
    until(lambda: "NotAsked: " in end_of_wait(*secrets_wait), "wait says why")
    done = waddle("wait", "MutatingPolicy/costly", f"--timeout={PATIENCE_SECONDS:.0f}s", *options)
    assert done.returncode == 0, done


def end_of_wait(named: str, *options: str | Path) -> str:
    """Returns what `waddle wait` says at its end, where the policy is not enforced.

    In its two seconds it may not have asked everything yet.
    """
    done = waddle("wait", named, "--timeout", "2s", *options)
    assert done.returncode == 1, done
    return done.stderr


def stored_labels_or_none(plane: Plane) -> Json | None:
    """The same; None where it is refused."""
    try:
        return stored_labels(plane)
    except ApiError:
        return None
