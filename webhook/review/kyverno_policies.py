"""The stage that reviews by Kyverno's policies in CEL.

It only adds results. The actions ``Deny``, ``Warn`` and ``Audit`` count as ``deny``, ``warn`` and
``dryrun``. Calls such as ``resource.Get`` are answered from the synced data; missing data makes the
policy undecided.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission_policies.advice import unserved_resources
from webhook.admission_policies.matching import requested_resource
from webhook.cel.errors import TimeUp
from webhook.cel.run.meter import Meter
from webhook.constraint import enforcement
from webhook.constraint.constraint import Constraint
from webhook.constraint.plan import PLANS_MAX
from webhook.constraint.result import (
    DEFERRED,
    Excuse,
    Remark,
    Responses,
    Result,
    Undecided,
    answer_order,
)
from webhook.constraint.review import Document
from webhook.constraint.targets.admission import NAME
from webhook.constraint.targets.known import NAME as DOCUMENTS
from webhook.kyverno.kinds import EXCEPTION
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.policy import COST, JSON, PolicyQuestion, objects_read
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import PASSED, ValidatingPolicy
from webhook.kyverno.world import World, synced_known
from webhook.review.admission_requests import kyverno_namespace, looking, request_of
from webhook.review.kyverno_changes import KyvernoChanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.admission_policies.matching import RequestedResource
    from webhook.api.admission import AdmissionRequest
    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.constraint.snapshot import Snapshot
    from webhook.kyverno.validating_policy import KyvernoVerdict, Rule
    from webhook.mutation.drift import Drift
    from webhook.review.policy_set import ChangedObject, Examination, MutatedBy
    from webhook.review.subject import Subject

OF_DOCUMENTS: Final = (
    "mode JSON reviews documents and no admission: waddle test --target json, check and verify "
    "review by it"
)
_ACTIONS: Final = {"Deny": "deny", "Warn": "warn"}
"""The enforcement action for each validation action; any other one is a dry run."""


class _Concerned(NamedTuple):
    """A policy with those of its rules that match a resource."""

    policy: ValidatingPolicy
    constraint: Constraint
    key: tuple[str, str]
    rules: Sequence[Rule]
    has_selectors: bool
    """Whether it also depends on labels, names or namespaces of a request."""
    say: Callable[[PolicyQuestion], KyvernoVerdict]
    """Evaluates these rules."""
    by_objects: Callable[[str, Json, Meter], KyvernoVerdict | None] | None
    """Evaluates the only rule from a request's operation and objects; None if that cannot decide.

    There is none where selectors, several rules or exceptions may decide.
    """


class KyvernoPolicies:
    """Kyverno's policies and exceptions.

    Immutable, except that it records which policies have matched.
    """

    def __init__(
        self,
        items: Iterable[ValidatingPolicy | KyvernoMutatingPolicy | KyvernoException],
        *,
        enforced: bool = True,
    ) -> None:
        """``enforced`` is whether the webhook decides by them too, and not only audits."""
        listed = list(items)
        self._enforced = enforced
        validating = [policy for policy in listed if isinstance(policy, ValidatingPolicy)]
        self._policies = [(policy, _constraint(policy)) for policy in validating]
        self._exceptions = [policy for policy in listed if isinstance(policy, KyvernoException)]
        self._mutating = [policy for policy in listed if isinstance(policy, KyvernoMutatingPolicy)]
        self._all = (*validating, *self._mutating)
        self._changes = KyvernoChanges(self._mutating, self._exceptions)
        self._matched: set[tuple[str, str]] = set()
        self._by_resource: dict[tuple[Any, ...], tuple[_Concerned, ...]] = {}
        self._reads_names = any(spec.reads_names for policy in validating for spec in policy.specs)

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The keys (kind and name) of the policies that review objects."""
        return [constraint.key for policy, constraint in self._policies if policy.mode != JSON]

    @property
    def document_keys(self) -> Sequence[tuple[str, str]]:
        """The keys (kind and name) of the policies of mode JSON, which review documents."""
        return [constraint.key for policy, constraint in self._policies if policy.mode == JSON]

    @property
    def matched_keys(self) -> frozenset[tuple[str, str]]:
        """The keys (kind and name) of the policies that have matched so far."""
        return frozenset(self._matched | self._changes.matched_keys)

    @property
    def enforced(self) -> Sequence[Mapping[str, Any]]:
        """Returns the documents of all policies if they are enforced, else nothing."""
        if not self._enforced:
            return ()
        return [policy.document for policy in self._all]

    @property
    def kinds_of_parameters(self) -> Sequence[GroupVersionKind]:
        """None."""
        return ()

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether a policy with background reviews matches objects of this kind."""
        return any(self._in_background(gvk))

    def reads_more(self, gvk: GroupVersionKind) -> bool:
        """Whether a policy about such objects reads more than they have, or is excepted."""
        return any(
            not policy.reads_objects_alone or self._is_excepted(policy)
            for policy in self._in_background(gvk)
        )

    def _in_background(self, gvk: GroupVersionKind) -> Iterator[ValidatingPolicy]:
        for policy, _ in self._policies:
            if policy.in_background and policy.mode != JSON and policy.constrains(gvk):
                yield policy

    def _is_excepted(self, policy: ValidatingPolicy) -> bool:
        named = (policy.kind, policy.name)
        return any(named in exception.policies for exception in self._exceptions)

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy with no or an unintended effect."""
        del inventory
        yield from self.loose()
        yield from self.notes()

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy or exception without effect at admission."""
        named = {(policy.kind, policy.name) for policy in self._all}
        for policy, constraint in self._policies:
            if policy.mode == JSON:
                yield *constraint.key, OF_DOCUMENTS
            elif policy.matches_nothing:
                yield *constraint.key, "it has no matchConstraints, so it is about nothing"
        for exception in self._exceptions:
            if not named & exception.policies:
                lacking = ", ".join("/".join(policy) for policy in sorted(exception.policies))
                why = f"none of the policies that it names is there: {lacking}"
                yield EXCEPTION, exception.title, f"{why}. Add one, or mend spec.policyRefs"

    def notes(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy with a probably unintended effect."""
        for policy in self._all:
            for text in (*unserved_resources(policy.document), *policy.notes):
                yield policy.kind, policy.title, text

    @property
    def mutates(self) -> MutatedBy:
        """Returns "Kyverno" if there are enforced mutating policies, else an empty text."""
        return "webhook" if self._enforced and self._mutating else ""

    @property
    def mutating_policies(self) -> Sequence[KyvernoMutatingPolicy]:
        """The policies that this stage applies, in their order."""
        return self._mutating

    def concerned(self, request: AdmissionRequest) -> Sequence[KyvernoMutatingPolicy]:
        """Returns the policies with a rule for the request's kind."""
        return self._changes.concerned(request)

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Applies the mutating policies to an object that is about to be stored."""
        return self._changes.change(subject, snapshot, look)

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether a mutating policy matches objects of this kind."""
        return any(policy.constrains(gvk) for policy in self._mutating)

    def drifts(self, subject: Subject, snapshot: Snapshot) -> Iterator[Drift]:
        """Yields the change that each mutating policy alone would make on an update of the object."""
        if (before := subject.object) is None:
            return
        for policy in self._changes.policies:
            changed = KyvernoChanges([policy], self._exceptions).change(subject, snapshot)
            yield from changed.drift_of(policy.id, before, is_preview=not self._enforced)

    def __call__(self, examined: Examination, responses: Responses) -> Responses:
        """Adds the policies' verdicts to the responses."""
        is_let_be = not self._enforced and examined.point == enforcement.WEBHOOK
        if responses is DEFERRED or not self._policies or is_let_be:
            return responses
        if isinstance(examined.value, Document):
            return self._of_document(examined, examined.value, responses)
        request = request_of(examined.value)
        if request is None:
            return responses
        requested = requested_resource(request)
        concerned = self._concerned(requested, examined.point)
        if not concerned:
            return responses
        meter = Meter(COST, looking(examined.limits))
        failed, rest = _by_objects(concerned, requested.operation, objects_read(request), meter)
        if not rest:  # As nearly always.
            return _added(responses, len(concerned), failed)
        case = _Case(self._question, examined, request)
        case.evaluated = len(concerned)
        case.results = failed
        for item in rest:
            say = item.say
            if item.has_selectors:
                chosen = item.policy.selected(item.rules, case.question)
                if not chosen:
                    case.evaluated -= 1
                    continue
                self._matched.add(item.key)
                say = partial(item.policy.verdict_by, chosen)
            case.take(item.policy, item.constraint, say)
        return case.added_to(responses)

    def _concerned(self, requested: RequestedResource, point: str) -> tuple[_Concerned, ...]:
        """Returns the policies with rules for a requested resource; cached by resource."""
        name = requested.name if self._reads_names else ""
        key = (point, name, requested[:-1])
        concerned = self._by_resource.get(key)
        if concerned is None:
            concerned = tuple(
                self._concerned_by(policy, constraint, rules)
                for policy, constraint in self._policies
                if policy.mode != JSON
                and _applies_at(policy, point)
                and (rules := policy.rules_for(requested))
            )
            self._matched.update(item.key for item in concerned if not item.has_selectors)
            if len(self._by_resource) >= PLANS_MAX:
                self._by_resource.clear()
            self._by_resource[key] = concerned
        return concerned

    def _concerned_by(
        self, policy: ValidatingPolicy, constraint: Constraint, rules: Sequence[Rule]
    ) -> _Concerned:
        has_selectors = policy.has_selectors(rules)
        is_simple = len(rules) == 1 and not (has_selectors or self._is_excepted(policy))
        return _Concerned(
            policy,
            constraint,
            constraint.key,
            rules,
            has_selectors,
            partial(policy.verdict_by, rules),
            rules[0].by_objects if is_simple else None,
        )

    def _of_document(
        self, examined: Examination, document: Document, responses: Responses
    ) -> Responses:
        """Adds the results of policies of mode JSON to a document's responses."""
        if document.target != DOCUMENTS:
            return responses
        case = _Case(self._question, examined, {}, DOCUMENTS)
        for policy, constraint in self._policies:
            if policy.mode == JSON:
                self._matched.add(constraint.key)
                case.evaluated += 1
                case.take(policy, constraint, partial(policy.verdict_of_json, document.value))
        return case.added_to(responses)

    def _question(self, examined: Examination, request: Json) -> PolicyQuestion:
        snapshot = examined.snapshot
        namespace = kyverno_namespace(request, examined.value, snapshot)
        known = synced_known(snapshot.inventory, snapshot.namespaces)
        return PolicyQuestion(
            request,
            namespace,
            World(known, int(examined.at * 1e9)),
            self._exceptions,
            looking(examined.limits),
        )


def _applies_at(policy: ValidatingPolicy, point: str) -> bool:
    """Whether a policy applies at an enforcement point (admission, or background reviews)."""
    if point == enforcement.AUDIT:
        return policy.in_background
    return policy.at_admission or point != enforcement.WEBHOOK


class _Case:
    """Evaluates the policies for one request, or document."""

    __slots__ = (
        "_examined",
        "_excused",
        "_make_question",
        "_question",
        "_remarks",
        "_request",
        "_target",
        "_undecided",
        "evaluated",
        "results",
    )

    def __init__(
        self,
        make_question: Callable[[Examination, Json], PolicyQuestion],
        examined: Examination,
        request: Json,
        target: str = NAME,
    ) -> None:
        """``make_question`` returns the question, which few policies need."""
        self._make_question = make_question
        self._examined = examined
        self._request = request
        self._question: PolicyQuestion | None = None
        self._target = target
        self.results: list[Result] = []
        self._excused: list[Result] = []
        self._undecided: list[Undecided] = []
        self._remarks: list[Remark] = []
        self.evaluated = 0
        """The number of policies that match."""

    @property
    def question(self) -> PolicyQuestion:
        """Returns the question, which is the same for all policies."""
        if self._question is None:
            self._question = self._make_question(self._examined, self._request)
        return self._question

    def take(
        self,
        policy: ValidatingPolicy,
        constraint: Constraint,
        say: Callable[[PolicyQuestion], KyvernoVerdict],
    ) -> None:
        """Evaluates a matching policy by ``say``."""
        try:
            verdict = say(self.question)
            if verdict is PASSED:
                return
            if verdict.exception is not None:
                self._excuse(say(self.question.without_exceptions()), constraint, verdict.exception)
        except TimeUp as error:
            self._leave(policy, constraint, "deadline", str(error))
            return
        self._remarks += [
            Remark(constraint, "annotation", f"audit annotation {key}: {text}")
            for key, text in verdict.annotations
        ]
        for text in verdict.missing:
            self._leave(policy, constraint, "environment", text)
        if verdict.result in {"fail", "error"} and not verdict.missing:
            self.results.append(_result(constraint, verdict, self._target))

    def _excuse(
        self, verdict: KyvernoVerdict, constraint: Constraint, by: KyvernoException
    ) -> None:
        """Adds the excused violation.

        Kyverno does not evaluate an excepted policy, but reports list excused violations.
        """
        if verdict.result == "fail":
            excuse = Excuse(
                EXCEPTION,
                by.namespace,
                by.name,
                "skip",
                "",
                by.expires,
                report_result="pass" if by.result == "pass" else "skip",
            )
            self._excused.append(_result(constraint, verdict, self._target)._replace(excuse=excuse))

    def _leave(
        self, policy: ValidatingPolicy, constraint: Constraint, cause: Any, text: str
    ) -> None:
        answer: Any = "record"
        if {"Deny", "Warn"} & set(policy.actions):
            answer = "reject" if policy.fails and "Deny" in policy.actions else "warn"
        self._undecided.append(Undecided(self._target, constraint, cause, answer, text))

    def added_to(self, responses: Responses) -> Responses:
        """Returns the responses with the results of all policies."""
        responses = _added(responses, self.evaluated, self.results)
        if not (self._undecided or self._excused or self._remarks):
            return responses
        return responses._replace(
            undecided=(*responses.undecided, *self._undecided),
            excused=(*responses.excused, *self._excused),
            remarks=(*responses.remarks, *self._remarks),
        )


def _by_objects(
    concerned: Sequence[_Concerned], operation: str, objects: Json, meter: Meter
) -> tuple[list[Result], list[_Concerned]]:
    """Evaluates policies from the objects of the request.

    Returns the violations, and the policies that need more. Once the time is up, these are all that
    are left, so that each is evaluated or undecided by itself.
    """
    failed: list[Result] = []
    rest: list[_Concerned] = []
    remaining = iter(concerned)
    for item in remaining:
        try:
            verdict = item.by_objects and item.by_objects(operation, objects, meter)
        except TimeUp:
            return failed, [*rest, item, *remaining]
        if verdict is None:
            rest.append(item)
        elif verdict.result == "fail":
            failed.append(_result(item.constraint, verdict, NAME))
    return failed, rest


def _added(responses: Responses, evaluated: int, violations: list[Result]) -> Responses:
    """Returns the responses with the results of so many policies."""
    results, faults, deadline_exceeded, earlier = responses[:4]
    if violations:
        results = (*results, *violations)
        if len(results) > 1:
            results = tuple(sorted(results, key=answer_order))
    fields = (results, faults, deadline_exceeded, earlier + evaluated, *responses[4:])
    return Responses._make(fields)  # As _replace would, at less than half of its cost.


def _result(constraint: Constraint, verdict: KyvernoVerdict, target: str) -> Result:
    details = {"auditAnnotations": dict(verdict.annotations)} if verdict.annotations else {}
    return Result(
        target,
        constraint,
        verdict.message,
        details,
        constraint.enforcement_action,
        constraint.points.get("*", ()),
        "error" if verdict.result == "error" else "violation",
    )


def _constraint(policy: ValidatingPolicy) -> Constraint:
    """Returns a policy as the constraint that results report, with its actions."""
    actions = tuple(sorted(_ACTIONS.get(action, "dryrun") for action in policy.actions))
    document = dict(policy.document)
    if len(actions) == 1:
        return Constraint(policy.kind, policy.title, document, actions[0])
    return Constraint(policy.kind, policy.title, document, "scoped", {"*": actions})
