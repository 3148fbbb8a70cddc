"""``/v1/admit``: the order of checks, and what is answered where no policy decides."""

import asyncio
import select
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from itertools import repeat
from types import FrameType
from typing import Any, TypeVar, cast

import pytest
import yaml

from tests.behaviour.serving import (
    FAILING,
    REQUIRED_LABELS,
    constraint,
    pod,
    review,
    thing,
)
from tests.webhook.admission_policies.making import binding, policy
from tests.webhook.external_data.recorded import provider
from tests.webhook.kyverno.making import PODS
from tests.webhook.server.admitting import CONSTRAINT, TEMPLATE, Admitting, request_of
from tests.webhook.server.lanes import Crowded, Endless
from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.app.slow_reviews import SlowReviews
from webhook.constraint.breaker import Guard
from webhook.constraint.isolation import Isolation
from webhook.constraint.limits import Budget
from webhook.constraint.result import Responses
from webhook.constraint.snapshot import Snapshot
from webhook.kyverno.validating_policy import read_kyverno
from webhook.metrics.admission import EVALUATION_ERRORS, POLICY_FAULTS
from webhook.metrics.registry import Registry
from webhook.policy_kinds.parts import read_admission_policy
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.loops import review as reviewed
from webhook.review.subject import Subject, value_of
from webhook.server import admission
from webhook.server.admission_observer import EVENTS_MAX, ReviewLogOptions
from webhook.server.deadline import RequestTime
from webhook.server.decoding import LARGE_BYTES
from webhook.server.outcome import Pending, Unanswerable
from webhook.server.preparation import CROWDED_BYTES, SlowReview
from webhook.server.responsibility import ProcessorTime
from webhook.server.submission import TriedSubmission
from webhook.serving.recorder import Reviewed
from webhook.serving.revision import Revision, Serving

T = TypeVar("T")


def test_before_there_are_policies_the_api_server_has_to_ask_again() -> None:
    admitting = Admitting()
    admitting.serving.revision = None
    found = admitting.ask(request_of(pod()))
    assert isinstance(found, Unanswerable)
    assert (found.code, found.reason, found.retry) == (503, "not_ready", True)


def test_a_request_whose_time_ended_while_it_waited_is_not_reviewed() -> None:
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"))
    found = admitting.ask(request_of(pod()), b"timeout=1s", late=2.0)
    assert isinstance(found, Unanswerable)
    assert (found.code, found.reason) == (504, "deadline")
    assert found.message == "the review did not end within its time"


def test_a_review_elsewhere_that_has_worked_and_does_not_end_in_time_refuses_its_object() -> None:
    """The requester made it slow: with failurePolicy Ignore it would be admitted."""

    async def run() -> None:
        reviewer = Endless(worked_seconds=1.0)
        admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"), reviewer=reviewer)
        pending = admitting.ask(request_of(pod())._replace(size=LARGE_BYTES + 1))
        assert isinstance(pending, Pending)
        found = pending.resume()
        assert isinstance(found, AdmissionResponse)
        assert (found.allowed, found.code, found.reason) == (False, 422, "Undecidable")
        assert "a" in found.message
        assert "make the object smaller" in found.message
        assert reviewer.begun[0].future.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize(("taken", "code"), [(32, 429), (31, None)])
def test_who_has_its_share_of_the_places_is_refused_and_others_are_left_to_failure_policy(
    taken: int, code: int | None
) -> None:
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"), reviewer=Crowded(taken))
    found = admitting.ask(request_of(pod())._replace(size=LARGE_BYTES + 1))
    if code is None:
        assert isinstance(found, Unanswerable)
        assert (found.code, found.retry) == (429, True)
    else:
        assert isinstance(found, AdmissionResponse)
        assert (found.allowed, found.code, found.reason) == (False, code, "TooManyRequests")


def test_a_constraint_may_choose_that_what_is_undecidable_because_of_its_object_is_let_in() -> None:
    chosen = constraint("a", "owner").replace(
        "{name: a}", '{name: a, annotations: {"waddle.dev/on-undecidable": ignore}}'
    )

    async def run() -> None:
        admitting = Admitting(REQUIRED_LABELS, chosen, reviewer=Endless(worked_seconds=1.0))
        found = admitting.ask(request_of(pod())._replace(size=LARGE_BYTES + 1)).resume()
        assert isinstance(found, AdmissionResponse)
        assert found.allowed
        assert "RequiredLabel" in found.warnings[0]

    asyncio.run(run())


def test_a_review_elsewhere_that_does_not_end_in_time_is_given_up() -> None:
    async def run() -> None:
        reviewer = Endless()
        admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"), reviewer=reviewer)
        pending = admitting.ask(request_of(pod())._replace(size=LARGE_BYTES + 1))
        assert isinstance(pending, Pending)
        found = pending.resume()  # Its time is over.
        assert isinstance(found, Unanswerable)
        assert (found.code, found.message) == (504, "the review did not end within its time")
        assert reviewer.begun[0].future.cancelled()  # No thread works for it any more.

    asyncio.run(run())


def test_of_a_slow_review_s_thousands_of_violations_the_thread_that_answers_looks_at_few() -> None:
    """Writing the answer about 5,600 violations took it 20 ms, and every other request waited."""
    many = REQUIRED_LABELS.replace(
        "violation[",
        'violation[{"msg": msg}] { n := numbers.range(1, 5000)[_]; msg := sprintf("%v", [n]) }\n        violation[',
    )
    calls = Counter[str]()

    def noted(frame: FrameType, event: str, _: object) -> None:
        calls[frame.f_code.co_name] += event == "call"

    async def run() -> None:
        reviewer = SlowReviews(1.0, Guard(), ProcessorTime())
        admitting = Admitting(
            many,
            constraint("a", "owner"),
            reviewer=reviewer,
            logged=ReviewLogOptions(log_denies=True),
        )
        try:
            pending = admitting.ask(request_of(pod(owner="me"))._replace(size=LARGE_BYTES + 1))
            assert isinstance(pending, Pending)
            await pending.finished
            sys.setprofile(noted)
            found = pending.resume()
            sys.setprofile(None)
        finally:
            sys.setprofile(None)
            reviewer.stop()
        assert isinstance(found, AdmissionResponse)
        assert "… and" in found.message
        assert admitting.registry.violations.series == {("RequiredLabel", "a", "deny"): 5000}
        assert max(calls.values()) < 20 * EVENTS_MAX, calls.most_common(3)

    asyncio.run(run())


def test_an_action_that_nobody_knows_is_reported_to_the_log_and_denies_nothing() -> None:
    admitting = Admitting(
        REQUIRED_LABELS,
        constraint("a", "owner", action="page-me"),
        logged=ReviewLogOptions(log_denies=True),
    )
    found = admitting.ask(request_of(pod()))
    assert (found.allowed, found.warnings) == (True, ())
    (line,) = admitting.lines
    assert b"error validating enforcement action" in line
    assert b'"skipping_enforcement_action":"page-me"' in line
    assert admitting.registry.violations.series == {}


def test_a_template_that_fails_leaves_the_decision_to_failure_policy_where_that_is_chosen() -> None:
    admitting = Admitting(FAILING, isolation=Isolation(error_is_violation=False))
    found = admitting.ask(request_of(thing("Secret")))
    assert isinstance(found, Unanswerable)
    assert (found.code, found.reason) == (500, "evaluation_error")
    assert found.message.startswith("evaluation failed: Failing: ")
    assert admitting.registry.counters[EVALUATION_ERRORS] == {("Failing",): 1}
    assert any(b'"constraint_kind":"Failing"' in line for line in admitting.lines)


@pytest.mark.parametrize(
    ("api_version", "kind"), [(TEMPLATE, "ConstraintTemplate"), (CONSTRAINT, "RequiredLabel")]
)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_policy_of_which_nothing_is_sent_is_refused_as_the_api_machinery_does(
    api_version: str, kind: str, operation: str
) -> None:
    admitting = Admitting(REQUIRED_LABELS)
    request = request_of(
        thing(kind, "a", api_version), operation=operation, object=None, oldObject=None
    )
    found = admitting.ask(request)
    assert (found.allowed, found.code) == (False, 500)
    assert found.message.endswith("json parse error: unexpected end of JSON input")


def test_a_template_for_all_operations_and_one_more_is_refused_as_gatekeeper_does() -> None:
    template = yaml.safe_load(REQUIRED_LABELS)
    (target,) = template["spec"]["targets"]
    for operations, message in (
        (["*"], ""),
        (["CREATE"], ""),
        (["*", "CREATE"], "if '*' is present, must not specify other operations"),
    ):
        target["operations"] = operations
        found = Admitting().ask(request_of(template))
        assert (found.allowed, found.message) == (not message, message)


DEEP: Any = "x"
for _ in range(450):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    "policy",
    [
        thing("ConstraintTemplate", "a", TEMPLATE) | {"spec": {"targets": [DEEP]}},
        thing("RequiredLabel", "a", CONSTRAINT) | {"spec": {"parameters": DEEP}},
    ],
    ids=["template", "constraint"],
)
def test_what_nests_too_deep_and_was_there_before_can_lose_its_finalizers_and_be_deleted(
    policy: dict[str, Any],
) -> None:
    """Gatekeeper takes it; here it was refused to whoever wanted it to go, too."""
    admitting = Admitting(REQUIRED_LABELS)
    for request in (
        request_of(policy),
        request_of(policy, operation="UPDATE", oldObject=policy | {"spec": {}}),
        request_of(policy | {"spec": {"a": DEEP}}, operation="UPDATE", oldObject=policy),
    ):
        found = admitting.ask(request)
        assert (found.allowed, found.code) == (False, 422)
        assert "nested deeper than 400 levels" in found.message
    finalized = policy | {"metadata": {"name": "a", "finalizers": ["x"]}}
    for request in (
        request_of(policy, operation="UPDATE", oldObject=finalized),
        request_of(policy, operation="DELETE"),
    ):
        assert admitting.ask(request).allowed


class Swapped:
    """A holder in which another revision is in force from the second look on."""

    def __init__(self, first: Revision, later: Revision) -> None:
        self.looks = 0
        self.first, self.later = first, later

    @property
    def revision(self) -> Revision:
        self.looks += 1
        return self.first if self.looks == 1 else self.later


class Remembering:
    """A recorder that keeps which snapshot was said to have decided."""

    names: Iterator[str] = repeat("")

    def __init__(self) -> None:
        self.snapshots: list[Snapshot | None] = []

    def answered(
        self,
        request: AdmissionRequest,
        responses: Responses | None,
        snapshot: Snapshot | None,
        received: float,
        began: float,
        response: AdmissionResponse,
    ) -> AdmissionResponse:
        self.snapshots.append(snapshot)
        return response

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        self.snapshots.append(reviewed.snapshot)


class Elsewhere:
    """A reviewer that is done at once, and counts what it did."""

    def __init__(self) -> None:
        self.done = 0

    def is_behind(self, request: AdmissionRequest) -> bool:
        return False

    def begin(
        self, work: Callable[[Budget], T], request: AdmissionRequest, span: RequestTime
    ) -> SlowReview[T]:
        self.done += 1
        slow = SlowReview[T]()
        slow.future.set_result(work(Budget.of(1.0)))
        return slow


@pytest.mark.parametrize("size", [0, LARGE_BYTES + 1])
def test_a_request_is_decided_and_recorded_by_one_revision(size: int) -> None:
    """Other revisions may come into force meanwhile, on this thread or beside it."""

    async def run() -> None:
        recorder, reviewer = Remembering(), Elsewhere()
        admitting = Admitting(
            REQUIRED_LABELS,
            constraint("a", "owner"),
            recorder=recorder,
            reviewer=reviewer,
            expands=False,
        )
        denying = admitting.serving.revision
        assert denying is not None
        allowing = Admitting().serving.revision
        assert allowing is not None
        admitting.admission._serving = cast("Serving", Swapped(denying, allowing))
        outcome = admitting.ask(request_of(pod())._replace(size=size))
        if isinstance(outcome, Pending):
            outcome = outcome.resume()
        assert isinstance(outcome, AdmissionResponse)
        assert not outcome.allowed
        assert recorder.snapshots == [denying.snapshot]
        assert reviewer.done == (1 if size else 0)

    asyncio.run(run())


@pytest.mark.parametrize(("waited", "elsewhere"), [(-60.0, 0), (1.0, 1)])
def test_a_request_that_waited_gives_up_the_thread_sooner(
    monkeypatch: pytest.MonkeyPatch, waited: float, elsewhere: int
) -> None:
    """Others wait, too, after such a wait; without one it has a review's whole budget."""
    monkeypatch.setattr(admission, "CROWDED_SECONDS", 1e-9)

    async def run() -> None:
        reviewer = Elsewhere()
        admitting = Admitting(
            *(
                REQUIRED_LABELS.replace("equiredlabel", f"equiredlabel{one}").replace(
                    "RequiredLabel", f"Requiredlabel{one}"
                )
                for one in range(4)
            ),
            *(
                constraint("a", "owner").replace("RequiredLabel", f"Requiredlabel{one}")
                for one in range(4)
            ),
            reviewer=reviewer,
            expands=False,
            budget=Budget.of(60.0, guard=Guard(), deferrable=True),
        )
        outcome = admitting.ask(request_of(pod()), late=waited)
        if isinstance(outcome, Pending):
            outcome = outcome.resume()
        assert isinstance(outcome, AdmissionResponse)
        assert not outcome.allowed
        assert reviewer.done == elsewhere

    asyncio.run(run())


@pytest.mark.parametrize(
    ("size", "waited", "elsewhere"),
    [
        (CROWDED_BYTES + 1, -60.0, 0),  # as if it had come just now
        (CROWDED_BYTES + 1, 1.0, 1),
        (CROWDED_BYTES, 1.0, 0),
    ],
)
def test_a_large_request_that_waited_is_not_begun_on_the_thread(
    monkeypatch: pytest.MonkeyPatch, size: int, waited: float, elsewhere: int
) -> None:
    """Of seven users who sent 60 KB each the first took 5 ms of it before its others stood behind."""
    monkeypatch.setattr(admission, "CROWDED_SECONDS", 60.0)

    async def run() -> None:
        reviewer = Elsewhere()
        budget = Budget.of(60.0, guard=Guard(), deferrable=True)
        admitting = Admitting(
            REQUIRED_LABELS, constraint("a", "owner"), reviewer=reviewer, budget=budget
        )
        outcome = admitting.ask(request_of(pod())._replace(size=size), late=waited)
        if isinstance(outcome, Pending):
            outcome = outcome.resume()
        assert isinstance(outcome, AdmissionResponse)
        assert not outcome.allowed
        assert reviewer.done == elsewhere

    asyncio.run(run())


class Busy:
    """Compiles nothing, as others stand before it."""

    def __init__(self) -> None:
        self.waiting: list[Future[TriedSubmission]] = []

    def compile(self, document: Mapping[str, Any]) -> Future[TriedSubmission]:
        self.waiting.append(Future())
        return self.waiting[-1]


def test_what_nobody_waits_for_is_not_compiled() -> None:
    """Else whoever asks again stands behind what was given up, and is never answered."""

    async def run() -> None:
        compiler = Busy()
        admitting = Admitting(compiler=compiler)
        template = yaml.safe_load(REQUIRED_LABELS)
        pending = admitting.ask(request_of(template))
        assert isinstance(pending, Pending)
        outcome = pending.resume()  # Its time is over.
        assert isinstance(outcome, Unanswerable)
        assert outcome.code == 504
        assert compiler.waiting[0].cancelled()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("kind", "word"), [("pods", 'names the kind "pods": is Pod meant?'), ("Pod", "")]
)
def test_who_brings_in_a_constraint_that_will_match_nothing_is_warned(kind: str, word: str) -> None:
    admitting = Admitting(REQUIRED_LABELS)
    document = yaml.safe_load(constraint("a", "owner").replace("Pod", kind))
    found = admitting.ask(request_of(document, name="a"))
    assert found.allowed
    assert [text for text in found.warnings if word and word in text] == list(found.warnings)
    assert bool(found.warnings) is bool(word)


def test_a_group_that_is_enforced_nowhere_is_admitted_with_a_warning() -> None:
    points = [{"name": "vap.k8s.io"}]
    group: dict[str, Any] = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g"},
        "spec": {
            "enforcementAction": "scoped",
            "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": points}],
            "members": {
                name: {"constraint": {"kind": "RequiredLabel", "name": "a"}} for name in "ab"
            },
            "expression": "a()",
        },
    }
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"))
    found = admitting.ask(request_of(group, name="g"))
    assert found.allowed, found.message
    (warning,) = found.warnings
    assert "its member b is never asked; it is enforced nowhere: vap.k8s.io" in warning
    group["spec"] |= {"enforcementAction": "deny", "expression": "a() && b()"}
    assert admitting.ask(request_of(group, name="g")).warnings == ()


@pytest.mark.parametrize(("timeout", "warns"), [(30, False), (45, True)])
def test_a_provider_of_a_long_timeout_is_admitted_with_a_warning(timeout: int, warns: bool) -> None:
    found = Admitting().ask(request_of(provider(timeout=timeout), name="images"))
    assert found.allowed, found.message
    assert [text for text in found.warnings if "its spec.timeout is 45 s" in text] == list(
        found.warnings
    )
    assert bool(found.warnings) is warns


def test_of_thousands_of_violations_some_are_logged_and_the_rest_counted() -> None:
    """A single Pod wrote 9 MB."""
    many = REQUIRED_LABELS.replace(
        "violation[",
        'violation[{"msg": msg}] { n := numbers.range(1, 500)[_]; msg := sprintf("%v", [n]) }\n        violation[',
    )
    admitting = Admitting(many, constraint("a", "owner"), logged=ReviewLogOptions(log_denies=True))
    found = admitting.ask(request_of(pod(owner="me")))
    assert not found.allowed
    lines = b"".join(admitting.lines).splitlines()
    assert len(lines) == EVENTS_MAX + 1
    assert b'"notLogged":400' in lines[-1]
    assert len(admitting.lines) < EVENTS_MAX / 3, "for each write the interpreter is given up"
    assert max(map(len, admitting.lines)) <= select.PIPE_BUF, "what another writes stands between"
    (series,) = admitting.registry.violations.series.values()
    assert series == 500


def test_the_cluster_s_own_policies_find_violations_in_audits_and_deny_no_admission() -> None:
    """The API server enforces them itself, so nothing is refused by them twice."""
    own = AdmissionPolicies(map(read_admission_policy, (policy("false"), binding())))
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"))
    serving = admitting.serving
    serving.admission_policies = own
    assert serving.revision is not None
    pods = {"group": "", "version": "v1", "resource": "pods"}
    value = value_of(review(pod(owner="me"), resource=pods), {})
    found = reviewed(serving.audited(serving.revision), Subject(value))
    (result,) = found.responses.results
    assert result.msg == "[binding b] failed expression: false"
    answer = admitting.ask(request_of(pod(owner="me"), resource=pods))
    assert (answer.allowed, answer.warnings) == (True, ())
    answer = admitting.ask(request_of(pod(), resource=pods))
    assert (answer.allowed, answer.message) == (False, "[a] label <owner> is missing")


def answer_of_kyverno(expression: str, **spec: Any) -> tuple[AdmissionResponse, Registry]:
    """Returns the answer about a Pod by a ValidatingPolicy, and the metrics."""
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS]},
            "validations": [{"expression": expression, "message": "no team"}],
            **spec,
        },
    }
    admitting = Admitting()
    serving = admitting.serving
    assert serving.revision is not None
    stages = (KyvernoPolicies([read_kyverno(document)]),)
    policies = replace(serving.revision.policies, stages=stages)
    serving.revision = replace(serving.revision, policies=policies)
    pods = {"group": "", "version": "v1", "resource": "pods"}
    return admitting.ask(request_of(pod(), resource=pods)), admitting.registry


@pytest.mark.parametrize(
    ("actions", "allowed", "warns"),
    [
        (["Deny"], False, False),
        (["Warn"], True, True),
        (["Audit"], True, False),
        (["Audit", "Warn"], True, True),
        (["Deny", "Audit"], False, False),
        (None, False, False),
    ],
)
def test_a_violation_of_a_policy_of_kyverno_denies_warns_or_is_recorded_by_its_actions(
    actions: list[str] | None, allowed: bool, warns: bool
) -> None:
    spec = {} if actions is None else {"validationActions": actions}
    answer, _ = answer_of_kyverno("false", **spec)
    assert (answer.allowed, answer.message) == (allowed, "" if allowed else "[p] no team")
    assert answer.warnings == (("[p] no team",) if warns else ())
    answer, _ = answer_of_kyverno("true", **spec)
    assert (answer.allowed, answer.warnings) == (True, ())


@pytest.mark.parametrize(
    ("failure_policy", "actions", "outcome"),
    [
        ("Fail", ["Deny"], "reject"),
        ("Fail", ["Deny", "Audit"], "reject"),
        ("Fail", ["Warn"], "warn"),
        ("Fail", ["Audit"], "record"),
        ("Ignore", ["Deny"], "warn"),
        ("Ignore", ["Warn"], "warn"),
        ("Ignore", ["Audit"], "record"),
    ],
)
def test_a_policy_of_kyverno_whose_data_are_missing_refuses_warns_or_is_recorded(
    failure_policy: str, actions: list[str], outcome: str
) -> None:
    lookup = "resource.Get('v1', 'secrets', 'shop', 'one').data.a == 'b'"
    spec = {"failurePolicy": failure_policy, "validationActions": actions}
    answer, registry = answer_of_kyverno(lookup, **spec)
    assert answer.allowed == (outcome != "reject")
    shown = answer.message if outcome == "reject" else " ".join(answer.warnings)
    missing = 'secrets "one" (v1) is not among what is given or synced'
    assert (missing in shown) == (outcome != "record"), shown
    assert bool(answer.warnings) == (outcome == "warn")
    assert registry.counters[POLICY_FAULTS] == {("ValidatingPolicy", "environment", outcome): 1}
