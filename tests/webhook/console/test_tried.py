"""The outcomes of attempts, in this process: in its own, which is killed, coverage is not measured.

What crosses to that process, and is ended there, is tested with it (test_playground.py).
"""

from __future__ import annotations

import json
import marshal
from typing import Any

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.webhook.admission_policies import making
from tests.webhook.console.typed import CONSTRAINT, POLICY, decision
from webhook.api.encoding import decode, encode
from webhook.console import playground_worker as tried

POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}}\n---\n"
PLACED = "{apiVersion: v1, kind: Pod, metadata: {name: sample, namespace: %s}}\n---\n"
PLACE = "{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {a: %s}}}\n---\n"
SELECTING = CONSTRAINT.replace("kinds: [{", "namespaceSelector: {matchLabels: {a: b}}, kinds: [{")
UNSAFE = POLICY.replace('"no samples"', "y")
NOT_COMPILED = "unable to compile modules: 1 error occurred: template:4: rego_unsafe_var_error: var y is unsafe"
MISSING = 'missing ConstraintTemplate: template "nosample" not found'


def answer(mode: str, policy: str = "", *, typed: str = "", query: str = "", **sent: Any) -> Any:
    job = {
        "mode": mode,
        "policy": policy,
        "input": typed,
        "query": query,
        "seconds": PATIENCE_SECONDS,
        "inForce": encode(sent.get("in_force", [])),
        "records": encode(sent.get("records", [])),
        "extensions": encode(sent.get("extensions", [])),
        "known": encode(sent.get("known", [])),
        "unknown": sent.get("unknown", []),
    }
    # As it is read at the other end, by the one who asked.
    outcome = marshal.loads(tried.answer(job))
    assert list(outcome) == ["found"]
    return decode(outcome["found"])


def problem(kind: str, name: str, code: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "severity": "error", "code": code, "message": message}


def of_objects(*reviews: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "problems": [],
        "reviews": list(reviews),
        "samples": False,
        "notReviewed": 0,
        "constraints": 1,
        **fields,
    }


def reviewed(shown: str, *messages: str, **fields: Any) -> dict[str, Any]:
    return {"object": shown, "violations": violations(*messages), "notDecided": [], **fields}


def violations(*messages: str) -> list[dict[str, Any]]:
    named = {"kind": "NoSample", "name": "no-sample", "action": "deny"}
    return [
        {**named, "message": one, "severity": "", "details": {}, "exception": ""}
        for one in messages
    ]


def test_objects_are_reviewed_by_what_was_typed_with_the_namespaces_among_them():
    typed = PLACE % ("shop", "b") + PLACE % ("bank", "c") + PLACED % "shop" + PLACED % "bank"
    assert answer("policy", POLICY + SELECTING, typed=typed) == of_objects(
        reviewed("Namespace shop"),
        reviewed("Namespace bank"),
        reviewed("Pod shop/sample", "no samples"),
        reviewed("Pod bank/sample"),
    )


def test_objects_may_stand_among_the_policies_and_no_object_is_passed_over():
    policies = f"{POLICY}{CONSTRAINT}---\n{POD % 'sample'}"
    assert answer("policy", policies, typed="- 1\n---\n" + POD % "web") == of_objects(
        reviewed("Pod sample", "no samples"), reviewed("Pod web")
    )


def test_where_no_object_is_given_samples_of_each_constraint_are_reviewed_once():
    second = CONSTRAINT.replace("no-sample", "second")
    [row] = violations("no samples")
    both = {**reviewed("Pod default/sample"), "violations": [row, {**row, "name": "second"}]}
    assert answer("policy", f"{POLICY}{CONSTRAINT}---\n{second}") == of_objects(
        both, samples=True, constraints=2
    )


def test_what_is_beyond_the_most_that_are_reviewed_is_reported():
    typed = "".join(POD % f"web-{number}" for number in range(52))
    assert answer("policy", POLICY + CONSTRAINT, typed=typed) == of_objects(
        *(reviewed(f"Pod web-{number}") for number in range(50)), notReviewed=2
    )


def test_an_object_that_no_policy_can_refer_to_is_reviewed_all_the_same():
    anywhere = CONSTRAINT.replace('apiGroups: [""]', 'apiGroups: ["*"]')
    unfit = "{apiVersion: a/b/c, kind: Pod, metadata: {name: sample}}\n---\n"
    assert answer("policy", POLICY + anywhere, typed=unfit) == of_objects(
        reviewed("Pod sample", "no samples")
    )
    typed = unfit + PLACE % ("shop", "b") + PLACED % "shop"
    found = answer("policy", POLICY + SELECTING, typed=typed)
    assert found["reviews"][-1] == reviewed("Pod shop/sample", "no samples"), (
        "what follows is known"
    )


def test_a_template_in_force_is_taken_for_a_constraint_that_was_typed_without_one():
    broken = {"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate"}
    in_force = [
        yaml.safe_load(POLICY.replace("---", "")),
        {**broken, "metadata": {"name": "another"}},
    ]
    typed = POD % "sample"
    assert answer("policy", CONSTRAINT, typed=typed, in_force=in_force) == of_objects(
        reviewed("Pod sample", "no samples")
    )
    faulty = [yaml.safe_load(UNSAFE.replace("---", ""))]
    assert answer("policy", POLICY + CONSTRAINT, typed=typed, in_force=faulty) == of_objects(
        reviewed("Pod sample", "no samples")
    )
    assert answer("policy", CONSTRAINT, typed=typed) == of_objects(
        reviewed("Pod sample"),
        problems=[problem("NoSample", "no-sample", "invalid", MISSING)],
        constraints=0,
    )


def test_what_a_policy_that_does_not_compile_would_decide_is_not_decided():
    found = answer("policy", UNSAFE + CONSTRAINT, typed=POD % "sample")
    unusable = 'missing ConstraintTemplate: template "nosample" has no revision that can be used'
    assert found == of_objects(
        reviewed("Pod sample", notDecided=[f"NoSample/no-sample (compile): {NOT_COMPILED}"]),
        problems=[
            problem("ConstraintTemplate", "nosample", "ingest_error", NOT_COMPILED),
            problem("NoSample", "no-sample", "invalid", unusable),
        ],
        constraints=0,
    )
    recorded = answer("recorded", UNSAFE + CONSTRAINT, records=[decision("sample")])
    assert (recorded["replayed"], recorded["undecided"], recorded["rows"]) == (1, 1, [])


def result(name: str, *actions: str, **fields: Any) -> dict[str, Any]:
    named = {"constraint": {"kind": "NoSample", "name": name}, "message": "m"}
    if len(actions) == 1:
        return {**named, "enforcementAction": actions[0], **fields}
    return {**named, "enforcementAction": "scoped", "enforcementActions": [*actions], **fields}


def test_decisions_whose_verdict_would_change_are_reported_before_those_that_only_violate():
    records = [
        decision("web"),
        decision("sample", "deny", result("another", "deny")),
        {**decision("sample"), "timestamp": "2026-01-01T00:00:00Z"},
        decision("scoped", "warn", result("another", "warn", "dryrun")),
        {**decision("sample", "warn", result("another", "warn")), "requestUID": "u-graver"},
        decision("mended", "deny", result("no-sample", "deny"), result("another", "dryrun")),
        decision("sample", "error"),
        {**decision("bare"), "object": None},
    ]

    def row(name: str, before: str, after: str, *messages: str, time: str = "") -> dict[str, Any]:
        return {
            "time": time,
            "uid": f"u-{name}",
            "operation": "CREATE",
            "kind": "Pod",
            "namespace": "shop",
            "name": name,
            "before": before,
            "after": after,
            "violations": violations(*messages),
        }

    assert answer("recorded", POLICY + CONSTRAINT, records=records) == {
        "problems": [],
        "replayed": 6,
        "violating": 4,
        "changed": 3,
        "undecided": 0,
        "rows": [
            row("sample", "allow", "deny", "no samples", time="2026-01-01T00:00:00Z"),
            {**row("sample", "warn", "deny", "no samples"), "uid": "u-graver"},
            row("mended", "deny", "dryrun"),
            row("sample", "deny", "deny", "no samples"),
        ],
        "constraints": 1,
    }


@pytest.mark.parametrize(
    ("point", "changed"), [("validation.gatekeeper.sh", 1), ("audit.gatekeeper.sh", 0)]
)
def test_recorded_decisions_are_changed_by_what_the_webhook_enforces_alone(point, changed):
    scoped = f"""{{match: {{}}, enforcementAction: scoped, scopedEnforcementActions: [
      {{action: deny, enforcementPoints: [{{name: {point}}}]}}]}}"""
    policies = POLICY + CONSTRAINT[: CONSTRAINT.index("{match")] + scoped
    found = answer("recorded", policies, records=[decision("sample")])
    assert [row["after"] for row in found.pop("rows")] == ["deny"] * changed
    assert found == {
        "problems": [],
        "replayed": 1,
        "violating": changed,
        "changed": changed,
        "undecided": 0,
        "constraints": 1,
    }


@pytest.mark.parametrize(
    ("module", "query", "typed", "answers"),
    [
        ("package p\nx := input.a + 1", "data.p.x", "a: 2", [({"data.p.x": 3}, {})]),
        ("package p\nx := 1", "", "", [({"data": {"p": {"x": 1}}}, {})]),
        ("", "x := [1, 2][_]", "", [({"x := [1, 2][_]": True}, {"x": n}) for n in (1, 2)]),
        ("", "{1, 2}; 3", "", [({"{1, 2}": [1, 2], "3": 3}, {})]),
        ("package p", "data.p.x", "", []),
        ("", "input", "", []),
        (
            "",
            "numbers.range(1, 200)[_]",
            "",
            [({"numbers.range(1, 200)[_]": n}, {}) for n in range(1, 101)],
        ),
    ],
    ids=["a rule", "no query", "bindings", "expressions", "undefined", "no input", "many"],
)
def test_a_query_has_its_answers(module, query, typed, answers):
    assert answer("rego", module, query=query, typed=typed) == {
        "answers": [
            {"expressions": expressions, "bindings": bound} for expressions, bound in answers
        ]
    }


def test_an_expression_may_be_over_no_object():
    assert answer("cel", "[object == null, 1 < 2]") == {"value": [True, True]}
    assert answer("cel", "object.metadata.name", typed=POD % "web") == {"value": "web"}


CONFLICT = "package p\nx := 1 if input == 1\nx := 2 if input == 1"
UNSAFE_QUERY = (
    "2 errors occurred:\n1:1: rego_unsafe_var_error: var _ is unsafe\n"
    "1:1: rego_unsafe_var_error: var x is unsafe"
)
UNDECLARED = "ERROR: <input>:1:1: undeclared reference to 'objct' (in container '')\n | objct\n | ^"


@pytest.mark.parametrize(
    ("mode", "policy", "typed", "query", "error"),
    [
        ("policy", "a: b", "", "", "policies: neither a template nor a constraint is among them"),
        ("policy", "\ta", "", "", "policies: line 1: found character that cannot start any token"),
        (
            "policy",
            POLICY,
            "\ta",
            "",
            "objects: line 1: found character that cannot start any token",
        ),
        ("recorded", "a: b", "", "", "policies: neither a template nor a constraint is among them"),
        ("rego", "", "1\n---\n2", "1", "input: one document is expected, not 2"),
        ("rego", "", "\ta", "1", "input: line 1: found character that cannot start any token"),
        ("rego", "", "", "x", UNSAFE_QUERY),
        (
            "rego",
            CONFLICT,
            "1",
            "data.p.x",
            "policy.rego:3: eval_conflict_error: rule data.p.x produced conflicting values",
        ),
        ("cel", "1", "- 1", "", "object: an object is expected"),
        ("cel", "objct", "", "", UNDECLARED),
        ("cel", "object.spec", POD % "web", "", "no such key: spec"),
    ],
)
def test_what_cannot_be_tried_is_reported_with_what_it_is(mode, policy, typed, query, error):
    assert answer(mode, policy, typed=typed, query=query) == {"error": error}


ASKING = (
    POLICY.replace(
        'input.review.object.metadata.name == "sample"',
        'external_data({"provider": "p", "keys": [input.review.name]}).errors[_][0] == "sample"',
    )
    + CONSTRAINT
)


def test_providers_say_what_was_typed_beside_the_objects() -> None:
    typed = POD % "sample" + POD % "other" + "providers: {p: {items: {sample: {error: bad}}}}"
    found = answer("policy", ASKING, typed=typed)
    assert [len(one["violations"]) for one in found["reviews"]] == [1, 0]
    without = answer("policy", ASKING, typed=POD % "sample")
    [fault] = without["reviews"][0]["notDecided"]
    assert "no provider p answers here: give its answers as a document" in fault
    broken = answer("policy", ASKING, typed=POD % "sample" + "providers: {p: {item: {}}}")
    assert broken == {"error": "providers.p: unknown field 'item': there are items and systemError"}


def test_providers_say_of_recorded_decisions_what_was_recorded() -> None:
    query = {"provider": "p", "keys": ["sample"], "statusCode": 200}
    recorded = {**query, "idempotent": True, "responses": [], "errors": [["sample", "no"]]}
    for external, undecided in (([recorded], 0), ([], 1)):
        record = {**decision("sample"), "externalData": external}
        assert answer("recorded", ASKING, records=[record])["undecided"] == undecided


LIMITED = making.policy(
    "object.metadata.name == params.data.name",
    name="limited",
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
)
NAMED = {"name": "names", "namespace": "a", "parameterNotFoundAction": "Deny"}
EVERYWHERE = making.binding("all", "limited", paramRef=NAMED)
NAMES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "names", "namespace": "a"},
    "data": {"name": "db"},
}
ASKS_THE_WORLD = making.kyverno(
    expression="object.metadata.name == resource.Get('v1', 'configmaps', 'a', 'names').data.name"
)
NOT_DB = "[binding all] failed expression: object.metadata.name == params.data.name"


def documents(*listed: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(one) for one in listed)


def messages_in(mode: str, found: dict[str, Any]) -> list[str]:
    """The messages about the Pod, or the one record."""
    rows = found["rows"] if mode == "recorded" else found["reviews"]
    return [one["message"] for row in rows for one in row["violations"]]


def tried_on_web(mode: str, policies: str, *, typed: str = "", **sent: Any) -> dict[str, Any]:
    if mode == "policy":
        return answer(mode, policies, typed=documents(making.pod()) + "\n---\n" + typed, **sent)
    return answer(mode, policies, typed=typed, records=[decision("web")], **sent)


@pytest.mark.parametrize("mode", ["policy", "recorded"])
@pytest.mark.parametrize("place", ["beside the policies", "beside the objects", "in force"])
def test_parameters_may_be_typed_or_in_force(mode: str, place: str) -> None:
    own = [LIMITED, EVERYWHERE]
    beside = [NAMES] if place == "beside the policies" else []
    found = tried_on_web(
        mode,
        documents(*own, *beside),
        typed=documents(NAMES) if place == "beside the objects" else "",
        known=[NAMES] if place == "in force" else [],
    )
    assert messages_in(mode, found) == [NOT_DB]
    assert found["constraints"] == 1


@pytest.mark.parametrize("mode", ["policy", "recorded"])
def test_what_was_typed_takes_the_place_of_a_parameter_in_force(mode: str) -> None:
    other = {**NAMES, "data": {"name": "web"}}
    found = tried_on_web(
        mode, documents(LIMITED, EVERYWHERE), typed=documents(other), known=[NAMES]
    )
    assert messages_in(mode, found) == []


@pytest.mark.parametrize("mode", ["policy", "recorded"])
def test_a_policy_of_kyverno_reads_the_data_that_are_given(mode: str) -> None:
    found = tried_on_web(mode, documents(ASKS_THE_WORLD), typed=documents(NAMES))
    assert messages_in(mode, found) == ["CEL expression validation failed at index 0"]
    unknown = tried_on_web(mode, documents(ASKS_THE_WORLD))
    assert messages_in(mode, unknown) == []
    undecided = unknown["undecided"] if mode == "recorded" else unknown["reviews"][0]["notDecided"]
    assert undecided


def test_parameters_that_may_not_be_listed_leave_a_policy_undecided() -> None:
    unknown = [["", "v1", "ConfigMap", "you have no right to list them"]]
    found = tried_on_web("policy", documents(LIMITED, EVERYWHERE), unknown=unknown)
    assert messages_in("policy", found) == []
    assert "you have no right to list them" in found["reviews"][0]["notDecided"][0]


def test_an_authorizer_without_an_answer_leaves_a_policy_undecided() -> None:
    expression = "authorizer.group('').resource('pods').check('get').allowed()"
    asking = documents(making.policy(expression, name="asking"), making.binding("b", "asking"))
    found = tried_on_web("policy", asking)
    assert messages_in("policy", found) == []
    assert "which no SubjectAccessReview" in found["reviews"][0]["notDecided"][0]


def test_what_the_api_server_enforces_itself_changes_no_recorded_decision() -> None:
    in_force: dict[str, Any] = {"extensions": [LIMITED, EVERYWHERE], "known": [NAMES]}
    typed = POLICY + CONSTRAINT
    assert tried_on_web("recorded", typed, **in_force)["rows"] == []
    assert messages_in("policy", tried_on_web("policy", typed, **in_force)) == [NOT_DB]


def test_what_a_policy_of_kyverno_said_when_it_was_recorded_is_not_counted_twice() -> None:
    policy = making.kyverno(expression="object.metadata.name != 'sample'")
    named = {"constraint": {"kind": "ValidatingPolicy", "name": "k"}, "message": "m"}
    record = decision("web", "deny", {**named, "enforcementAction": "deny"})
    (row,) = answer("recorded", documents(policy), records=[record])["rows"]
    assert (row["before"], row["after"]) == ("deny", "allow")
