"""A mutator of a wrong type, and policies that fail on a Secret: nothing that is kept has its value.

What is asked is the API server: Events, statuses, reports, and its own answer; beside it log,
metrics and the console of who made them. Each page of `waddle console` over the same cluster, too.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system import reporting
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.mutating import MUTATORS
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    WORKLOADS,
    Plane,
    Replica,
    review_of,
)
from tests.webhook.console.running import RunningConsole
from tests.webhook.mutation.documents import modify_set

MARKER = "hunter2xyz"
"""Made up; a part of it, in any case, and what base64 stands for must not be seen either."""

ENCODED = base64.b64encode(MARKER.encode()).decode()
NAME = "db-credentials"
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": NAME, "namespace": WORKLOADS},
    "data": {"token": ENCODED},
}
SECRETS = f"/api/v1/namespaces/{WORKLOADS}/secrets"
EXPRESSIONS = {
    "Celnumber": "int(object.data.token) > 0",
    "Celkey": "object.data[object.data.token] == 'x'",
    "Regonumber": "to_number(input.review.object.data.token) > 0",
    "Regojson": "json.unmarshal(input.review.object.data.token)",
    "Regotime": "time.parse_rfc3339_ns(input.review.object.data.token) > 0",
}
FAIL = ("celnumber", "celkey")
"""Expressions that end in an error; the others are undefined, as in OPA, and print nothing."""

FLAGS = (
    "--operation=mutation-webhook",
    "--emit-admission-events",
    "--log-denies",
    "--log-mutations",
    "--log-level=DEBUG",
    "--evaluation-errors=violation",
    "--reports",
    "--report-debounce=300ms",
)
AUDIT = (
    *("--operation=audit", "--operation=status", "--audit-interval=1", "--emit-audit-events"),
    *("--log-level=DEBUG", "--evaluation-errors=violation", "--reports"),
)


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the reports' CRDs."""
    folder = tmp_path_factory.mktemp("secrets")
    with control_plane(folder, install=reporting.install) as made:
        yield made


def policies() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A template that fails on each Secret, and its constraint."""
    for kind, expression in EXPRESSIONS.items():
        rego = f'package p\nviolation[{{"msg": "no"}}] {{ {expression} }}'
        cel = {"validations": [{"expression": expression, "message": "no"}]}
        code = (
            {"engine": "K8sNativeValidation", "source": cel | {"failurePolicy": "Fail"}}
            if kind.startswith("Cel")
            else {"engine": "Rego", "source": {"rego": rego}}
        )
        target = {"target": "admission.k8s.gatekeeper.sh", "code": [code]}
        template = {
            "apiVersion": "templates.gatekeeper.sh/v1",
            "kind": "ConstraintTemplate",
            "metadata": {"name": kind.lower()},
            "spec": {"crd": {"spec": {"names": {"kind": kind}}}, "targets": [target]},
        }
        match = {"kinds": [{"apiGroups": [""], "kinds": ["Secret"]}]}
        constraint = {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": kind,
            "metadata": {"name": kind.lower()},
            "spec": {"match": match},
        }
        yield template, constraint


def refusal_of_secret(replica: Replica) -> str:
    """Returns a replica's refusal of the Secret; empty if there is none."""
    return str((replica.admit(SECRET).get("status") or {}).get("message", ""))


def events(plane: Plane) -> list[dict[str, Any]]:
    """Every Event of the cluster."""
    items: list[dict[str, Any]] = plane.api.request("GET", "/api/v1/events")["items"]
    return items


def about_the_secret(plane: Plane, reason: str) -> list[dict[str, Any]]:
    """The Events of a reason that tell of one of the policies."""
    return [item for item in events(plane) if item["reason"] == reason]


def kept(plane: Plane) -> list[Any]:
    """All that the cluster keeps of what was said: Events, statuses, reports, decisions of others."""
    places = [
        f"{STATUSES}/constraintpodstatuses",
        f"{STATUSES}/constrainttemplatepodstatuses",
        f"{STATUSES}/mutatorpodstatuses",
        f"{MUTATORS}/modifyset",
        "/apis/wgpolicyk8s.io/v1alpha2/policyreports",
        *(f"{CONSTRAINTS}/{kind.lower()}" for kind in EXPRESSIONS),
    ]
    return [events(plane), *(plane.api.request("GET", place) for place in places)]


def pages(plane: Plane) -> list[str]:
    """Each page of a console over the cluster, for people and as JSON, once it tells of the Secret."""
    about = f"?apiVersion=v1&kind=Secret&namespace={WORKLOADS}&name={NAME}"
    named = [f"/policy?kind={kind}&name={kind.lower()}" for kind in EXPRESSIONS]
    named += [f"/policy?kind=ConstraintTemplate&name={kind.lower()}" for kind in EXPRESSIONS]
    places = ("/", "/policies", "/rollouts", "/health", "/decisions", "/playground", "/violations")
    options = (f"--kubeconfig={plane.cluster.kubeconfig}", "-n", NAMESPACE)
    with RunningConsole(*options) as console:
        console.ready()
        rows = f"/violations?namespace={WORKLOADS}"
        until(lambda: NAME in str(console.json(rows)["rows"]), "it tells of the Secret")
        for kind in FAIL:
            until(
                lambda kind=kind: kind in console.get("/").body.decode().lower(),
                "of each that fails",
            )
        shown = []
        for place in (
            *places,
            *named,
            rows,
            f"/resource{about}",
            "/policy?kind=ModifySet&name=wrong-type",
        ):
            answer = console.get(place)
            assert answer.status == 200, place
            shown += [answer.body.decode(), json.dumps(console.json(place))]
        shown += [json.dumps(event) for event in console.events]
    return shown


def test_neither_events_nor_statuses_nor_reports_nor_logs_have_it(plane: Plane) -> None:
    plane.api.request("POST", SECRETS, SECRET)
    wrong = modify_set("wrong-type", "data.token", "merge", ["x"])
    wrong["spec"]["applyTo"] = [{"groups": [""], "versions": ["v1"], "kinds": ["Secret"]}]
    shown: list[str] = []
    with ExitStack() as stack:
        replica = stack.enter_context(Replica(plane, "teller", *ALL_OPERATIONS, *FLAGS))
        stack.callback(plane.delete_pod, "teller")
        replica.wait_ready()
        for template, constraint in policies():
            plane.put_template(template)
            plane.put_constraint(constraint)
        plane.api.request("POST", f"{MUTATORS}/modifyset", wrong)
        until(lambda: all(kind in refusal_of_secret(replica) for kind in FAIL), "these fail on it")

        def answer() -> str:
            return replica.post(review_of(SECRET), path="/v1/mutate").body.decode()

        until(lambda: "is not a list of values" in answer(), "the mutator fails on it")
        shown += [answer(), json.dumps(replica.admit(SECRET))]
        until(lambda: len(about_the_secret(plane, "FailedAdmission")) >= len(FAIL), "it is told")

        audit = stack.enter_context(Replica(plane, "auditor", *AUDIT))
        stack.callback(plane.delete_pod, "auditor")
        until(lambda: len(about_the_secret(plane, "AuditViolation")) >= len(FAIL), "audited, too")
        until(
            lambda: all(
                (item.get("status") or {}).get("totalViolations", 0) >= 1
                for kind in FAIL
                for item in plane.api.request("GET", f"{CONSTRAINTS}/{kind}")["items"]
            ),
            "the totals are told",
        )
        reports = "/apis/wgpolicyk8s.io/v1alpha2/policyreports"
        until(lambda: bool(plane.api.request("GET", reports)["items"]), "it is reported")
        for one in (replica, audit):
            shown.append(one.get("metrics", "/metrics").body.decode())
            shown.append(one.get("health", "/readyz?verbose").body.decode())
        shown += [json.dumps(item) for item in kept(plane)]
        shown += pages(plane)
        for one in (replica, audit):
            shown += [json.dumps(event) for event in one.events]
    assert any("quotes a value of a Secret and is left out" in text for text in shown)
    for text in shown:
        for part in (MARKER, ENCODED, MARKER[2:8], base64.b64encode(ENCODED.encode()).decode()):
            at = text.lower().find(part.lower())
            assert at < 0, text[max(0, at - 1000) : at + 200]


def test_the_api_server_s_own_answer_has_it_neither(plane: Plane) -> None:
    """The user's answer and the webhook's Events have no value of it."""
    with ExitStack() as stack:
        replica = stack.enter_context(Replica(plane, "asked", *ALL_OPERATIONS, *FLAGS))
        stack.callback(plane.delete_pod, "asked")
        replica.wait_ready()
        for template, constraint in policies():
            plane.put_template(template)
            plane.put_constraint(constraint)
        until(lambda: not replica.admit(SECRET)["allowed"], "it is enforced")
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "secrets"},
            "webhooks": [
                {
                    "name": "validation.gatekeeper.sh",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{replica.ports['admission']}/v1/admit",
                        "caBundle": plane.bundle,
                    },
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["secrets"],
                        }
                    ],
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": WORKLOADS}
                    },
                }
            ],
        }
        plane.api.request(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            configuration,
        )
        refused: list[str] = []

        def is_refused() -> bool:
            try:
                plane.api.request("POST", f"{SECRETS}?dryRun=All", SECRET)
            except ApiError as error:
                refused.append(error.body)
                return "denied the request" in error.body
            return False

        until(is_refused, "the API server refuses it")
    for text in refused:
        assert MARKER not in text
        assert ENCODED not in text
