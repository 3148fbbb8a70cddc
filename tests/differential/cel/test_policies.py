"""Policies as users write them, to our webhook and to Kubernetes' validator: the same, word for word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.differential.cel.oracle import CelOracle
from tests.programs import Programs
from tests.webhook.constraint.policies import constraint, template
from webhook.api.admission import read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget

CASES = yaml.safe_load(Path(__file__).with_name("policies.yaml").read_text())

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"env": "prod"}, "uid": "u"}
    | {"creationTimestamp": "2024-01-01T00:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}

COMPOSED = [
    {"name": "anyObject", "expression": "object == null ? oldObject : object"},
    {
        "name": "params",
        "expression": "has(params.spec.parameters) ? params.spec.parameters : null",
    },
]
"""Variables of every template's policy beside its own."""

BUDGET = 1_000_000


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[CelOracle]:
    """Kubernetes' validator."""
    with CelOracle(program("cel-oracle")) as running:
        yield running


def request_of(document: dict[str, Any]) -> dict[str, Any]:
    """The creation of an object, tried only."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    of = {"group": group, "version": version}
    return {
        "uid": "u",
        "kind": {**of, "kind": kind},
        "resource": {**of, "resource": f"{kind.lower()}s"},
        "name": document["metadata"]["name"],
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": document,
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }


def kubernetes_messages(
    oracle: CelOracle, source: dict[str, Any], params: dict[str, Any], request: dict[str, Any]
) -> list[str]:
    """The messages of its validator's refusals."""
    policy = {
        "variables": [*COMPOSED, *source.get("variables", [])],
        "validations": source["validations"],
        "matchConditions": source.get("matchCondition", []),
        "failurePolicy": source.get("failurePolicy", "Fail"),
    }
    question = {"policy": policy, "request": request, "params": params}
    (answer,) = oracle.ask([{**question, "namespace": NAMESPACE, "budget": BUDGET}])
    return [one["message"] for one in answer.get("decisions", ()) if one["action"] == "deny"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_policy_says_what_kubernetes_says(oracle: CelOracle, case: dict[str, Any]) -> None:
    """The validator reports uncompilable expressions for each object; we refuse the template."""
    source = case["source"]
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
    code = [{"engine": "K8sNativeValidation", "source": source}]
    params = constraint("Case", parameters=case["parameters"])
    refused = ""
    try:
        client.add_template(template("Case", "", schema=ANY, target={"code": code}))
        client.add_constraint(params)
    except InvalidTemplate as error:
        refused = str(error)
    for number, given in enumerate(case["objects"]):
        document = {"apiVersion": "v1", "kind": "ConfigMap", **given}
        metadata = {"name": f"case-{number}", "namespace": "shop", **given.get("metadata", {})}
        request = request_of({**document, "metadata": metadata})
        expected = kubernetes_messages(oracle, source, params, request)
        if refused:
            assert expected
            assert "compilation failed: source." in refused
            continue
        review = AugmentedReview(read_request(request), namespace=NAMESPACE)
        found = [one.msg for one in client.snapshot.review(review, limits=UNLIMITED).results]
        assert sorted(found) == sorted(expected)
