"""The cluster's own ValidatingAdmissionPolicies: the audit and reports tell what violates them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system import reporting
from tests.system.conftest import StartReplica, control_plane
from tests.system.replicas import NAMESPACE, Plane, Replica
from tests.system.reporting import by_scope, make_namespace, metric, put_config_map
from tests.webhook.admission_policies.making import (
    binding,
    mutating_binding,
    mutating_policy,
    policy,
)
from tests.webhook.cli.in_process import waddle
from webhook.reports.report_api import WGPOLICY

pytestmark = pytest.mark.slow

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
MUTATING = f"{GROUP}/mutatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
SPACE = "own"
RULE = {"resources": ["configmaps"]}
LIMITED = policy(
    "object.data.deny != params.data.word",
    name="limited",
    rule=RULE,
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    auditAnnotations=[{"key": "forbidden", "valueExpression": "'word ' + params.data.word"}],
)
PARAMETERS = {"name": "words", "namespace": SPACE, "parameterNotFoundAction": "Deny"}
LOOPS = "object.a.all(x, object.b.all(y, object.c.exists(z, z == x + y)))"
LABELLED = 'Object{metadata: Object.metadata{labels: {"managed": "yes"}}}'
HERE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}
BOUND = binding("comes", "coming", matchResources=HERE)
AUDIT = ("--operation=audit", "--audit-interval=1", "--reports", "--admission-policies=audit")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a policy that only audits, so that what violates it can be stored."""
    folder = tmp_path_factory.mktemp("own-policies")
    with control_plane(folder, install=reporting.install) as made:
        make_namespace(made, SPACE)
        put_config_map(made, SPACE, "words", "other")
        words = f"/api/v1/namespaces/{SPACE}/configmaps/words"
        patch = [{"op": "add", "path": "/data/word", "value": "no"}]
        made.api.request("PATCH", words, patch, content_type="application/json-patch+json")
        put_config_map(made, SPACE, "bad", "no")
        put_config_map(made, SPACE, "good", "yes")
        made.api.request("POST", POLICIES, LIMITED)
        unbound = policy(LOOPS, name="unbound", rule={"resources": ["configmaps", "gadgets"]})
        made.api.request("POST", POLICIES, unbound)
        made.api.request("POST", MUTATING, mutating_policy(LABELLED, name="labels"))
        yield made


@pytest.fixture
def audit(plane: Plane) -> Iterator[StartReplica]:
    """Starts an audit with these flags; its Pod and its reports end with the test."""
    with ExitStack() as stack:

        def start(name: str, *flags: str) -> Replica:
            stack.callback(plane.delete_pod, name)
            return stack.enter_context(Replica(plane, name, *flags)).wait_ready()

        yield start
    reporting.delete_all(plane, WGPOLICY, SPACE)


@pytest.fixture
def bound(plane: Plane) -> Iterator[None]:
    """The policy is bound while the test runs."""
    everywhere = binding(
        "everywhere",
        "limited",
        validationActions=["Audit"],
        paramRef=PARAMETERS,
        matchResources=HERE,
    )
    plane.api.request("POST", BINDINGS, everywhere)
    yield
    remove(plane, f"{BINDINGS}/everywhere")


@pytest.mark.usefixtures("bound")
def test_what_exists_is_reviewed_by_the_cluster_s_own_policies(
    plane: Plane, audit: StartReplica, tmp_path: Path
) -> None:
    replica = audit("own-auditor", *AUDIT)
    until(
        lambda: reporting_policies(plane) == {"bad": ["ValidatingAdmissionPolicy"]},
        "the violation is reported, and nothing of an audit before",
    )
    (result,) = by_scope(plane, SPACE)["bad"]["results"]
    assert (result["policy"], result["rule"]) == ("ValidatingAdmissionPolicy", "limited")
    assert result["message"].startswith("[binding everywhere] failed expression: ")
    assert result["properties"]["forbidden"] == "word no", "its audit annotation"
    labels = {"policy": "limited", "binding": "everywhere", "enforcement_action": "dryrun"}
    until(
        lambda: metric(replica, "waddle_admission_policy_violations", **labels) == 1,
        "the audit counts it",
    )
    for state in ("bound", "unbound"):
        until(
            lambda state=state: metric(replica, "waddle_admission_policies", state=state) == 1,
            f"one policy is {state}",
        )

    options = ("--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    output = waddle("status", *options)
    assert "ValidatingAdmissionPolicy/limited" in output.stdout, output.stderr
    assert "everywhere (Audit)" in output.stdout
    assert "ValidatingAdmissionPolicy/unbound: no binding names it" in output.stdout
    named = json.loads(waddle("status", *options, "-o", "json").stdout)["admissionPolicies"]
    assert [one["state"] for one in named] == ["Bound", "NotBound", "NotBound"]
    limited, unbound, labels = named
    assert limited["notes"] == []
    assert 0 < limited["costOfLimit"] < 0.01
    assert unbound["costOfLimit"] > 1
    assert "would end it where lists and maps have" in " ".join(unbound["notes"])
    assert "the API server serves no gadgets of core/v1: apply" in " ".join(unbound["notes"])
    assert (labels["kind"], labels["name"]) == ("MutatingAdmissionPolicy", "labels")

    done = waddle("audit", "--once", "--admission-policies", *options)
    assert "ValidatingAdmissionPolicy/limited (dryrun): 1 violation" in done.stdout, done.stderr

    coming = policy("object.data.deny != 'yes'", name="coming", rule=RULE)
    file = tmp_path / "coming.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [coming, BOUND]}))
    done = waddle("check", "-f", file, "--cluster", *options)
    assert "ValidatingAdmissionPolicy/coming: 0 violations now, 1 then" in done.stdout

    plane.api.request("DELETE", f"{BINDINGS}/everywhere")
    until(lambda: not by_scope(plane, SPACE), "what is bound no more is reported no more")


def test_what_mutating_policies_would_change_in_what_exists_is_reported(
    plane: Plane, audit: StartReplica, tmp_path: Path
) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [{**rule, "operations": ["UPDATE"]}], **HERE}
    drifting = mutating_policy(LABELLED, name="drifting", matchConstraints=constraints)
    bound = mutating_binding("drifts", "drifting")
    stored = plane.api.request("GET", f"/api/v1/namespaces/{SPACE}/configmaps")["items"]
    options = ("--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
    file = tmp_path / "drifting.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [drifting, bound]}))
    done = waddle("check", "-f", file, "--cluster", "-o", "json", *options)
    (drift,) = json.loads(done.stdout)["drift"]
    assert (drift["name"], drift["objects"]) == ("drifting", len(stored))
    assert "/metadata/labels" in drift["examples"][0]["message"]
    try:
        plane.api.request("POST", MUTATING, drifting)
        plane.api.request("POST", f"{GROUP}/mutatingadmissionpolicybindings", bound)
        replica = audit("drift-auditor", *AUDIT, "--report-mutation-drift")
        named = {"mutator_kind": "MutatingAdmissionPolicy", "mutator_name": "drifting"}
        until(
            lambda: metric(replica, "waddle_mutation_drift_objects", **named) == len(stored),
            "the audit counts each object that it would change",
        )
        until(
            lambda: "MutatingAdmissionPolicy" in reporting_policies(plane).get("good", []),
            "the report names the policy",
        )
    finally:
        remove(plane, f"{GROUP}/mutatingadmissionpolicybindings/drifts")
        remove(plane, f"{MUTATING}/drifting")


def reporting_policies(plane: Plane) -> dict[str, list[str]]:
    """The kinds of policy with a result in each object's report, by the object's name."""
    return {
        name: [result["policy"] for result in report["results"]]
        for name, report in by_scope(plane, SPACE).items()
    }


def remove(plane: Plane, path: str) -> None:
    """Delete what may never have been made."""
    try:
        plane.api.request("DELETE", path)
    except ApiError as error:
        assert error.status == 404, error  # noqa: PT017  # nothing else is no fault


def test_nothing_is_read_of_them_where_that_is_off(plane: Plane, audit: StartReplica) -> None:
    replica = audit("plain-auditor", *AUDIT[:3])
    replica.wait_for("auditing is complete")
    assert metric(replica, "waddle_admission_policies", state="unbound") in {None, 0}
