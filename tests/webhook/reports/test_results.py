"""From a review to findings: verdicts, severity and category, passes and skips."""

import pytest

from tests.policies import exception
from tests.webhook.constraint.policies import client, constraint, echo_template, pod, template
from webhook.constraint import enforcement
from webhook.constraint.review import AugmentedObject
from webhook.constraint.selection import about, select
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.reports.finding import VERDICTS, ReportResult
from webhook.reports.report import finding_in, result
from webhook.reports.results import Descriptions, findings_of
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject

EVERYTHING: frozenset[ReportResult] = frozenset(VERDICTS)
DEFAULT: frozenset[ReportResult] = frozenset({"fail", "warn", "error"})


def found(policies, obj=None, stored=DEFAULT):
    snapshot = policies.snapshot
    review = AugmentedObject(obj or pod())
    responses = snapshot.review(review, enforcement_point=enforcement.AUDIT)
    selection = select(snapshot, review, enforcement.AUDIT)
    return findings_of(responses, snapshot, Descriptions(), stored, selection)


@pytest.mark.parametrize(
    ("action", "verdict"), [("deny", "fail"), ("dryrun", "fail"), ("warn", "warn")]
)
def test_an_enforcement_action_has_its_verdict(action, verdict):
    policies = client(template(), constraint(enforcementAction=action))
    (one,) = found(policies)
    assert (one.verdict, one.action) == (verdict, action)
    assert (one.policy, one.rule, one.message) == ("K8sDeny", "c", "no")


def scoped(*actions, point=enforcement.AUDIT):
    return constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": action, "enforcementPoints": [{"name": point}]} for action in actions
        ],
    )


def test_a_constraint_that_warns_and_denies_fails():
    (one,) = found(client(template(), scoped("warn", "deny")))
    assert (one.verdict, one.action) == ("fail", "deny,warn")


def test_a_constraint_of_another_enforcement_point_has_no_result():
    policies = client(template(), scoped("deny", point=enforcement.WEBHOOK))
    assert found(policies, stored=EVERYTHING) == ()


def test_an_evaluation_that_fails_is_an_error():
    policies = client(echo_template("!"), constraint("K8sEcho"))
    (one,) = found(policies)
    assert one.verdict == "error"


def test_a_constraint_that_cannot_be_matched_is_an_error():
    selector = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    policies = client(template(), constraint(match=selector))
    (one,) = found(policies, stored=EVERYTHING)
    assert one.verdict == "error"


def test_what_is_met_passes_and_what_does_not_match_is_skipped():
    policies = client(
        template(rego="package p\nviolation[{}] { false }\n"),
        constraint(name="met"),
        constraint(name="excluded", match={"excludedNamespaces": ["shop"]}),
        constraint(name="other-kind", match={"kinds": [{"apiGroups": [""], "kinds": ["Node"]}]}),
    )
    assert found(policies) == ()
    verdicts = {item.rule: item.verdict for item in found(policies, stored=EVERYTHING)}
    assert verdicts == {"met": "pass", "excluded": "skip"}


def test_what_is_violated_does_not_pass():
    policies = client(template(), constraint())
    assert {item.verdict for item in found(policies, stored=EVERYTHING)} == {"fail"}


def test_only_chosen_verdicts_are_stored():
    policies = client(
        template(),
        constraint(name="denies"),
        constraint(name="warns", enforcementAction="warn"),
    )
    assert [item.rule for item in found(policies, stored=frozenset({"warn"}))] == ["warns"]


def annotated(document, **annotations):
    annotations = {name.replace("__", "/"): text for name, text in annotations.items()}
    return document | {"metadata": document["metadata"] | {"annotations": annotations}}


def test_severity_and_category_come_from_the_constraint_or_else_its_template():
    kyverno = {"policies.kyverno.io/severity": "low", "policies.kyverno.io/category": "Pods"}
    one = template()
    one["metadata"]["annotations"] = kyverno
    own = constraint(name="own")
    own["metadata"]["annotations"] = {"waddle.dev/severity": "Critical"}
    policies = client(one, constraint(name="plain"), own)
    described = {item.rule: (item.severity, item.category) for item in found(policies)}
    assert described == {"plain": ("low", "Pods"), "own": ("critical", "Pods")}


@pytest.mark.parametrize("value", ["urgent", "", 3, None])
def test_a_severity_that_the_api_does_not_know_is_left_out(value):
    one = constraint()
    one["metadata"]["annotations"] = {"waddle.dev/severity": value, "waddle.dev/category": value}
    policies = client(template(), one)
    (item,) = found(policies)
    assert item.severity == ""


def test_constraints_about_a_kind_are_those_that_may_match_it():
    policies = client(
        template(),
        constraint(name="all"),
        constraint(name="nodes", match={"kinds": [{"apiGroups": [""], "kinds": ["Node"]}]}),
    )
    names = [item.name for item in about(policies.snapshot, ("", "Pod"), enforcement.AUDIT)]
    assert names == ["all"]


def test_what_is_excused_is_always_reported_as_skipped_and_by_which_exception():
    policies = client(template(), constraint())
    expires = "2100-01-01T00:00:00Z"
    document = exception(
        "e",
        "K8sDeny/c",
        match={"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]},
        reason="moving",
        expires=expires,
    )
    stage = Excusing([read_exception(document)])
    policy_set = PolicySet(policies.snapshot, stages=(stage,))
    review_ = Subject(AugmentedObject(pod()), point=enforcement.AUDIT)
    responses = review(policy_set, review_).responses
    for stored in (DEFAULT, EVERYTHING):
        selection = select(policies.snapshot, AugmentedObject(pod()), enforcement.AUDIT)
        (one,) = findings_of(responses, policies.snapshot, Descriptions(), stored, selection)
        assert (one.verdict, one.message) == ("skip", "no")
        entry = result(one, 0)
        assert entry["scored"] is False
        assert entry["properties"] == {
            "exception": "ClusterPolicyException e",
            "reason": "moving",
            "expires": expires,
        }
        assert finding_in(entry) == one
