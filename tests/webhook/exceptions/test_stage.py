"""Findings that exceptions excuse, and findings that they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import constraint, exception, expansion_template, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.expansion import Expansion, read_expansion_template
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.exceptions.exception import InvalidException
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.exceptions.without_parts import AGAIN_MAX
from webhook.policies.effect import Effect
from webhook.review.loops import review
from webhook.review.outcome import Found, Needs
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, played
from webhook.review.walk import walk
from webhook.serving.revision import ExceptionUses

if TYPE_CHECKING:
    from webhook.constraint.result import Responses

PRIVILEGED = """package p
violation[{"msg": msg, "details": {"container": c.name, "ports": [1]}}] {
  c := input.review.object.spec.containers[_]
  c.securityContext.privileged
  msg := sprintf("%v is privileged", [c.name])
}
"""
COUNTED = """package p
violation[{"msg": msg}] {
  n := count([c | c := input.review.object.spec.containers[_]; c.securityContext.privileged])
  n > 0
  msg := sprintf("%v containers are privileged", [n])
}
"""
INDEXED = """package p
violation[{"msg": msg}] {
  input.review.object.spec.containers[i].securityContext.privileged
  msg := sprintf("containers[%v] is privileged", [i])
}
"""
EXPANSION = read_expansion_template(expansion_template("e"))
THE = "Privileged/none"
OPEN = {"annotations": {"waddle.dev/exceptions": "all"}}


def pod(*privileged: str, namespace: str = "shop", **metadata: Any) -> dict[str, Any]:
    containers = [
        {"name": name, "image": f"{name}:1", "securityContext": {"privileged": True}}
        for name in privileged
    ]
    metadata = {"name": "p", "namespace": namespace, **metadata}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


def deployment(*privileged: str) -> dict[str, Any]:
    made = pod(*privileged)
    template_ = {"metadata": {}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": made["metadata"],
        "spec": {"template": template_},
    }


def found(
    value: Any,
    *exceptions: dict[str, Any],
    rego: str = PRIVILEGED,
    at: float | None = None,
    metadata: dict[str, Any] = OPEN,
    **spec: Any,
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Action and message of what is left, message and exception of what is excused."""
    responses = reviewed(value, *exceptions, rego=rego, at=at, metadata=metadata, **spec)
    excused = [(one.msg, one.excuse.title) for one in responses.excused if one.excuse is not None]
    assert len(excused) == len(responses.excused)
    return [(",".join(one.actions), one.msg) for one in responses.results], excused


def reviewed(
    value: Any,
    *exceptions: dict[str, Any],
    rego: str = PRIVILEGED,
    at: float | None = None,
    metadata: dict[str, Any] = OPEN,
    **spec: Any,
) -> Responses:
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Privileged", rego))
    client.add_constraint(constraint("Privileged", "none", metadata=metadata, **spec))
    policies = PolicySet(
        client.snapshot,
        expansion=Expansion([EXPANSION]),
        stages=(Excusing(map(read_exception, exceptions)),),
    )
    if type(value) is dict:
        value = AugmentedObject(value, {"metadata": {"name": value["metadata"]["namespace"]}})
    responses = review(policies, Subject(value, at=at)).responses
    assert not responses.faults
    assert not responses.undecided
    return responses


def left(value: Any, *exceptions: dict[str, Any], **options: Any) -> list[str]:
    """The messages that are left."""
    return [message for _, message in found(value, *exceptions, **options)[0]]


def test_what_is_excused_is_reported_with_its_exception() -> None:
    kept, excused = found(pod("agent"), exception("e", THE, namespace="shop"))
    assert kept == []
    assert excused == [("agent is privileged", "PolicyException shop/e")]


def test_an_exception_is_for_the_objects_of_its_own_namespace_alone() -> None:
    assert left(pod("agent", namespace="other"), exception("e", THE, namespace="shop"))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "namespace": ""}}
    always = 'package p\nviolation[{"msg": "always"}] { true }'
    # Rights within a namespace are no rights on the Namespace.
    assert left(space, exception("e", THE, namespace="shop"), rego=always) == ["always"]
    wide = exception("e", THE, match={"namespaces": ["shop"]})
    assert left(space, wide, rego=always) == []


def test_a_list_of_namespaces_excuses_nothing_that_is_in_none() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    always = 'package p\nviolation[{"msg": "always"}] { true }'
    for places in (["shop"], ["shop", "other"], ["shop-*"]):
        of_shop = exception("e", THE, match={"namespaces": places})
        assert left(AugmentedObject(node), of_shop, rego=always) == ["always"]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "a"}},
        {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    ],
)
def test_a_selector_of_namespaces_excuses_nothing_that_is_in_none(selector: Any) -> None:
    """An exception for a team's namespaces excused all cluster-scoped objects."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    always = 'package p\nviolation[{"msg": "always"}] { true }'
    of_team = exception("e", THE, match={"namespaceSelector": selector})
    assert left(AugmentedObject(node), of_team, rego=always) == ["always"]
    space = {"metadata": {"name": "shop"}}
    if "matchLabels" in selector:
        space["metadata"]["labels"] = selector["matchLabels"]
    assert left(AugmentedObject(pod("agent"), space), of_team) == []


def test_another_constraint_s_violations_stay() -> None:
    assert left(pod("agent"), exception("e", "Privileged/other", namespace="shop"))
    assert left(pod("agent"), exception("e", "Other/none", namespace="shop"))
    assert not left(pod("agent"), exception("e", "Privileged/*", match={"name": "p"}))


@pytest.mark.parametrize(
    ("match", "excuses"),
    [
        ({"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}, True),
        ({"kinds": [{"apiGroups": [""], "kinds": ["Secret"]}]}, False),
        ({"name": "p"}, True),
        ({"name": "p*"}, True),
        ({"name": "q"}, False),
        ({"labelSelector": {"matchLabels": {"app": "agent"}}}, True),
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, False),
    ],
)
def test_the_match_is_a_constraint_s(match: dict[str, Any], excuses: bool) -> None:
    value = pod("agent", labels={"app": "agent"})
    assert (not left(value, exception("e", THE, namespace="shop", match=match))) is excuses


@pytest.mark.parametrize("pattern", ["web-*", "*web-*"])
@pytest.mark.parametrize(
    ("metadata", "excuses"),
    [
        ({"name": None, "generateName": "web-"}, True),
        ({"name": "web-x7k2p", "generateName": "web-"}, True),
        ({"name": "other", "generateName": "web-"}, False),
        ({"name": f"web-{54 * 'a'}x7k2p", "generateName": f"web-{70 * 'a'}"}, True),
    ],
)
def test_a_name_that_was_not_generated_decides_alone(
    pattern: str, metadata: dict[str, Any], excuses: bool
) -> None:
    """A Pod of any name was excused if its author wrote another's generateName beside the name."""
    excused = exception("e", THE, namespace="shop", match={"name": pattern})
    assert (not left(pod("agent", **metadata), excused)) is excuses


def test_an_update_is_excused_for_what_the_object_is_and_not_for_what_it_was() -> None:
    """A constraint matches the old object, too; an exception that did would let labels go."""
    space = {"metadata": {"name": "shop"}}
    was, is_now = pod("agent", labels={"app": "agent"}), pod("agent")
    of_agents = exception(
        "e", THE, namespace="shop", match={"labelSelector": {"matchLabels": {"app": "agent"}}}
    )
    assert left(played(is_now, space, "UPDATE", was), of_agents)
    assert not left(played(was, space, "UPDATE", is_now), of_agents)


@pytest.mark.parametrize(
    ("violations", "excuses"),
    [
        ([{"message": "agent is*"}], True),
        ([{"message": "*is*privileged"}], True),
        ([{"message": "web*"}, {"message": "agent*"}], True),
        ([{"message": "agent"}], False),
        ([{"details": {"container": "a*t"}}], True),
        ([{"details": {"ports": [1]}}], True),
        ([{"details": {"ports": [True]}}], False),
        ([{"details": {"container": "agent", "other": 1}}], False),
        ([{"message": "agent*", "details": {"container": "web"}}], False),
    ],
)
def test_violations_are_named_by_message_or_details(
    violations: list[dict[str, Any]], excuses: bool
) -> None:
    of_these = exception("e", THE, namespace="shop", violations=violations)
    assert (not left(pod("agent"), of_these)) is excuses


def test_an_exception_holds_between_its_times() -> None:
    timed = exception(
        "e",
        THE,
        namespace="shop",
        notBefore="2027-01-01T00:00:00Z",
        expires="2027-01-02T01:00:00+01:00",
    )
    first = 1798761600.0  # 2027-01-01
    assert left(pod("agent"), timed, at=first - 1)
    assert not left(pod("agent"), timed, at=first)
    assert not left(pod("agent"), timed, at=first + 24 * 3600 - 1)
    assert left(pod("agent"), timed, at=first + 24 * 3600)


def test_times_may_be_written_with_small_letters() -> None:
    small = exception("e", THE, namespace="shop", expires="2099-12-31t12:00:00z")
    assert not left(pod("agent"), small)


@pytest.mark.parametrize("field", ["notBefore", "expires"])
def test_a_list_for_a_time_is_named(field: str) -> None:
    """A fault of Waddle was reported instead."""
    with pytest.raises(InvalidException, match=f"spec.{field} is not a time"):
        read_exception(exception("e", THE, namespace="shop", **{field: []}))


@pytest.mark.parametrize("field", ["notBefore", "expires"])
def test_a_time_beyond_the_last_year_is_named(field: str) -> None:
    times = {"expires": "9999-12-31T23:59:59-12:00", field: "9999-12-31T23:59:59-12:00"}
    with pytest.raises(InvalidException, match=f"spec.{field} is not a time"):
        read_exception(exception("e", THE, namespace="shop", **times))


@pytest.mark.parametrize(
    ("action", "effect", "expected"),
    [
        ("deny", "warn", "warn"),
        ("deny", "dryrun", "dryrun"),
        ("warn", "dryrun", "dryrun"),
        ("dryrun", "warn", "dryrun"),
        ("warn", "warn", "warn"),
    ],
)
def test_an_effect_weakens_and_never_strengthens(action: str, effect: str, expected: str) -> None:
    kept, excused = found(
        pod("agent"), exception("e", THE, namespace="shop", effect=effect), enforcementAction=action
    )
    assert kept == [(expected, "agent is privileged")]
    assert excused == []


def test_the_most_lenient_of_several_counts() -> None:
    strict = exception("a", THE, namespace="shop", effect="warn")
    assert found(pod("agent"), strict, exception("b", THE, namespace="shop"))[0] == []


def test_subjects_are_of_an_admission_alone() -> None:
    space = {"metadata": {"name": "shop"}}
    for subject, user in (
        ({"kind": "User", "name": "ci-*"}, {"username": "ci-7"}),
        ({"kind": "Group", "name": "ops"}, {"username": "u", "groups": ["devs", "ops"]}),
        (
            {"kind": "ServiceAccount", "name": "builder"},
            {"username": "system:serviceaccount:shop:builder"},
        ),
    ):
        of_them = exception("e", THE, namespace="shop", subjects=[subject])
        assert not left(played(pod("agent"), space, "CREATE", user=user), of_them)
        assert left(played(pod("agent"), space, "CREATE", user={"username": "x"}), of_them)
        assert left(pod("agent"), of_them), "an audit has no user"


def test_conditions_in_cel_narrow_and_an_error_excuses_nothing() -> None:
    def of(expression: str) -> dict[str, Any]:
        conditions = [{"name": "c", "expression": expression}]
        return exception("e", THE, namespace="shop", matchConditions=conditions)

    assert not left(pod("agent"), of("object.metadata.name == 'p'"))
    assert left(pod("agent"), of("object.metadata.name == 'q'"))
    assert left(pod("agent"), of("object.metadata.labels.app == 'x'"))
    fault = condition_fault(pod("agent"), of("object.metadata.labels.app == 'x'"))
    assert fault.startswith("expression '")


@pytest.mark.parametrize("deferrable", [True, False])
def test_conditions_that_take_long_do_not_hold_up_the_thread(deferrable: bool) -> None:
    """They ran to the end of their cost, over a second each, on the thread of all admissions."""
    each = "object.spec.containers.all(a, object.spec.containers.all(b, {}))"
    expression = each.format(each.format("a.name != 'x'"))
    conditions = [{"name": "slow", "expression": expression}]
    excusing = Excusing([read_exception(exception("e", THE, matchConditions=conditions))])
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Privileged", PRIVILEGED))
    client.add_constraint(constraint("Privileged", "none", metadata=OPEN))
    policies = PolicySet(client.snapshot, stages=(excusing,))
    budget = Budget.of(0.05, deferrable=deferrable)
    value = AugmentedObject(pod("agent", *(f"c{number}" for number in range(50))), {})
    outcome = walk(policies, Subject(value, limits=Limits(budget=budget)))
    if deferrable:
        assert isinstance(outcome, Needs)
        assert outcome.time
        return
    assert isinstance(outcome, Found)
    assert outcome.responses.results
    assert "exceeded its budget of 50 ms" in excusing.condition_faults["ClusterPolicyException e"]


def test_an_exception_whose_conditions_fail_changes_nothing_for_the_others() -> None:
    conditions = [{"name": "c", "expression": "object.metadata.labels.app == 'x'"}]
    failing = [
        exception(name, THE, namespace="shop", matchConditions=conditions) for name in ("a", "z")
    ]
    good = exception("good", THE, namespace="shop", parts={"containers": ["agent"]})
    kept, excused = found(pod("agent", "web"), failing[0], good, failing[1])
    assert kept == [("deny", "web is privileged")]
    assert excused == [("agent is privileged", "PolicyException shop/good")]


def condition_fault(obj: dict[str, Any], written: dict[str, Any]) -> str:
    """Returns the error of an exception's conditions in a review of an object."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Privileged", PRIVILEGED))
    client.add_constraint(constraint("Privileged", "none", metadata=OPEN))
    stage = Excusing([read_exception(written)])
    responses = review(
        PolicySet(client.snapshot, stages=(stage,)), Subject(AugmentedObject(obj))
    ).responses
    assert responses.results
    assert not responses.excused
    return stage.condition_faults["PolicyException shop/e"]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [("Secret", "an error on a Secret"), ("ConfigMap", "hunter2")],
)
def test_an_error_on_a_secret_is_named_without_its_words(kind: str, fault: str) -> None:
    """The words of an error may have values of the object, and anybody may read a status."""
    conditions = [{"name": "c", "expression": "object.data[object.data.word] == 'x'"}]
    written = exception("e", THE, namespace="shop", matchConditions=conditions)
    obj = {**pod("agent"), "kind": kind, "data": {"word": "hunter2"}}
    text = condition_fault(obj, written)
    assert fault in text
    assert ("hunter2" in text) is (kind != "Secret")


# --- parts ----------------------------------------------------------------------------------------


def parted(name: str = "agent", **options: Any) -> dict[str, Any]:
    return exception(name, THE, namespace="shop", parts={"containers": [name]}, **options)


@pytest.mark.parametrize("rego", [PRIVILEGED, COUNTED, INDEXED])
def test_one_container_is_excused_under_any_policy_and_not_its_pod(rego: str) -> None:
    assert left(pod("agent"), parted(), rego=rego) == []
    assert left(pod("agent", "web"), parted(), rego=rego)
    assert left(pod("web"), parted(), rego=rego)
    assert left(pod("web", "agent"), parted(), rego=rego)


def test_what_is_left_is_reported() -> None:
    kept, excused = found(pod("agent", "web"), parted())
    assert kept == [("deny", "web is privileged")]
    assert excused == [("agent is privileged", "PolicyException shop/agent")]


@pytest.mark.parametrize("rego", [PRIVILEGED, COUNTED, INDEXED])
def test_several_exceptions_add_up(rego: str) -> None:
    assert left(pod("agent", "web"), parted("agent"), parted("web"), rego=rego) == []
    assert left(pod("agent", "web", "x"), parted("agent"), parted("web"), rego=rego)


def test_each_exception_that_is_needed_is_counted_and_in_use() -> None:
    """Not those that another one makes superfluous."""
    both = [parted("agent", expires="2099-01-01T00:00:00Z"), parted("web")]
    responses = reviewed(pod("agent", "web"), *both, parted("x"), rego=COUNTED)
    counted, uses = Effect((), ["PolicyException shop/x"]), ExceptionUses()
    counted.take("p", (), responses.results, responses.excused)
    uses.note(responses)
    assert counted.excused == {
        "PolicyException shop/agent": 1,
        "PolicyException shop/web": 1,
        "PolicyException shop/x": 0,
    }
    assert sorted(name for _, _, name in uses.take()) == ["agent", "web"]
    (result,) = responses.excused
    assert result.excuse is not None
    assert result.excuse.title == "PolicyException shop/agent", "it ends first"


def test_an_exception_is_needed_once_where_a_name_was_generated() -> None:
    """It was found both by the name and by generateName, and listed twice."""
    match = {"name": "web-*"}
    generated = pod("agent", "web", name="web-x7k2p", generateName="web-")
    responses = reviewed(
        generated, parted("agent", match=match), parted("web", match=match), rego=COUNTED
    )
    (result,) = responses.excused
    assert result.excuse is not None
    assert [excuse.name for excuse in result.excuse.needed] == ["agent", "web"]


@pytest.mark.parametrize(
    ("parts", "excuses"),
    [
        ({"images": ["agent:*"]}, True),
        ({"images": ["*/agent:*"]}, False),
        ({"containers": ["a*"]}, True),
        ({"paths": ["spec.containers[name: agent]"]}, True),
        ({"paths": ["spec.containers[name: agent].securityContext"]}, True),
        ({"paths": ["spec.containers[name: web]"]}, False),
        ({"paths": ["spec.containers[name: *].securityContext.privileged"]}, True),
    ],
)
def test_parts_are_named_in_several_ways(parts: dict[str, Any], excuses: bool) -> None:
    assert (not left(pod("agent"), exception("e", THE, namespace="shop", parts=parts))) is excuses


def test_what_an_object_implies_is_covered_by_exceptions_for_the_object() -> None:
    of_deployments = {"kinds": [{"apiGroups": ["apps"], "kinds": ["Deployment"]}], "name": "p"}
    whole = exception("e", THE, namespace="shop", match=of_deployments)
    assert left(deployment("agent")) == ["[Implied by e] agent is privileged"]
    assert left(deployment("agent"), whole) == []
    assert left(deployment("agent", "web"), parted()) == ["[Implied by e] web is privileged"]
    excusing = exception(
        "e", THE, namespace="shop", violations=[{"message": "agent is privileged"}]
    )
    assert left(deployment("agent"), excusing) == []
    path = {"paths": ["spec.template.spec.containers[name: agent]"]}
    by_path = exception("e", THE, namespace="shop", parts=path)
    assert left(deployment("agent", "web"), by_path) == ["[Implied by e] web is privileged"]


def test_reviews_without_parts_are_bounded() -> None:
    names = [f"c{number}" for number in range(2 * AGAIN_MAX)]
    assert left(pod(*names), *map(parted, names))


def test_exceptions_for_parts_that_an_object_lacks_take_none_of_its_reviews() -> None:
    others = [parted(f"other{number}") for number in range(2 * AGAIN_MAX)]
    assert left(pod("agent"), *others, parted("agent")) == []


@pytest.mark.parametrize("name", ["web", "absent"])
def test_an_exception_that_is_not_needed_makes_no_violation_stricter(name: str) -> None:
    some = """package p
violation[{"msg": "some"}] { input.review.object.spec.containers[_].name == {"a", "b"}[_] }"""
    unneeded = exception(
        "unneeded", THE, namespace="shop", parts={"containers": [name]}, effect="warn"
    )
    assert left(pod("a", "b", "web"), unneeded, parted("a"), parted("b"), rego=some) == []


def test_a_constraint_that_cannot_be_matched_is_not_excused() -> None:
    selector = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    value = AugmentedObject(pod("agent"))  # with no Namespace at hand: autoreject
    everything = exception("e", THE, namespace="shop")
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Privileged", PRIVILEGED))
    client.add_constraint(constraint("Privileged", "none", metadata=OPEN, match=selector))
    stage = Excusing([read_exception(everything)])
    responses = review(PolicySet(client.snapshot, stages=(stage,)), Subject(value)).responses
    assert [one.cause for one in responses.results] == ["autoreject"]


def test_what_is_said_of_an_exception_is_excused_by_none() -> None:
    always = 'package p\nviolation[{"msg": "always"}] { true }'
    about = exception("about", THE, namespace="shop")
    assert left(about, exception("e", THE, namespace="shop"), rego=always) == ["always"]


def test_a_delete_is_reviewed_without_the_parts_of_the_old_object() -> None:
    on_delete = PRIVILEGED.replace("input.review.object", "input.review.oldObject")
    space = {"metadata": {"name": "shop"}}
    value = played(pod("agent"), space, "DELETE")
    assert isinstance(value, AugmentedReview)
    assert left(value, parted(), rego=on_delete) == []


@pytest.mark.parametrize(
    ("annotation", "of_namespaces", "of_cluster"),
    [
        (None, False, True),
        ("cluster", False, True),
        ("all", True, True),
        ("none", False, False),
        ("any", False, False),
    ],
)
def test_a_constraint_says_which_exceptions_it_allows(
    annotation: str | None, of_namespaces: bool, of_cluster: bool
) -> None:
    metadata = {} if annotation is None else {"annotations": {"waddle.dev/exceptions": annotation}}
    one = exception("e", THE, namespace="shop")
    wide = exception("e", THE, match={"name": "p"})
    assert (not left(pod("agent"), one, metadata=metadata)) is of_namespaces
    assert (not left(pod("agent"), wide, metadata=metadata)) is of_cluster
