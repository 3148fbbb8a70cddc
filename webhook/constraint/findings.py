"""The state of a running review: results, and constraints that could not be decided."""

from __future__ import annotations

import time
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.constraint import containment, enforcement, isolation
from webhook.constraint.causes import OF_THE_REQUEST, UndecidedCause
from webhook.constraint.driver import asks_providers
from webhook.constraint.errors import MatchError, PolicyError
from webhook.constraint.limits import LEFT_PART, Limits, Observer, Remembering
from webhook.constraint.result import (
    DEFERRED,
    Fault,
    Responses,
    Result,
    ResultCause,
    Undecided,
    answer_order,
)
from webhook.constraint.secrecy import quoting_no_secret
from webhook.external_data.exchange import ProviderRequest, Unanswered
from webhook.rego.run.runtime import KEY_COMPARISONS
from webhook.slices import sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.constraint.breaker import Guard
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import DriverViolation, Evaluator
    from webhook.constraint.entry import Entry
    from webhook.constraint.memo import Recall
    from webhook.constraint.plan import Plan, Planned
    from webhook.constraint.review import Review
    from webhook.constraint.snapshot import Snapshot
    from webhook.constraint.target import Matcher

AUTOREJECT: Final = "unable to match constraints"

OUT_OF_TIME: Final = "the request's time ended before it was evaluated"

_NONE: Final[list[Undecided]] = []
"""The undecided constraints of most reviews: none. Never modified."""

_NO_REQUESTS: Final[tuple[ProviderRequest, ...]] = ()

_NO_KEYS: Final[dict[str, tuple[str, str]]] = {}

_Evaluate: TypeAlias = "Callable[[Any, Any, Any], Sequence[DriverViolation]]"

_message: Final = attrgetter("msg")
_action: Final = attrgetter("enforcement_action")

WAITING_RESULTS_MAX: Final = 100
"""The most results, some 20 KiB, that are kept while providers answer; a review with more starts again."""

_UNBEGUN: Final = object()

_Groups = tuple[tuple["Constraint", ...], ...]
_Step = tuple["Review", "Entry", _Groups]
"""A template's constraints to evaluate for a review."""


class Findings:
    """The findings of a review so far."""

    __slots__ = (
        "_is_in_order",
        "_last",
        "_long_since",
        "_operation",
        "_recall",
        "_shared",
        "_shares",
        "_unanswered",
        "_unsent",
        "_watches",
        "deadline_exceeded",
        "deferred",
        "evaluated",
        "faults",
        "guard",
        "limits",
        "point",
        "recalled",
        "requests",
        "results",
        "snapshot",
        "undecided",
    )

    def __init__(self, snapshot: Snapshot, point: str, limits: Limits) -> None:
        self.snapshot = snapshot
        self.point = point
        self._begin(limits)
        self.results: list[Result] = []
        self.faults: list[Fault] = []
        self.undecided: list[Undecided] = _NONE
        self.requests = _NO_REQUESTS
        """The provider requests without which not everything can be decided."""
        self._unsent = _NO_REQUESTS
        """The requests that were not sent yet."""
        self._unanswered: tuple[_Step, ...] = ()
        """The templates that made these requests."""
        self.deadline_exceeded = False
        self.deferred = False
        self.evaluated = 0
        self.recalled = 0
        self._recall: Recall | None = None
        self._watches = False
        self._is_in_order = True
        """Whether each action's results are in order of their constraints' kinds and names."""
        self._last = _NO_KEYS
        """The last constraint with results, by action."""

    def _begin(self, limits: Limits) -> None:
        """Sets the limits of the evaluations that follow."""
        self.limits = limits
        budget = limits.budget
        self.guard: Guard | None = None if budget is None else budget.guard
        self._shares = (
            self.point == enforcement.WEBHOOK
            and self.guard is not None
            and budget is not None
            and not budget.deferrable
        )
        """Whether an evaluation leaves a part of the time to the others."""
        self._long_since: float | None = None
        """The thread's processor time after half of the review's allowance had passed."""

    def review(self, review: Review, plan: Plan | None = None) -> None:
        """Adds the findings of a review; sets ``deferred`` if it takes too long on this thread.

        ``plan`` is the plan for its key, where the caller has it.
        """
        self._shared: dict[str, Any] = {}  # values shared by templates' evaluations of one document
        plan = plan or self.snapshot.plan(self.point, review.target, review.key)
        plan = plan.at(review.place)
        outcomes = tuple([_outcome(matcher, review) for matcher in plan.matchers])
        operation = review.operation if self.point == enforcement.WEBHOOK else None
        self._operation = operation
        if self.guard is not None:
            self.guard.saw(review.key, review.size)
        selection = plan.select(outcomes, operation)
        for constraint, reason in selection.unmatchable:
            self._add(review.target, constraint, f"{AUTOREJECT}: {reason}", "autoreject")
        for item in selection.broken:
            broken = item.broken
            self._undecide(review, item.entry, (item.constraint,), broken.stage, broken.message)
        matching, memo = selection.matching, self.limits.memo
        if selection.asking:
            matching = (*selection.asking, *matching)
        deadline, began = self.limits.deadline, time.monotonic()
        if deadline is not None and began > deadline:
            self._run_out(review, matching)
            return
        if self.guard is not None and self.guard.breakers:
            if self._is_slow(self.guard, matching, review):
                self.deferred = True
                return
            matching = self._admitted(self.guard, matching, review)
        elif memo is not None:
            compared = KEY_COMPARISONS.count
            if selection.asking and not self._ask(selection, review, began):
                return
            matching = self._recalled(memo, selection, review)
        self._evaluate_matching(matching, review, began)
        if self._recall is not None and memo is not None:
            memo.keep(self._recall, has_distinct_keys=KEY_COMPARISONS.count == compared)
            self._recall = None

    def _ask(self, selection: Planned, review: Review, began: float) -> bool:
        """Evaluates the templates that ask providers, before kept results of the others are looked up.

        Returns whether time is left for the others on this thread.
        """
        self._evaluate_matching(selection.asking, review, began)
        deadline = self.limits.deadline
        if deadline is None or time.monotonic() <= deadline:
            return not self.deferred
        self._run_out(review, selection.matching)
        return False

    @property
    def may_go_on(self) -> bool:
        """Whether the review can go on from here once providers have answered.

        It cannot if anything but answers is missing, if many results would have to be kept
        meanwhile, or if policies print: their lines come from one evaluation of everything.
        """
        return (
            len(self.results) <= WAITING_RESULTS_MAX
            and not (self.faults or self.undecided or self.deadline_exceeded or self.deferred)
            and self.limits.print_ is None
            and all(review is self._unanswered[0][0] for review, _, _ in self._unanswered)
        )

    def go_on(self, limits: Limits) -> None:
        """Evaluates the templates again that lacked answers, and keeps all other results."""
        self._begin(limits)
        unanswered, self._unanswered = self._unanswered, ()
        self.requests = self._unsent = _NO_REQUESTS
        again = {item.key for _, _, groups in unanswered for group in groups for item in group}
        self.results = [result for result in self.results if result.constraint.key not in again]
        self.evaluated -= len(again)
        matching = tuple((entry, groups) for _, entry, groups in unanswered)
        review, began = unanswered[0][0], time.monotonic()
        if limits.deadline is not None and began > limits.deadline:
            self._run_out(review, matching)
        else:
            self._evaluate_matching(matching, review, began)

    def _recalled(
        self, memo: Remembering, selection: Planned, review: Review
    ) -> tuple[tuple[Entry, _Groups], ...]:
        """Returns the part of a selection without recalled results; with an observer all of it."""
        matching = selection.matching
        if self.limits.observer is not None or selection.unmatchable or not matching:
            return matching
        recall: Recall | None = memo.recall(self.snapshot, selection, review.document)
        if recall is None:
            return matching
        self.recalled += recall.constraints
        self.evaluated += recall.evaluated
        if recall.is_open:
            self._recall = recall
        return recall.matching

    def _evaluate_matching(
        self, matching: tuple[tuple[Entry, _Groups], ...], review: Review, began: float
    ) -> None:
        """Evaluates the matching constraints while there is time."""
        deadline, budget = self.limits.deadline, self.limits.budget
        rest = None if budget is None else budget.rest
        for step in matching:
            entry, groups = step
            if self._unsent and (
                len(self._unsent) == len(self.requests)  # None was sent yet.
                or not asks_providers(entry.evaluator)
            ):
                self._send()
            unfinished = self._evaluate_all(entry, groups, review)
            if unfinished is None:
                self.deferred = True
                return
            if unfinished:
                self._run_out(review, ((entry, unfinished),))
            now = time.monotonic()
            if deadline is not None and now > deadline:
                self._run_out(review, matching[matching.index(step) + 1 :])
                return
            if rest is not None and step is not matching[-1]:
                rest(0.0)  # A short evaluation never looks at the clock, and there may be dozens.
            if step is not matching[-1] and self._is_long(now - began):
                self._note_long(entry, groups[0], review)
                self.deferred = True
                return

    def _note_long(self, entry: Entry, group: tuple[Constraint, ...], review: Review) -> None:
        """Notes where the review was deferred.

        Not on a crowded thread, where many reviews are deferred.
        """
        guard, budget = self.guard, self.limits.budget
        if guard is None or budget is None or budget.review_seconds:
            return
        for constraint in group:
            guard.slowed(entry, constraint, review.size)

    def _is_long(self, seconds: float) -> bool:
        """Whether a review should be deferred because of the processor time that it used itself.

        A thread that only waited for a processor gains nothing by deferring. Reading the processor
        time takes a microsecond, and most reviews end before.
        """
        budget = self.limits.budget
        if budget is None or not budget.deferrable or budget.guard is None:
            return False
        half = budget.whole_seconds / 2
        if seconds <= half:
            return False
        worked = time.thread_time()
        if self._long_since is None:
            self._long_since = worked
        return worked - self._long_since > half

    def _evaluate_all(self, entry: Entry, groups: _Groups, review: Review) -> _Groups | None:
        """Evaluates one template for its matching constraints, each in its share of the time.

        Returns the groups for which the request's time was too short; None if the review is
        deferred.
        """
        if self._recall is not None and (known := self._recall.all_of(groups)) is not None:
            for group, violations in zip(groups, known, strict=True):
                self.evaluated += len(group)
                for constraint in group if violations else ():
                    self._add_all(review.target, constraint, violations)
            return ()
        deadline, budget = self.limits.deadline, self.limits.budget
        if not self._shares or deadline is None or budget is None:
            return self._evaluate(entry, groups, review, self.limits)
        late: _Groups = ()
        while groups:
            now = time.monotonic()
            share = max(deadline - now, 0.0) * LEFT_PART
            limits = self.limits._replace(deadline=now + share, budget=budget.at_most(share))
            undone = self._evaluate(entry, groups, review, limits)
            if not undone:
                break
            late, groups = (*late, undone[0]), undone[1:]
        return late

    def _evaluate(
        self, entry: Entry, groups: _Groups, review: Review, limits: Limits
    ) -> _Groups | None:
        """Evaluates within limits; returns the group that exceeded them and the groups after it."""
        evaluator = entry.evaluator
        assert evaluator is not None  # The plan has put the others aside.
        evaluate = self._evaluating(evaluator, groups, review)
        document = entry.evaluator_input(review, self._operation)
        is_whole = evaluator.reads_constraint
        mark = len(self.results)
        unfinished: _Groups = ()
        failure: PolicyError | None = None
        state: Any = _UNBEGUN
        for group in groups:
            self.evaluated += len(group)
            try:
                if state is _UNBEGUN:
                    state = evaluator.begin(limits, self.snapshot.inventory, self._shared)
                given = group[0].document if is_whole else group[0].parameters
                violations = evaluate(given, document, state)
            except Unanswered as wanting:
                self._want(wanting.requests, (review, entry, groups))
                continue
            except Exception as raised:  # noqa: BLE001  # any error fails this policy alone
                error = quoting_no_secret(containment.of_evaluation(raised), review.document)
                if error.bug is not None and self.snapshot.on_bug is not None:
                    self.snapshot.on_bug(entry.template.kind, error.bug)
                if self._is_late(limits, error):
                    unfinished = groups[groups.index(group) :]
                    break
                if error.overrun:
                    if not self._overran(entry, group, review, error):
                        return None
                else:
                    self._failed(entry, group, review, error)
                    failure = failure or error
                continue
            if violations:
                for constraint in group:
                    self._add_all(review.target, constraint, violations)
        if failure is not None:
            self._fail(entry, groups, review, failure, mark)
        if self._watches and self.guard is not None and not self.requests:
            self._finish(self.guard, entry, groups[: len(groups) - len(unfinished)], review.size)
        return unfinished

    def _want(self, requests: tuple[ProviderRequest, ...], step: _Step) -> None:
        """Records provider requests."""
        self.requests += requests
        self._unsent += requests
        if not self._unanswered or self._unanswered[-1][1] is not step[1]:
            self._unanswered += (step,)

    def _send(self) -> None:
        """Sends provider requests while other constraints are evaluated.

        The first template's go out at once: the earlier its answer is there, the less is left to do
        when the last one arrives. The others' go out together: one after another, between
        evaluations, each takes longer. Whoever waits for the responses sends what is left.
        """
        unsent, self._unsent = self._unsent, _NO_REQUESTS
        if self.limits.begin is not None:
            self.limits.begin(unsent)

    def _evaluating(self, evaluator: Evaluator, groups: _Groups, review: Review) -> _Evaluate:
        """Returns a function that evaluates these groups in order, and reports to an observer."""
        if (observer := self.limits.observer) is not None:
            return _observed(evaluator.evaluate, observer, groups, review)
        if self._recall is not None:
            return self._recall.evaluating(groups, evaluator.evaluate)
        return evaluator.evaluate

    def _is_late(self, limits: Limits, error: PolicyError) -> bool:
        """Whether the request's deadline ended an evaluation, and not its own budget."""
        if limits.deadline is not None and time.monotonic() > limits.deadline:
            return True
        budget, whole = limits.budget, self.limits.budget
        is_cut = budget is not None and whole is not None and budget.seconds < whole.seconds
        return is_cut and error.overrun and not error.too_deep

    # --- undecided constraints -----------------------------------------------------------------

    def _failed(
        self, entry: Entry, group: tuple[Constraint, ...], review: Review, error: PolicyError
    ) -> None:
        """Answers for the failed constraints that set ``onError``."""
        chosen = tuple(item for item in group if _chooses(entry, item))
        self._undecide(review, entry, chosen, "error", str(error))

    def _fail(
        self, entry: Entry, groups: _Groups, review: Review, error: PolicyError, mark: int
    ) -> None:
        """Records a failed evaluation as a violation of *every* matching constraint.

        Gatekeeper evaluates them in one query, which failed as a whole. Constraints that overran or
        that set ``onError`` are already answered.
        """
        overrun = {item.constraint.key for item in self.undecided}
        failed = [
            item
            for group in groups
            for item in group
            if item.key not in overrun and not _chooses(entry, item)
        ]
        keys = {item.key for item in failed}
        self.results[mark:] = [
            result for result in self.results[mark:] if result.constraint.key not in keys
        ]
        is_fault = False
        for constraint in failed:
            if self.snapshot.isolation.error_is_violation and not error.no_verdict:
                self._add(review.target, constraint, str(error), "error")
            elif "deny" in self._actions(constraint):
                is_fault = True
            else:
                self._undecide(review, entry, (constraint,), "error", str(error))
        if is_fault:
            self.faults.append(Fault(review.target, entry.template.kind, str(error)))

    def _overran(
        self, entry: Entry, group: tuple[Constraint, ...], review: Review, error: PolicyError
    ) -> bool:
        """Records an overrun; False if the review is deferred and may run longer on another thread."""
        budget, guard, size = self.limits.budget, self.guard, review.size
        # Too deep an object fails with any budget, so it is no fault of the policy.
        if guard is not None and budget is not None and budget.deferrable and not error.too_deep:
            for constraint in group:
                guard.slowed(entry, constraint, size)
            return False
        cause: UndecidedCause = "overrun"
        if guard is not None:
            if not error.too_deep and guard.is_usual(review.key, size):
                for constraint in group:
                    guard.overran(entry, constraint, str(error), size, self.limits.requester)
            elif self.point == enforcement.WEBHOOK:
                cause = "object"
        self._undecide(review, entry, group, cause, str(error))
        return True

    def _is_slow(
        self, guard: Guard, matching: tuple[tuple[Entry, _Groups], ...], review: Review
    ) -> bool:
        """Whether a constraint was too slow before, so that the review runs on another thread."""
        budget = self.limits.budget
        return (
            budget is not None
            and budget.deferrable
            and any(
                guard.is_slow(entry, item, review.size, self.limits.requester)
                for entry, groups in matching
                for group in groups
                for item in group
            )
        )

    def _admitted(
        self, guard: Guard, matching: tuple[tuple[Entry, _Groups], ...], review: Review
    ) -> tuple[tuple[Entry, _Groups], ...]:
        """Returns the evaluations that the breakers admit; the other constraints are answered here."""
        self._watches = True
        requester, size = self.limits.requester, review.size
        admitted = []
        for entry, groups in matching:
            kept = []
            for group in groups:
                going = tuple(item for item in group if guard.admits(entry, item, size, requester))
                if going:
                    kept.append(going)
                for item in group:
                    if item not in going:
                        message = guard.suspended(item, requester)
                        self._undecide(review, entry, (item,), "suspended", message)
            if kept:
                admitted.append((entry, tuple(kept)))
        return tuple(admitted)

    def _finish(self, guard: Guard, entry: Entry, groups: _Groups, size: int) -> None:
        """Reports constraints to the guard that exceeded their budget before and did not now."""
        overrun = {item.constraint.key for item in self.undecided}
        for group in groups:
            for constraint in group:
                if constraint.key not in overrun:
                    guard.finished(entry, constraint, size, self.limits.requester)

    def _run_out(self, review: Review, matching: tuple[tuple[Entry, _Groups], ...]) -> None:
        """Records constraints that the request's time did not suffice for."""
        for entry, groups in matching:
            for constraint in chain.from_iterable(groups):
                if "deny" in self._actions(constraint):
                    self.deadline_exceeded = True
                    if self.point != enforcement.WEBHOOK:
                        continue
                self._undecide(review, entry, (constraint,), "deadline", OUT_OF_TIME)

    def _undecide(
        self,
        review: Review,
        entry: Entry,
        constraints: Iterable[Constraint],
        cause: UndecidedCause,
        message: str,
    ) -> None:
        policy = self.snapshot.isolation
        target = self.snapshot.targets[review.target]
        spared = target.is_spared(review, policy.spared_namespaces)
        for constraint in constraints:
            actions = self._actions(constraint)
            if cause in OF_THE_REQUEST:
                answer = isolation.answer_to_undecidable(
                    actions,
                    isolation.on_undecidable_for(
                        constraint.document, entry.template.document, policy.on_undecidable
                    ),
                    point=self.point,
                    spared=spared,
                )
            else:
                answer = isolation.answer_to(
                    actions,
                    entry.on_error_for(constraint) or policy.on_error,
                    point=self.point,
                    spared=spared,
                    cause=cause,
                )
            undecided = Undecided(review.target, constraint, cause, answer, message)
            self.undecided = [*self.undecided, undecided]

    # --- violations ----------------------------------------------------------------------------

    def _actions(self, constraint: Constraint) -> tuple[str, ...]:
        points = self.snapshot.enforcement_points
        return enforcement.actions_at(constraint, self.point, points)

    def _add_all(
        self, target: str, constraint: Constraint, violations: Sequence[DriverViolation]
    ) -> None:
        """Adds the violations of a constraint; there may be thousands."""
        points = self.snapshot.enforcement_points
        scoped = enforcement.scoped_actions(constraint, self.point, points)
        new = tuple.__new__  # takes half the time of calling the class
        action = constraint.enforcement_action
        if self._last.get(action, constraint.key) > constraint.key:
            self._is_in_order = False
        self._last = {**self._last, action: constraint.key}
        self.results += [
            new(
                Result, (target, constraint, msg, details, action, scoped, "violation", None, False)
            )
            for msg, details in violations
        ]

    def _add(self, target: str, constraint: Constraint, msg: str, cause: ResultCause) -> None:
        scoped = enforcement.scoped_actions(
            constraint, self.point, self.snapshot.enforcement_points
        )
        action = constraint.enforcement_action
        self._is_in_order = False
        self.results.append(Result(target, constraint, msg, None, action, scoped, cause))

    def _put_in_order(self) -> None:
        """Sorts the results by stable sorts: violations with equal messages keep their order."""
        if self._is_in_order:  # two sorts of texts take a quarter of the time of a sort of tuples
            self.results = sorted_in_slices(self.results, _message)
            self.results = sorted_in_slices(self.results, _action)
        else:
            self.results = sorted_in_slices(self.results, answer_order)

    def responses(self) -> Responses:
        """Returns all findings in the order of an answer."""
        if self.deferred:
            return DEFERRED
        if len(self.results) > 1:
            self._put_in_order()
        if self.undecided:
            self.undecided.sort(key=lambda item: item.constraint.key)
        fields = (
            tuple(self.results),
            tuple(self.faults),
            self.deadline_exceeded,
            self.evaluated,
            tuple(self.undecided),
            (),
            self.requests,
            None,
            (),
            self.recalled,
        )
        return tuple.__new__(Responses, fields)  # As calling it would, at a third of its cost.


def _chooses(entry: Entry, constraint: Constraint) -> bool:
    """Whether constraint or template set ``onError`` instead of Gatekeeper's meaning of errors."""
    return entry.on_error_for(constraint) in ("reject", "allow")


def _observed(
    evaluate: _Evaluate, observer: Observer, groups: _Groups, review: Review
) -> _Evaluate:
    """Returns the function that evaluates the groups in order and reports each to the observer."""
    remaining = iter(groups)

    def evaluated(given: Any, document: Any, state: Any) -> Sequence[DriverViolation]:
        group = next(remaining)
        began = time.monotonic_ns()
        try:
            violations = tuple(evaluate(given, document, state))
        except Unanswered:
            observer.evaluated(group, began, time.monotonic_ns(), 0, "")
            raise
        except Exception as raised:
            error = quoting_no_secret(containment.of_evaluation(raised), review.document)
            observer.evaluated(group, began, time.monotonic_ns(), 0, str(error))
            raise
        observer.evaluated(group, began, time.monotonic_ns(), len(violations), "")
        return violations

    return evaluated


def _outcome(matcher: Matcher, review: Review) -> bool | str:
    """Returns a matcher's result, or the reason why it is unknown."""
    try:
        return matcher(review)
    except MatchError as error:
        return str(error)
    except Exception as bug:  # noqa: BLE001  # of ours: it costs this constraint alone
        return f"fault of Waddle: {type(bug).__name__}"
