"""ConstraintGroups: what members come to together, and what becomes of a group that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import policies
from tests.webhook.constraint.policies import client, constraint, echo_template, pod, template
from webhook.api.admission import read_request
from webhook.constraint.enforcement import AUDIT, WEBHOOK
from webhook.constraint.errors import ConstraintFrameworkError, InvalidTemplate
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.secrecy import WITHHELD

if TYPE_CHECKING:
    from webhook.constraint.client import Client
    from webhook.constraint.result import Responses

LABELLED = """package labelled
violation[{"msg": msg, "details": {"label": wanted}}] {
  wanted := input.parameters.label
  not input.review.object.metadata.labels[wanted]
  msg := sprintf("no label %v", [wanted])
}
"""
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}}
LABELS = template("Labelled", LABELLED, schema=SCHEMA)
IN_CEL = policies.template(
    "InCel",
    "",
    cel={
        "validations": [
            {
                "expression": "variables.params.label in object.metadata.?labels.orValue({})",
                "messageExpression": "'no label ' + variables.params.label",
            }
        ]
    },
    schema=SCHEMA,
)


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    """A group with this spec; ``expression`` names members a, b, c of :data:`LABELS` where it has none."""
    members = {one: labelled(one) for one in "abc"}
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": name},
        "spec": {"members": members, **spec},
    }


def labelled(label: str) -> dict[str, Any]:
    """A member."""
    return {"kind": "Labelled", "parameters": {"label": label}}


def found(of: Client, *labels: str, point: str = WEBHOOK, **metadata: Any) -> Responses:
    """Returns the findings about a Pod with these labels."""
    obj = pod(labels=dict.fromkeys(labels, "x"), **metadata)
    return of.snapshot.review(AugmentedObject(obj), enforcement_point=point)


def accepts(expression: str, *labels: str) -> bool:
    """Whether a group with this expression accepts a Pod with these labels."""
    responses = found(client(LABELS, group(expression=expression)), *labels)
    assert not responses.undecided
    assert not responses.faults
    return not responses.results


@pytest.mark.parametrize(
    ("expression", "accepted", "refused"),
    [
        ("a()", ["a", "ab"], ["", "b"]),
        ("a() && b()", ["ab", "abc"], ["a", "b", ""]),
        ("a() || b() && c()", ["a", "bc"], ["b", "c", ""]),
        ("(a() || b()) && c()", ["ac", "bc"], ["ab", "c"]),
        ("!a()", ["", "b"], ["a"]),
        ("a() == b()", ["", "ab", "c"], ["a", "b"]),
        ("a() != b()", ["a", "b"], ["", "ab"]),
        ("a() == true", ["a"], [""]),
        ("a() || true", ["", "a"], []),
        ("\n  a()\n  && b()\n", ["ab"], ["a"]),
    ],
)
def test_an_expression_means_what_it_means_in_cel(
    expression: str, accepted: list[str], refused: list[str]
) -> None:
    assert all(accepts(expression, *labels) for labels in accepted)
    assert not any(accepts(expression, *labels) for labels in refused)


def test_a_violation_tells_of_the_members_that_were_asked() -> None:
    policies_ = client(
        LABELS, group(expression="a() && b()"), group("h", expression="!c() || a()", message="No.")
    )
    ours, theirs = sorted(found(policies_, "c").results, key=lambda one: one.constraint.name)
    assert ours.msg == "a() && b() is false: a: no label a"
    assert ours.details == {
        "members": {
            "a": {
                "kind": "Labelled",
                "accepts": False,
                "violations": [{"msg": "no label a", "details": {"label": "a"}}],
            }
        }
    }
    assert theirs.msg == "No."
    assert theirs.details["members"]["c"] == {"kind": "Labelled", "accepts": True}
    assert ours.constraint.key == ("ConstraintGroup", "g")


def test_cases_give_parameters_and_the_first_that_matches_decides() -> None:
    document = group(
        firstMatch=[
            {"match": {"namespaces": ["dev"]}, "accept": True},
            {"match": {"labelSelector": {"matchLabels": {"tier": "x"}}}, "member": "a"},
            {"member": "b"},
        ]
    )
    by_case = client(LABELS, document)
    assert not found(by_case, namespace="dev").results
    assert [one.msg for one in found(by_case, "tier").results] == ["no label a"]
    (result,) = found(by_case).results
    assert result.msg == "no label b"
    assert result.details["members"]["b"]["violations"][0]["details"] == {"label": "b"}
    answered = client(LABELS, {**document, "spec": {**document["spec"], "message": "Ask us."}})
    assert [one.msg for one in found(answered).results] == ["Ask us."]


def test_members_are_constraints_too_and_templates_in_cel() -> None:
    of_cel = client(
        LABELS,
        IN_CEL,
        constraint("Labelled", "own", match={"namespaces": ["nowhere"]}, parameters={"label": "a"}),
        group(
            members={
                "own": {"constraint": {"kind": "Labelled", "name": "own"}},
                "cel": {"kind": "InCel", "parameters": {"label": "b"}},
            },
            expression="own() || cel()",
        ),
        cel=True,
    )
    assert not found(of_cel, "a").results
    assert not found(of_cel, "b").results
    (result,) = found(of_cel).results
    assert result.details["members"]["own"]["name"] == "own"
    assert result.msg == "own() || cel() is false: own: no label a; cel: no label b"


def test_a_group_has_a_match_and_actions_as_constraints_have() -> None:
    scoped = client(
        LABELS,
        group(
            expression="a()",
            match={"excludedNamespaces": ["shop"]},
            enforcementAction="scoped",
            scopedEnforcementActions=[
                {"action": "warn", "enforcementPoints": [{"name": WEBHOOK}]},
            ],
        ),
    )
    assert not found(scoped).results
    (result,) = found(scoped, namespace="other").results
    assert result.actions == ("warn",)
    assert not found(scoped, namespace="other", point=AUDIT).results


@pytest.mark.parametrize(
    ("expression", "decided"),
    [("fails() || a()", True), ("a() || fails()", True), ("!(fails() && b())", True)],
)
def test_a_member_that_cannot_be_decided_matters_where_the_outcome_hangs_on_it(
    expression: str, decided: bool
) -> None:
    echo = echo_template("!x")
    members = {
        "a": labelled("a"),
        "b": labelled("b"),
        "fails": {"kind": "K8sEcho", "parameters": {"fail": "x"}},
    }
    failing = client(LABELS, echo, group(members=members, expression=expression))
    responses = found(failing, "a")
    assert (not responses.results and not responses.faults) is decided
    (result,) = found(failing, "b").results
    assert result.error
    assert result.msg == "member fails: !x"


def test_the_details_of_a_group_quote_no_value_of_a_secret() -> None:
    """An error of a member that did not decide was quoted as it was."""
    value = "hunter2hunter2"
    members = {"a": labelled("a"), "fails": {"kind": "K8sEcho", "parameters": {"fail": value}}}
    made = client(LABELS, echo_template(f"!{value}"), group(members=members, expression=BOTH))
    secret = pod() | {"kind": "Secret", "stringData": {"password": value}}
    (result,) = made.snapshot.review(AugmentedObject(secret), enforcement_point=WEBHOOK).results
    assert value not in str(result)
    assert result.details["members"]["fails"] == {"kind": "K8sEcho", "error": WITHHELD}


BOTH = "fails() && a()"


def test_a_case_matches_an_update_by_its_new_object() -> None:
    """Whoever took away the label of an accepted case was accepted once more, with anything."""
    batch = {"match": {"labelSelector": {"matchLabels": {"tier": "batch"}}}, "accept": True}
    made = client(LABELS, group(firstMatch=[batch, {"member": "a"}]))

    def refused(new: Any, old: Any, operation: str = "UPDATE") -> bool:
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        document = {"uid": "u", "kind": kind, "operation": operation, "name": "web"}
        document |= {"namespace": "shop", "object": new, "oldObject": old}
        value = AugmentedReview(read_request(document), {"metadata": {"name": "shop"}})
        return bool(made.snapshot.review(value, enforcement_point=WEBHOOK).results)

    of_batch, other = pod(labels={"tier": "batch"}), pod(labels={"tier": "front"})
    assert refused(other, of_batch)
    assert not refused(of_batch, other)
    assert not refused(None, of_batch, "DELETE")
    assert refused(None, other, "DELETE")


INVALID = {
    "no members": ({"members": {}, "expression": "a()"}, "spec.members"),
    "neither": ({}, "either expression or firstMatch"),
    "both": ({"expression": "a()", "firstMatch": [{"member": "a"}]}, "either expression or first"),
    "no call": ({"expression": "true"}, "calls no member"),
    "empty": ({"expression": ""}, "invalid spec.expression"),
    "unknown": ({"expression": "a() && zork()"}, "names zork, members are: a, b, c"),
    "arguments": ({"expression": "a(1)"}, "called as id()"),
    "another operator": ({"expression": "a() ? b() : c()"}, "called as id()"),
    "a variable": ({"expression": "object.spec.x"}, "called as id()"),
    "syntax": ({"expression": "a( ||"}, "Syntax error"),
    "a name": ({"members": {"a-b": labelled("a")}, "expression": "a()"}, "spec.members.a-b"),
    "a reserved name": ({"members": {"in": labelled("a")}, "expression": "a()"}, "such as in and"),
    "nothing named": ({"members": {"a": {}}, "expression": "a()"}, "either kind"),
    "itself": (
        {"members": {"a": {"kind": "ConstraintGroup"}}, "expression": "a()"},
        "a group cannot be a member of a group",
    ),
    "itself by name": (
        {
            "members": {"a": {"constraint": {"kind": "ConstraintGroup", "name": "g"}}},
            "expression": "a()",
        },
        "a group cannot be a member of a group",
    ),
    "no template": (
        {"members": {"a": {"kind": "Zork"}}, "expression": "a()"},
        "member a: there is no ConstraintTemplate of the kind Zork",
    ),
    "no constraint": (
        {
            "members": {"a": {"constraint": {"kind": "Labelled", "name": "zork"}}},
            "expression": "a()",
        },
        "member a: there is no constraint Labelled zork",
    ),
    "parameters": (
        {"members": {"a": {"kind": "Labelled", "parameters": {"label": 1}}}, "expression": "a()"},
        "spec.parameters.label in body must be of type string",
    ),
    "a case of nobody": ({"firstMatch": [{"member": "zork"}]}, "names zork"),
    "a case of both": ({"firstMatch": [{"member": "a", "accept": True}]}, "member or accept"),
    "no default": (
        {"firstMatch": [{"match": {"namespaces": ["x"]}, "member": "a"}]},
        "the last has none",
    ),
    "a default within": ({"firstMatch": [{"member": "a"}, {"member": "b"}]}, "the last has none"),
    "a selector": (
        {
            "firstMatch": [
                {"match": {"labelSelector": {"matchLabels": {"-": "x"}}}, "member": "a"},
                {"member": "b"},
            ]
        },
        "spec.labelSelector",
    ),
    "an unknown field": ({"expression": "a()", "zork": 1}, "unknown fields: [spec.zork]"),
    "a type": ({"expression": 1}, "spec.expression"),
}


@pytest.mark.parametrize(("spec", "message"), INVALID.values(), ids=INVALID)
def test_what_cannot_be_used_is_refused_with_what_and_where(
    spec: dict[str, Any], message: str
) -> None:
    made = client(LABELS)
    for call in (made.validate_constraint, made.add_constraint):
        with pytest.raises(ConstraintFrameworkError) as caught:
            call(group(**spec))
        assert message in str(caught.value)


def test_what_was_in_force_before_stays_where_a_change_is_refused() -> None:
    made = client(LABELS, group(expression="a()"))
    with pytest.raises(ConstraintFrameworkError):
        made.add_constraint(group(expression="a() && zork()"))
    assert [one.msg for one in found(made).results] == ["a() is false: a: no label a"]
    view = made.fault_of("ConstraintGroup", "g")
    assert view is not None
    assert view.answer == "lastGood"


def test_members_follow_their_templates_and_constraints() -> None:
    reference = {"own": {"constraint": {"kind": "Labelled", "name": "own"}}}
    own = constraint("Labelled", "own", enforcementAction="dryrun", parameters={"label": "a"})
    made = client(LABELS, own, group(members=reference, expression="own()"))
    before = made.snapshot
    (kept,) = (one for one in before.constraints if one.kind == "ConstraintGroup")
    made.add_constraint(constraint("Labelled", "other", parameters={"label": "z"}))
    assert any(one is kept for one in made.snapshot.constraints), "nothing of it changed"
    own["spec"]["parameters"] = {"label": "b"}
    made.add_constraint(own)
    messages = {one.msg for one in found(made).results if one.constraint.kind == "ConstraintGroup"}
    assert messages == {"own() is false: own: no label b"}

    made.remove_constraint("Labelled", "own")
    ours = [one for one in found(made).undecided if one.constraint.kind == "ConstraintGroup"]
    assert [(one.answer, one.cause) for one in ours] == [("reject", "constraint")]
    assert "member own: there is no constraint Labelled own" in ours[0].message
    made.add_constraint(own)
    assert not found(made).undecided

    made.remove_template("labelled")
    (undecided,) = found(made).undecided
    assert undecided.cause == "template"
    assert undecided.answer == "reject"
    view = made.fault_of("ConstraintGroup", "g")
    assert view is not None
    assert "there is no ConstraintTemplate of the kind Labelled" in view.message
    assert made.snapshot.digest != before.digest


def test_a_template_that_breaks_leaves_its_last_good_revision_to_the_group() -> None:
    made = client(LABELS, group(expression="a()"))
    broken = template("Labelled", "package labelled\nviolation[{", schema=SCHEMA)
    with pytest.raises(InvalidTemplate):
        made.add_template(broken)
    assert [one.msg for one in found(made).results] == ["a() is false: a: no label a"]
    view = made.fault_of("ConstraintGroup", "g")
    assert view is not None
    assert view.message.startswith("member a: ")


def test_a_group_is_removed_and_taken_over_from_a_snapshot() -> None:
    made = client(LABELS, group(expression="a()"))
    other = client()
    other.adopt(made.snapshot)
    assert found(other).results == found(made).results
    other.remove_template("labelled")
    assert found(other).undecided
    assert made.remove_constraint("ConstraintGroup", "g")
    assert not found(made).results
    assert made.snapshot.digest == client(LABELS).snapshot.digest


def test_no_template_makes_constraints_that_could_not_be_distinguished_from_groups() -> None:
    with pytest.raises(InvalidTemplate, match="ConstraintGroup"):
        client(template("ConstraintGroup", LABELLED))


def test_a_template_for_other_operations_accepts_as_its_constraints_would() -> None:
    only = template("Labelled", LABELLED, schema=SCHEMA, target={"operations": ["DELETE"]})
    made = client(only, group(expression="a()"))
    created = AugmentedObject(pod(), operation="CREATE")
    assert not made.snapshot.review(created, enforcement_point=WEBHOOK).results
    assert made.snapshot.review(created, enforcement_point=AUDIT).results
