"""Each row of docs/isolation.md: what a faulty policy gives at admission and in an audit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.isolation_table import (
    CEL,
    CONFLICT,
    ENDLESS,
    GOOD,
    STAGES,
    SYNTAX,
    UNSAFE,
    Cell,
    actions,
    cells,
)
from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint import enforcement, findings
from webhook.constraint.breaker import OVERRUNS_MAX, Guard
from webhook.constraint.drivers import budget
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.isolation import ANNOTATION, Isolation, on_error_of
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.result import DEFERRED
from webhook.constraint.review import AugmentedObject
from webhook.rego.run import limits as rego_limits
from webhook.server import verdict

WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"word": {"type": "integer"}}}
BROKEN_SCHEMA = {"type": "object", "properties": {"word": {}}}

BUDGET = Budget.of(0.02)


class Ticking:
    """A clock that goes on by so many seconds each time that it is looked at."""

    def __init__(self, seconds):
        self._seconds = seconds
        self.now = 0.0

    def monotonic(self):
        """The time after one more tick."""
        self.now += self._seconds
        return self.now

    thread_time = monotonic


class Stopped:
    """Another module's clock, which does not advance when it is read."""

    def __init__(self, clock):
        self._clock = clock

    def monotonic(self):
        """The time."""
        return self._clock.now


HOW = ("annotated constraint", "annotated template", "flag")


def annotated(document, on_error, *, really=True):
    """The object with the annotation."""
    if really:
        document["metadata"] = {**document["metadata"], "annotations": {ANNOTATION: on_error}}
    return document


def broken_template(stage):
    """The newest generation of the template; for the stage constraint it is another's fault."""
    if stage == "parse":
        return template(rego=SYNTAX, schema=WORD)
    if stage == "compile":
        return template(rego=UNSAFE, schema=WORD)
    if stage == "template":
        return template(rego=GOOD, schema=BROKEN_SCHEMA)
    return template(rego=GOOD, schema=NUMBER)


class Policy:
    """A policy with the fault of a row, and its client."""

    def __init__(self, cell: Cell, *, how=HOW[0], scoped="", rego=GOOD):
        self.cell = cell
        self.how = how
        flag: Any = (
            cell.on_error if how == "flag" else "allow" if cell.on_error != "allow" else "reject"
        )
        self.client = client(
            isolation=Isolation(on_error=flag, spared_namespaces=frozenset({"kube-system"}))
        )
        spec = actions(cell.action, scoped=bool(scoped), point=scoped)
        match = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
        self.constraint = annotated(
            constraint(match=match, parameters={"word": "x"}, **spec),
            cell.on_error,
            really=how == HOW[0],
        )
        self.good = template(rego=rego, schema=WORD)

    def add(self, document):
        """Add an object, whether it is accepted or not."""
        if document["kind"] == "ConstraintTemplate":
            annotated(document, self.cell.on_error, really=self.how == HOW[1])
        add = {
            "ConstraintTemplate": self.client.add_template,
        }.get(document["kind"], self.client.add_constraint)
        try:
            add(document)
        except ConstraintFrameworkError:
            return False
        return True

    def broken(self, stage):
        """Bring in the row's broken policy."""
        if "last good" in self.cell.fault:
            assert self.add(self.good)
            assert self.add(self.constraint)
        accepted = self.add(broken_template(stage))
        assert accepted is (stage == "constraint")
        self.add(self.constraint)
        return self

    def enforced(self):
        """Bring in a policy that compiles."""
        assert self.add(self.good)
        assert self.add(self.constraint)
        return self

    def review(self, point=enforcement.WEBHOOK, namespace="shop", **limits):
        """Returns the review of a Pod."""
        return self.client.snapshot.review(
            AugmentedObject(pod(namespace=namespace)),
            enforcement_point=point,
            limits=Limits(**limits),
        )


def outcome(responses):
    """A cell's word for what was found, and the answer to give it."""
    if responses.undecided:
        (undecided,) = responses.undecided
        assert responses.results == ()
        return undecided.answer
    (result,) = responses.results
    return {"deny": "denied", "warn": "warned", "dryrun": "recorded"}[result.actions[0]]


def check_answer(responses, word):
    """The answer at admission says what the word means."""
    answer = verdict.judge("uid", responses)
    if word == "denied":
        assert (answer.allowed, answer.code) == (False, 403)
    elif word == "reject":
        assert (answer.allowed, answer.code, answer.reason) == (False, 500, "PolicyFault")
        assert answer.message.startswith("[c] K8sDeny could not be decided (")
    else:
        assert answer.allowed
        assert bool(answer.warnings) is (word in ("warn", "warned"))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("cell", cells("broken", "broken, last good"), ids=str)
def test_a_broken_policy_gives_what_the_table_says(cell, stage, how):
    policy = Policy(cell, how=how).broken(stage)

    found = policy.review()

    assert outcome(found) == cell.admission
    check_answer(found, cell.admission)
    assert outcome(policy.review(enforcement.AUDIT)) == cell.audit
    if found.undecided:
        assert found.undecided[0].cause == stage
        assert found.undecided[0].answer == cell.metric
    fault = policy.client.fault_of("K8sDeny", "c")
    assert fault.cause == stage
    assert fault.answer == ("lastGood" if cell.metric == "—" else cell.metric)
    is_enforced = [item.name for item in policy.client.snapshot.constraints] == ["c"]
    assert is_enforced is (cell.enforced == "true")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("cell", cells("no engine"), ids=str)
def test_a_template_without_its_engine_gives_what_the_table_says(cell, how):
    """A cluster that is taken over is not blocked: compliant objects are refused by nobody."""
    policy = Policy(cell, how=how)
    assert not policy.add(template(rego="", schema=WORD, target={"code": [CEL]}))
    assert policy.add(policy.constraint)

    found = policy.review()

    assert outcome(found) == cell.admission == cell.metric
    check_answer(found, cell.admission)
    assert outcome(policy.review(enforcement.AUDIT)) == cell.audit
    (undecided,) = found.undecided
    assert undecided.cause == "engine"
    assert "K8sNativeValidation (CEL)" in undecided.message
    fault = policy.client.fault_of("K8sDeny", "c")
    assert (fault.cause, fault.answer) == ("engine", cell.metric)
    assert list(policy.client.snapshot.constraints) == []
    assert not policy.add(constraint(parameters={"word": 5}))


def test_a_template_whose_engine_came_and_went_is_enforced_by_its_last_good_revision():
    policy = Policy(cells("no engine")[0]).enforced()
    assert not policy.add(template(rego="", schema=WORD, target={"code": [CEL]}))
    assert outcome(policy.review()) == "denied"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("cell", cells("broken", "broken, last good"), ids=str)
def test_a_scoped_action_counts_at_its_point_and_nowhere_else(cell, stage):
    policy = Policy(cell, scoped=enforcement.WEBHOOK).broken(stage)

    assert outcome(policy.review()) == cell.admission
    elsewhere = policy.review(enforcement.AUDIT)
    assert (elsewhere.results, elsewhere.undecided) == ((), ())


@pytest.mark.parametrize("how", HOW[:2])
@pytest.mark.parametrize("cell", cells("error"), ids=str)
def test_an_evaluation_that_fails_gives_what_the_table_says(cell, how):
    policy = Policy(cell, how=how, rego=CONFLICT).enforced()

    for point, word in ((enforcement.WEBHOOK, cell.admission), (enforcement.AUDIT, cell.audit)):
        found = policy.review(point)
        assert outcome(found) == word
        message = found.undecided[0].message if found.undecided else found.results[0].msg
        assert "eval_conflict_error" in message
    check_answer(policy.review(), cell.admission)


@pytest.mark.parametrize("scoped", ["", enforcement.WEBHOOK])
@pytest.mark.parametrize("cell", cells("overrun", "suspended"), ids=str)
def test_an_overrun_gives_what_the_table_says(cell, scoped):
    policy = Policy(cell, scoped=scoped, rego=ENDLESS).enforced()
    guard = Guard()
    overruns = OVERRUNS_MAX if cell.fault == "suspended" else 0

    for _ in range(overruns):
        policy.review(budget=Budget.of(0.01, guard=guard))
    found = policy.review(budget=Budget.of(0.01, guard=guard))

    assert outcome(found) == cell.admission
    assert found.undecided[0].cause == cell.fault
    check_answer(found, cell.admission)
    if cell.audit != "—" and not scoped:
        assert outcome(policy.review(enforcement.AUDIT, budget=BUDGET)) == cell.audit


def test_nothing_is_refused_where_a_repair_happens():
    """kube-system, what is in it, and policies themselves get a warning."""
    policy = Policy(cells("broken")[0]).broken("parse")
    policy.constraint["spec"].pop("match")
    policy.add(policy.constraint)

    def answer(obj):
        found = policy.client.snapshot.review(
            AugmentedObject(obj), enforcement_point=enforcement.WEBHOOK
        )
        return outcome(found)

    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    assert answer(pod(namespace="shop")) == "reject"
    assert answer(pod(namespace="kube-system")) == "warn"
    assert answer(namespace) == "warn"
    assert answer({**namespace, "metadata": {"name": "shop"}}) == "reject"
    assert answer(template()) == "warn"
    assert answer(constraint()) == "warn"


def test_a_denial_by_another_policy_is_the_answer():
    policy = Policy(cells("broken")[0]).broken("compile")
    other = template("K8sOther", GOOD)
    policy.client.add_template(other)
    policy.client.add_constraint(constraint("K8sOther", "other"))

    answer = verdict.judge("uid", policy.review())

    assert (answer.code, answer.message) == (403, "[other] found")


def test_a_repaired_policy_decides_again():
    policy = Policy(cells("broken")[0]).broken("parse")

    policy.enforced()

    assert outcome(policy.review()) == "denied"
    assert policy.client.fault_of("K8sDeny") is None
    assert policy.client.fault_of("K8sDeny", "c") is None


def test_going_back_to_the_last_good_source_is_a_repair():
    policy = Policy(cells("broken, last good")[3]).broken("parse")
    assert outcome(policy.review()) == "reject"

    policy.enforced()

    assert outcome(policy.review()) == "denied"


def test_the_digest_tells_what_decides_and_not_what_was_tried():
    lasting = Policy(cells("broken, last good")[0])
    lasting.enforced()
    before = lasting.client.snapshot.digest
    lasting.add(broken_template("parse"))
    assert lasting.client.snapshot.digest == before

    refusing = Policy(cells("broken, last good")[3])
    refusing.enforced()
    before = refusing.client.snapshot.digest
    refusing.add(broken_template("parse"))
    assert refusing.client.snapshot.digest != before


def test_a_constraint_whose_match_cannot_be_read_matches_nothing():
    subject = client(template())

    with pytest.raises(ConstraintFrameworkError):
        subject.add_constraint(constraint(match={"kinds": "all"}))

    found = subject.snapshot.review(AugmentedObject(pod()))
    assert (found.results, found.undecided) == ((), ())


def test_an_annotation_of_another_value_is_refused():
    with pytest.raises(ConstraintFrameworkError, match="lastGood, reject, allow"):
        client(template(), annotated(constraint(), "ignore"))
    with pytest.raises(ConstraintFrameworkError, match="lastGood, reject, allow"):
        client(annotated(template(), "ignore"))
    with pytest.raises(ConstraintFrameworkError, match="lastGood, reject, allow"):
        client().create_crd(annotated(template(), "ignore"))
    with pytest.raises(ConstraintFrameworkError, match="lastGood, reject, allow"):
        client(template()).validate_constraint(annotated(constraint(), "ignore"))
    assert on_error_of(annotated(constraint(), "allow")) == "allow"


def test_a_failed_evaluation_of_a_warning_never_leaves_a_request_undecided():
    """Also where errors are left to failurePolicy, and where Gatekeeper would answer 500."""
    no_text = 'package p\nviolation[{"msg": 3}] { true }'
    for rego in (CONFLICT, no_text):
        subject = client(
            template(rego=rego),
            constraint(enforcementAction="warn"),
            constraint(name="d", enforcementAction="dryrun"),
            isolation=Isolation(error_is_violation=False),
        )

        found = subject.snapshot.review(AugmentedObject(pod()))

        assert found.faults == ()
        assert [(item.cause, item.answer) for item in found.undecided] == [
            ("error", "warn"),
            ("error", "record"),
        ]


def test_an_overrun_costs_only_the_constraints_of_its_parameters():
    rego = """package p
violation[{"msg": "found"}] { input.parameters.word == "y" }
violation[{"msg": "never"}] {
  input.parameters.word == "x"
  numbers := numbers.range(1, 1000)
  some i, j, k
  numbers[i] + numbers[j] + numbers[k] == -1
}"""
    subject = client(
        template(rego=rego, schema=WORD),
        constraint(name="a", parameters={"word": "x"}),
        constraint(name="b", parameters={"word": "y"}),
        constraint(name="c", parameters={"word": "x"}),
    )

    found = subject.snapshot.review(AugmentedObject(pod()), limits=Limits(budget=BUDGET))

    assert [result.constraint.name for result in found.results] == ["b"]
    assert [item.constraint.name for item in found.undecided] == ["a", "c"]


def test_a_request_s_time_is_a_matter_of_those_that_deny(monkeypatch):
    """They are evaluated first, and only one of them left undecided leaves it undecided.

    Time passes while an evaluation that takes long looks at the clock, and else not.
    """
    clock = Ticking(1.0)
    monkeypatch.setattr(rego_limits, "time", clock)
    monkeypatch.setattr(findings, "time", Stopped(clock))
    endless = template("K8sA", ENDLESS)
    fast = template("K8sZ", GOOD)
    subject = client(
        endless, constraint("K8sA", enforcementAction="warn"), fast, constraint("K8sZ")
    )
    limits = Limits(deadline=0.5)

    found = subject.snapshot.review(AugmentedObject(pod()), limits=limits)

    assert not found.deadline_exceeded
    assert [result.constraint.kind for result in found.results] == ["K8sZ"]
    assert [(item.cause, item.answer) for item in found.undecided] == [("deadline", "warn")]

    subject.add_constraint(constraint("K8sA"))
    clock.now = 0.0
    found = subject.snapshot.review(AugmentedObject(pod()), limits=limits)
    assert found.deadline_exceeded


def test_a_review_that_may_go_on_elsewhere_is_no_overrun_yet():
    policy = Policy(cells("overrun")[0], rego=ENDLESS).enforced()
    guard = Guard()
    fast = Budget.of(0.005, guard=guard, deferrable=True)

    assert policy.review(budget=fast) is DEFERRED
    assert guard.views() == {}
    assert policy.review(budget=fast) is DEFERRED

    found = policy.review(budget=Budget.of(0.01, guard=guard))
    assert found.undecided[0].cause == "overrun"
    assert guard.views()["K8sDeny", "c"].overruns == 1


@pytest.mark.parametrize(("worked", "is_deferred"), [(0.0005, False), (0.005, True)])
def test_a_review_that_waits_for_a_processor_is_not_long(monkeypatch, worked, is_deferred):
    """Beside a flood each step had to wait: for a minute everybody's reviews stood behind it."""
    clock = SimpleNamespace(
        monotonic=Ticking(0.008).monotonic, thread_time=Ticking(worked).monotonic
    )
    monkeypatch.setattr(findings, "time", clock)
    several = [f"K8sDeny{number}" for number in range(9)]
    documents = (*map(template, several), *map(constraint, several))
    guard = Guard()

    limits = Limits(budget=Budget.of(0.01, guard=guard, deferrable=True))
    responses = client(*documents).snapshot.review(AugmentedObject(pod()), limits=limits)

    assert (responses is DEFERRED) is is_deferred
    assert bool(guard.breakers) is is_deferred


def test_a_review_that_others_wait_behind_goes_on_elsewhere_sooner_and_suspends_nothing(
    monkeypatch,
):
    """A Pod of 800 containers had 20 ms of the thread that answers, for each of 120 connections."""
    clock = SimpleNamespace(
        monotonic=Ticking(0.0015).monotonic, thread_time=Ticking(0.0015).monotonic
    )
    monkeypatch.setattr(findings, "time", clock)
    several = [f"K8sDeny{number}" for number in range(9)]
    snapshot = client(*map(template, several), *map(constraint, several)).snapshot
    guard = Guard()
    budget = Budget.of(0.01, guard=guard, deferrable=True)

    def reviewed(budget):
        return snapshot.review(AugmentedObject(pod()), limits=Limits(budget=budget))

    assert reviewed(budget) is not DEFERRED
    assert reviewed(replace(budget, review_seconds=0.002)) is DEFERRED
    assert not guard.breakers


@pytest.mark.parametrize(
    "rego",
    [
        'violation[{"msg": "x"}] { x := numbers.range(1, 20000)[_]; json.marshal({"a": x}) == "" }',
        'violation[{"msg": m}] { x := numbers.range(1, 20000)[_]; m := sprintf("%v", [[x]]) }',
        'violation[{"msg": "x"}] { count({[x] | x := numbers.range(1, 20000)[_]}) == 0 }',
        'violation[{"msg": "x"}] { count({y: x | x := numbers.range(1, 20000)[_]; y := x}) == 0 }',
    ],
)
def test_the_work_of_each_turn_of_a_loop_is_paid_for(rego):
    """A loop of 20,000 turns is no 20,000 steps where each turn works."""
    policy = Policy(cells("overrun")[0], rego=f"package p\n{rego}").enforced()

    assert policy.review(steps=200_000).undecided[0].cause == "overrun"
    assert policy.review(steps=2_000_000).undecided == ()


def test_what_waits_lets_others_go_first(monkeypatch):
    """For as long as it worked between one look and the next, as its own clock has it."""
    clock = Ticking(0.005)
    monkeypatch.setattr(budget, "time", clock)
    policy = Policy(cells("overrun")[0], rego=ENDLESS).enforced()
    rests = []

    policy.review(budget=Budget.of(0.022, rest=rests.append))

    assert rests == pytest.approx([0.005] * 4)  # of five turns the last is over the budget
