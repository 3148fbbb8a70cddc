"""Findings of our CEL driver in requests, asserted by the real driver: `gator verify` of a suite.

Each assertion is a message of ours, whole, with how often it is told; gator evaluates the same
AdmissionReviews by Gatekeeper's own driver.
"""

import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import cel_policies
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from tests.webhook.constraint.policies import constraint, template
from webhook.api.admission import read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget

Json = dict[str, Any]

POLICIES = int(os.environ.get("WADDLE_COMPARED_POLICIES", "40"))
SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "1"))

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "d", "labels": {"a": "b", "long": "x" * 63}},
    "spec": {"n": 1, "f": 1.5, "big": 9007199254740993, "pattern": "a(", "yes": True},
}


def request(operation: str, obj: Json | None, old: Json | None, **more: Any) -> Json:
    return {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "p",
        "namespace": "d",
        "operation": operation,
        "userInfo": {"username": "jane", "extra": {"scopes": ["x"]}},
        **({} if obj is None else {"object": obj}),
        **({} if old is None else {"oldObject": old}),
        **more,
    }


REQUESTS: dict[str, Json] = {
    "creation": request("CREATE", POD, None, options={"kind": "CreateOptions", "apiVersion": "v1"}),
    "unnamed": request("CREATE", POD, None, name="", dryRun=True),
    "change": request("UPDATE", {**POD, "spec": {"n": 2}}, POD, subResource="status"),
    "deletion": request("DELETE", None, POD),
    "connection": request(
        "CONNECT",
        {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]},
        None,
        subResource="exec",
        kind={"group": "", "version": "v1", "kind": "PodExecOptions"},
    ),
}

BOUND = (
    "object == null",
    "oldObject == null",
    "variables.anyObject.spec.n == 1",
    "object.spec.n == 1",
    "request.name == 'p'",
    "has(request.namespace) && has(request.options)",
    "request.options == null",
    "request.dryRun",
    "request.subResource == request.requestSubResource",
    "has(request.userInfo.groups)",
    "request.userInfo.extra['scopes'] == ['x']",
    "request.requestKind == request.kind && request.requestResource == request.resource",
    "namespaceObject == null",
    "dyn(request).uid == '' && dyn(request).object == null && dyn(request).oldObject == null",
    "variables.params == null",
    "variables.params == {}",
    "has(variables.params.x)",
    "size(variables.params) == 0",
    "object.spec.big == 9007199254740993 && type(object.spec.f) == double",
    "'a'.matches(object.spec.pattern)",
)
"""Expressions over all that is bound: what is false, and what is in error, is a message."""

NO: Json = {"expression": "false", "message": "no"}


def named(*expressions: str) -> list[Json]:
    return [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]


def variable(name: str, expression: str) -> list[Json]:
    return [{"name": name, "expression": expression}]


def update_rule(**more: Any) -> Json:
    return {"validations": [{"expression": "object == oldObject", **more}]}


SOURCES: dict[str, Json] = {
    "bound": {"validations": [{"expression": one} for one in BOUND]},
    "bound-and-ignored": {
        "failurePolicy": "Ignore",
        "validations": [{"expression": one} for one in BOUND],
    },
    "nothing": {},
    "condition-of-variables": {
        "variables": variable("n", "object.spec.n"),
        "matchCondition": named("variables.n == 1"),
        "validations": [NO, {"expression": "variables.n == 2"}],
    },
    "conditions-in-error": {
        "matchCondition": named(
            "true", "object.spec.x == 1", "object.spec.x == 1", "object.y == 1"
        ),
        "validations": [NO],
    },
    "conditions-in-error-ignored": {
        "failurePolicy": "Ignore",
        "matchCondition": named("object.spec.x == 1"),
        "validations": [NO],
    },
    "condition-that-makes-up-for-errors": {
        "matchCondition": named("object.spec.x == 1", "request.operation == 'CREATE'"),
        "validations": [NO],
    },
    "variables-of-the-constraint": {
        "variables": [
            *variable("name", "params.metadata.name"),
            *variable("given", "params.spec.parameters"),
            *variable("match", "has(params.spec.match) || has(params.spec.parameters)"),
        ],
        "validations": [
            {"expression": "variables.match && variables.name == ''"},
            {"expression": "variables.given == {}"},
        ],
    },
    "variables-in-error": {
        "variables": [
            *variable("bad", "object.spec.x"),
            *variable("worse", "[variables.bad]"),
            *variable("unread", "object.spec.y"),
        ],
        "validations": [
            {"expression": "variables.worse == []"},
            {"expression": "variables.bad == 1 || true"},
            {"expression": "variables.bad == 1", "message": "m"},
        ],
    },
    "spaces": {"validations": [{"expression": "  object ==\n oldObject  "}]},
    "message": update_rule(message=" \u00a0m\u2003"),
    "message-of-lines": update_rule(message="a\nb"),
    "message-of-spaces": update_rule(message=" \n"),
    "text-of-lines": update_rule(messageExpression="'a\\nb'", message="m"),
    "text-that-ends-in-a-line": update_rule(messageExpression="' a\\n'", message="m"),
    "text-of-nothing": update_rule(messageExpression="''"),
    "text-in-error": update_rule(messageExpression="string(object.spec.x)", message="m"),
    "text-of-5120": update_rule(messageExpression=f"'{'é' * 2560}'", message="m"),
    "text-of-5121": update_rule(messageExpression=f"'{'é' * 2560}x'", message="m"),
    "text-of-a-variable": {
        "variables": variable("who", "request.userInfo.username + '!'"),
        **update_rule(messageExpression="variables.who"),
    },
    "several": {
        "validations": [NO, {"expression": "true"}, {"expression": "1 / (size('') - 0) == 1"}, NO]
    },
}

SPECS: dict[str, Json] = {"none": {}, "empty": {"parameters": {}}, "some": {"parameters": {"x": 1}}}


def ours(of_template: Json, of_constraint: Json, reviews: Json) -> list[str]:
    """The messages of our driver."""
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
    client.add_template(of_template)
    client.add_constraint(of_constraint)
    review = AugmentedReview(read_request(reviews))
    return [one.msg for one in client.snapshot.review(review, limits=UNLIMITED).results]


def assertions(messages: list[str]) -> list[Json]:
    if not messages:
        return [{"violations": "no"}]
    counts = Counter(messages)
    return [
        {"violations": len(messages)},
        *(
            {"violations": count, "message": f"^(?s:{re.escape(text)})$"}
            for text, count in counts.items()
        ),
    ]


def write(file: Path, document: Json) -> str:
    file.write_text(yaml.safe_dump(document, allow_unicode=True))
    return file.name


def suite_of(folder: Path, name: str, source: Json, specs: Json, requests: Json) -> list[Json]:
    """Tests of a suite: each constraint of a template about each request, as we decide."""
    code = [{"engine": "K8sNativeValidation", "source": source}]
    of_template = template("K8sCel", "", schema=ANY, target={"code": code})
    tests = []
    for kind, spec in specs.items():
        of_constraint = constraint("K8sCel", "one", **spec)
        cases = []
        for number, request in requests.items():
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            written = write(folder / f"{name}-{number}.yaml", {**review, "request": request})
            expected = assertions(ours(of_template, of_constraint, request))
            cases.append({"name": number, "object": written, "assertions": expected})
        tests.append(
            {
                "name": f"{name}-{kind}",
                "template": write(folder / f"{name}-template.yaml", of_template),
                "constraint": write(folder / f"{name}-{kind}.yaml", of_constraint),
                "cases": cases,
            }
        )
    return tests


def verified(program: Programs, folder: Path, tests: list[Json]) -> None:
    """All of them, by gator."""
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": tests}
    write(folder / "suite.yaml", suite)
    run = subprocess.run(
        [program("gator"), "verify", "--verbose", str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("--- PASS") == sum(1 + len(test["cases"]) for test in tests)


@pytest.mark.parametrize("source", SOURCES)
def test_a_policy_finds_in_each_request_what_gatekeepers_driver_finds(
    program: Programs, tmp_path: Path, source: str
) -> None:
    verified(program, tmp_path, suite_of(tmp_path, "x", SOURCES[source], SPECS, REQUESTS))


def test_policies_by_chance_find_in_requests_by_chance_what_gatekeepers_driver_finds(
    program: Programs, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    tests = []
    for number in range(POLICIES):
        requests = {}
        for name in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
            new = None if name == "DELETE" else cel_policies.thing(chance)
            old = cel_policies.thing(chance) if name in ("UPDATE", "DELETE") else None
            requests[name] = request(name, new, old)
        specs = {"some": cel_policies.spec(chance)}
        source = cel_policies.source(chance)
        tests += suite_of(tmp_path, f"policy-{number}", source, specs, requests)
    verified(program, tmp_path, tests)


@pytest.mark.parametrize("stated", [None, "Fail", "Ignore"])
@pytest.mark.parametrize("flag", ["Fail", "Ignore"])
def test_what_an_error_is_where_a_template_does_not_say_so_is_said_by_the_same_flag(
    program: Programs, tmp_path: Path, stated: str | None, flag: str
) -> None:
    source = {"validations": [{"expression": "object.spec.x == 1"}]}
    code = [
        {
            "engine": "K8sNativeValidation",
            "source": source if stated is None else {**source, "failurePolicy": stated},
        }
    ]
    of_template = template("K8sCel", "", schema=ANY, target={"code": code})
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([of_template, constraint("K8sCel"), POD]))
    arguments = ["test", f"--default-k8s-native-validation-failure-policy={flag}", f"-f={file}"]
    theirs = subprocess.run(
        [program("gator"), *arguments], capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert theirs.returncode == waddle(*arguments).returncode
    assert theirs.returncode == ((stated or flag) == "Fail")
