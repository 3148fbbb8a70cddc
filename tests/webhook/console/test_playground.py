"""Any text in the playground is tried within bounds."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.admission_policies.making import binding
from tests.webhook.admission_policies.making import pod as admission_pod
from tests.webhook.admission_policies.making import policy as admission_policy
from tests.webhook.console.pictures import picture, shown_policy, template
from tests.webhook.console.typed import CONSTRAINT, POLICY, decision
from webhook.admission_policies.parameters import ParameterStore
from webhook.api.gvk import GroupVersionKind
from webhook.console.decisions import Recorded, recorded
from webhook.console.picture import Picture
from webhook.console.playground import TEXT_CHARACTERS_MAX, Attempt, Busy, Playground, reviewed
from webhook.console.visitor import Right
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.snapshot import Snapshot
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policy_kinds.parts import read_admission_policy
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.policy_set import PolicySet

Try = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def attempt() -> Iterator[Try]:
    """Tries something in the process that a console has for it."""
    with trying(Playground()) as try_:
        yield try_


MAY = "authorizer.group('').resource('pods').check('get').allowed()"


@pytest.fixture
def patient() -> Iterator[Try]:
    """Likewise, where the machine may be slow and an evaluation goes on all the same."""
    with trying(Playground(PATIENCE_SECONDS)) as try_:
        yield try_


@contextmanager
def trying(playground: Playground) -> Iterator[Try]:
    """Tries something in a playground, which ends."""

    def try_(
        mode: str, shown: Picture | None = None, log: Recorded | None = None, **fields: str
    ) -> dict[str, Any]:
        tried = Attempt.of({"mode": mode, **fields})
        return asyncio.run(playground.attempt(tried, lambda: None, shown or picture(), log))

    yield try_
    playground.stop()


def test_a_new_policy_is_tried_on_decisions_that_were_recorded(attempt: Try, tmp_path: Path):
    def result(name: str) -> dict[str, Any]:
        named = {"kind": "NoSample", "name": name}
        return {"constraint": named, "enforcementAction": "deny", "message": "m"}

    without = {**decision("bare"), "object": None}
    records = [
        decision("web"),
        decision("sample"),
        decision("denied", "deny", result("another")),
        decision("mended", "deny", result("no-sample")),
        without,
    ]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    log = recorded(file)
    assert [one["resourceName"] for one in log.records] == ["mended", "denied", "sample", "web"]
    found = attempt("recorded", log=log, policy=POLICY + CONSTRAINT)
    assert (found["replayed"], found["violating"], found["changed"]) == (4, 2, 2)
    assert found["withoutObject"] == 1
    rows = [(one["name"], one["before"], one["after"]) for one in found["rows"]]
    # Where the policy that is tried was in force already, what it said then is not counted.
    assert rows == [("mended", "deny", "allow"), ("sample", "allow", "deny")]
    assert recorded(file, lambda right: right.namespace == "bank").records == ()


def test_a_new_policy_is_tried_on_samples(attempt: Try):
    found = attempt("policy", policy=POLICY + CONSTRAINT)
    assert found["problems"] == []
    assert found["samples"] is True
    assert [one["message"] for one in found["reviews"][0]["violations"]] == ["no samples"]


def test_a_new_policy_is_tried_on_objects(attempt: Try):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\n"
    found = attempt("policy", policy=POLICY + CONSTRAINT, input=pod)
    assert found["samples"] is False
    assert found["reviews"][0]["violations"] == []


def test_a_new_constraint_of_a_template_in_force_needs_no_more(attempt: Try):
    rego = 'package nosample\nviolation[{"msg": "always"}] { true }'
    in_force = template("nosample", rego=rego)
    in_force.document["spec"]["crd"]["spec"]["names"]["kind"] = "NoSample"
    found = attempt("policy", picture((in_force,)), policy=CONSTRAINT)
    assert [one["message"] for one in found["reviews"][0]["violations"]] == ["always"]
    assert attempt("policy", policy=CONSTRAINT)["problems"][0]["severity"] == "error"


def test_admission_policies_are_tried_with_their_bindings_and_answers(attempt: Try):
    asking = admission_policy("object.metadata.name != 'web'", f"{MAY}", name="own")
    annotated = {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.kind)"}]}
    asking["spec"] |= annotated
    answer = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "*", "resourceAttributes": {"verb": "get", "resource": "pods"}},
        "status": {"allowed": True},
    }
    typed = "\n---\n".join(json.dumps(one) for one in (asking, binding("all", "own"), answer))
    found = attempt("policy", policy=typed, input=json.dumps(admission_pod()))
    assert found["constraints"] == 1
    (review,) = found["reviews"]
    assert [(one["action"], one["message"]) for one in review["violations"]] == [
        ("deny", "[binding all] failed expression: object.metadata.name != 'web'"),
        ("note", "[binding all] audit annotation k: Pod"),
    ]
    assert review["notDecided"] == []


def test_what_is_wrong_with_a_policy_is_reported(attempt: Try):
    found = attempt("policy", policy=POLICY.replace('"no samples"', "y"))
    assert "var y is unsafe" in found["problems"][0]["message"]
    assert "neither a template nor" in attempt("policy", policy="a: b")["error"]
    assert "line" in attempt("policy", policy="{[")["error"]


def test_parameters_in_force_are_given_to_who_may_list_them():
    kind = GroupVersionKind("", "v1", "ConfigMap")
    limited = admission_policy(
        "object.metadata.name == params.data.name",
        name="limited",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    named = {"name": "names", "namespace": "a", "parameterNotFoundAction": "Deny"}
    everywhere = binding("all", "limited", paramRef=named)
    parameter = {"metadata": {"name": "names", "namespace": "a"}, "data": {"name": "db"}}
    store = ParameterStore()
    store.put(kind, [{"apiVersion": "v1", "kind": "ConfigMap", **parameter}], namespaced=True)
    stage = AdmissionPolicies([read_admission_policy(one) for one in (limited, everywhere)])
    in_force = PolicySet(Snapshot(targets={}), stages=(stage.with_parameters(store),))
    shown = picture(
        tuple(
            shown_policy("admission", one["kind"], one["metadata"]["name"], one, "active")
            for one in (limited, everywhere)
        )
    )
    attempt = Attempt.of({"mode": "policy", "policy": POLICY, "input": json.dumps(admission_pod())})

    def reviewed_for(may: bool) -> dict[str, Any]:
        playground = Playground(PATIENCE_SECONDS)
        rights: list[Right] = []

        def may_list(right: Right) -> bool:
            rights.append(right)
            return may

        trying_it = playground.attempt(attempt, lambda: in_force, shown, None, may_list)
        found = asyncio.run(trying_it)
        playground.stop()
        assert rights == [Right("", "configmaps")]
        (review,) = found["reviews"]
        return review

    assert [one["message"] for one in reviewed_for(may=True)["violations"]] == [
        "[binding all] failed expression: object.metadata.name == params.data.name"
    ]
    review = reviewed_for(may=False)
    assert review["violations"] == []
    assert "you have no right to list them" in review["notDecided"][0]


def test_rego_answers_a_query_over_an_input(attempt: Try):
    found = attempt("rego", policy="package p\nx := input.a + 1", query="data.p.x", input="a: 2")
    assert found["answers"][0]["expressions"] == {"data.p.x": 3}
    assert attempt("rego", policy="package p", query="data.p.x")["answers"] == []
    assert "rego_parse_error" in attempt("rego", policy="package p\nx := {", query="1")["error"]


def test_cel_has_the_value_of_an_expression_over_an_object(attempt: Try):
    obj = "{apiVersion: v1, kind: X, spec: {sizes: [1, 2]}}"
    found = attempt("cel", policy="object.spec.sizes.map(one, one * 2)", input=obj)
    assert found == {"value": [2, 4]}
    assert "undeclared reference" in attempt("cel", policy="objct")["error"]
    assert "no such key" in attempt("cel", policy="object.spec.m", input=obj)["error"]


@pytest.mark.slow
def test_what_would_take_for_ever_or_all_memory_is_ended(attempt: Try, patient: Try):
    loop = "package p\nx := count([1 | some i in a; some j in a; i + j == -1])\na := numbers.range(1, 90000)"
    assert "deadline" in attempt("rego", policy=loop, query="data.p.x")["error"]
    big = 'package p\nx := [y | some i in numbers.range(1, 3000); y := concat("", [sprintf("%d%0100000d", [i, j]) | some j in numbers.range(1, 100)])]'
    message = "it was ended: it takes more than 256 MiB of memory"
    assert patient("rego", policy=big, query="data.p.x") == {"error": message}
    assert patient("cel", policy="1 + 1") == {"value": 2}


def test_what_the_process_did_not_foresee_is_reported_as_a_fault_of_ours():
    """The fault was reported as a lack of memory."""
    playground = Playground()
    unheard = Attempt(mode="unheard of", policy="1")
    found = asyncio.run(playground.attempt(unheard, lambda: None, picture()))
    assert found == {"error": "it could not be tried, because of a bug in Waddle"}
    attempt = Attempt(mode="cel", policy="1")
    assert asyncio.run(playground.attempt(attempt, lambda: None, picture())) == {"value": 1}
    playground.stop()


def test_what_is_too_long_is_not_even_read(attempt: Try):
    assert "longer than" in attempt("cel", policy="1" * (TEXT_CHARACTERS_MAX + 1))["error"]


def test_beyond_a_few_who_wait_the_next_has_to_come_again():
    async def crowd() -> list[Any]:
        playground = Playground()
        attempt = Attempt.of({"mode": "cel", "policy": "1"})
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_outcome(playground, attempt)) for _ in range(6)]
        playground.stop()
        return [task.result() for task in tasks]

    async def _outcome(playground: Playground, attempt: Attempt) -> Any:
        try:
            return await playground.attempt(attempt, lambda: None, picture())
        except Busy:
            return "busy"

    found = asyncio.run(crowd())
    assert found.count("busy") == 2
    assert found.count({"value": 1}) == 4


def test_an_object_and_a_review_are_decided_by_the_policies_in_force():
    import yaml

    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(yaml.safe_load(POLICY.replace("---", "")))
    client.add_constraint(yaml.safe_load(CONSTRAINT))
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sample"}}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "userInfo": {},
            "object": obj,
        },
    }
    for document in (obj, review):
        [found] = reviewed(yaml.safe_dump(document), PolicySet(client.snapshot))["reviews"]
        assert found["allowed"] is False
        assert found["violations"][0]["message"] == "no samples"
    [other] = reviewed(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}}", PolicySet(client.snapshot)
    )["reviews"]
    assert other["allowed"] is True
    for text, word in (
        ("", "nothing to review"),
        ("{[", "line"),
        ("a: b", "kind"),
        ("- 1", "object"),
    ):
        answer = reviewed(text, PolicySet(client.snapshot))
        assert word in str(answer.get("error") or answer["reviews"][0]["error"])
    assert "no policy has been read" in reviewed("a: b", None)["error"]
