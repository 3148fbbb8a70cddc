"""The stage of a review that excuses violations.

Exceptions are searched only for violations. They are indexed by constraint, and by the object's
namespace and name, so the time does not depend on their number.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api.gvk import gvk_of
from webhook.cel.errors import EvaluationError, TimeUp
from webhook.constraint.errors import MatchError
from webhook.constraint.match import View
from webhook.constraint.result import DEFERRED, Responses, Result, answer_order
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import NAME, subject_of
from webhook.exceptions.exception import ANY, GENERATED_BEGINNING_MAX, GROUP, KINDS
from webhook.exceptions.without_parts import LENIENT, Deferred, WithoutParts
from webhook.review.subject import object_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.constraint.match import MatchSubject
    from webhook.constraint.result import Excuse
    from webhook.exceptions.exception import PolicyException
    from webhook.review.policy_set import Examination

_STRENGTH: Final = {"dryrun": 1, "warn": 2, "deny": 3}


_Table: TypeAlias = "dict[tuple[str, str], list[PolicyException]]"
"""Exceptions by the kind and the name of their constraints."""


class _Place:
    """The exceptions for one namespace, or for any: by the object's name or its prefix."""

    __slots__ = ("_beginnings", "_lengths", "_names", "_rest")

    def __init__(self) -> None:
        self._names: dict[str, _Table] = {}
        self._beginnings: dict[str, _Table] = {}
        self._lengths: list[int] = []
        """The lengths of beginnings, in order."""
        self._rest: _Table = {}
        """The exceptions for any name, and for names by other patterns."""

    def add(self, item: PolicyException) -> None:
        """Adds an exception at its place."""
        if item.object_name:
            table = self._names.setdefault(item.object_name, {})
        elif item.name_beginning:
            table = self._beginnings.setdefault(item.name_beginning, {})
            if len(item.name_beginning) not in self._lengths:
                insort(self._lengths, len(item.name_beginning))
        else:
            table = self._rest
        for key in dict.fromkeys(item.constraints):
            table.setdefault(key, []).append(item)

    def of(self, view: View) -> list[_Table]:
        """Returns the tables of exceptions that may match an object."""
        tables = [] if (named := self._names.get(view.name)) is None else [named]
        name, prefix = view.name, view.generate_name
        for text in (name,) if name.startswith(prefix) else (name, prefix):
            for length in self._lengths:
                if length > len(text):
                    break
                begun = self._beginnings.get(text[:length])
                if begun is not None and begun not in tables:
                    tables.append(begun)
        if self._rest:
            tables.append(self._rest)
        return tables


class Excusing:
    """All exceptions, as a stage. Immutable except for recorded faults of conditions."""

    def __init__(self, exceptions: Iterable[PolicyException]) -> None:
        self.exceptions = tuple(exceptions)
        self._places: dict[str | None, _Place] = {}
        """The exceptions by the object's namespace; None for any namespace."""
        for item in self.exceptions:
            self._places.setdefault(item.place, _Place()).add(item)
        self.by_title = {item.excuse.title: item for item in self.exceptions}
        self.condition_faults: dict[str, str] = {}
        """The last fault in the conditions of each exception, by its title."""

    def __call__(self, examined: Examination, responses: Responses) -> Responses:
        """Excuses violations with a matching exception; others are unchanged."""
        if not responses.results:
            return responses
        value = examined.value
        if (obj := object_of_value(value)) is None:
            return responses  # a document of conftest is not a cluster's object
        view = View(obj, gvk_of(obj))
        if not view.kind or (view.group == GROUP and view.kind in KINDS):
            return responses  # Faults of exceptions are never excused.
        if view.name and not view.name.startswith(view.generate_name[:GENERATED_BEGINNING_MAX]):
            view.generate_name = ""  # It made no name: anybody may write it beside another name.
        place = _place_of(value, view)
        tables: list[_Table] = []
        for of in (None,) if place is None else (place, None):
            if (known := self._places.get(of)) is not None:
                tables += known.of(view)
        if not tables:
            return responses  # the usual case, after a few look-ups
        try:
            return _Case(examined, responses, view, place, self.condition_faults).excused(tables)
        except Deferred:
            return DEFERRED


class _Case:
    """The findings of one object during the stage."""

    __slots__ = (
        "_about",
        "_examined",
        "_faults",
        "_now",
        "_place",
        "_responses",
        "_subject",
        "_view",
        "_without_parts",
    )

    def __init__(
        self,
        examined: Examination,
        responses: Responses,
        view: View,
        place: str | None,
        faults: dict[str, str],
    ) -> None:
        """``faults`` receives the errors of conditions."""
        self._examined = examined
        self._responses = responses
        self._view = view
        self._place = place
        self._faults = faults
        self._now = examined.at
        self._about: dict[int, bool] = {}
        """Whether an exception's match and conditions hold, by its identity."""
        self._subject: MatchSubject | None = None
        self._without_parts: WithoutParts | None = None

    def excused(self, tables: Sequence[_Table]) -> Responses:
        """Returns the responses without excused results, by ``tables`` of possible exceptions."""
        responses = self._responses
        kept: list[Result] = []
        excused: list[Result] = []
        is_changed = False
        for result in responses.results:
            excused_result = result
            if result.cause == "violation" and (items := self._candidates(result, tables)):
                excused_result = self._with_excuse(result, items)
                is_changed = is_changed or excused_result is not result
            if (excuse := excused_result.excuse) is not None and excuse.effect == "skip":
                excused.append(excused_result)
            else:
                kept.append(excused_result)
        if self._without_parts is not None:
            self._without_parts.check_answers()
        if not is_changed:
            return responses
        results = tuple(sorted(kept, key=answer_order)) if kept else ()
        _, faults, late, evaluated, undecided, earlier, requests, answers, *rest = responses
        both = (*earlier, *excused)
        # As _replace would, at a third of its cost.
        fields = (results, faults, late, evaluated, undecided, both, requests, answers, *rest)
        return tuple.__new__(Responses, fields)

    def _candidates(self, result: Result, tables: Sequence[_Table]) -> list[PolicyException]:
        """Yields exceptions that may match the object, those by its name first."""
        constraint, items = result.constraint, []
        for of in ((constraint.kind, constraint.name), (constraint.kind, ANY)):
            for table in tables:
                for item in table.get(of, ()):
                    if not item.name_pattern or self._view.is_named(item.name_pattern):
                        items.append(item)  # noqa: PERF401  # avoids a call
        return items

    def _with_excuse(self, result: Result, candidates: Sequence[PolicyException]) -> Result:
        """Returns a violation with its most lenient exception, and the resulting action."""
        whole: list[PolicyException] = []
        partly: list[PolicyException] = []
        allowed = result.constraint.exceptions
        is_conditional = False
        for item in candidates:
            is_conditional = is_conditional or item.conditions is not None
        for item in candidates:
            if not self._is_about(item) or (not item.excuse.namespace) not in allowed:
                continue
            if item.violation is None or item.violation(result):
                (whole if item.parts is None else partly).append(item)
                if not is_conditional and item.parts is None and item.excuse.effect == "skip":
                    # No effect is more lenient, and other exceptions cannot add faults.
                    return _weakened(result, item.excuse)
        excusing = [item.excuse for item in whole]
        if partly:
            if self._without_parts is None:
                self._without_parts = WithoutParts(self._examined, self._responses)
            excusing += self._without_parts.excusing(result, partly)
        for effect in LENIENT:
            for excuse in excusing:
                if excuse.effect == effect:
                    return _weakened(result, excuse)
        return result

    def _is_about(self, item: PolicyException) -> bool:
        if not item.begins <= self._now < item.ends:
            return False
        namespace = item.excuse.namespace
        if namespace and (namespace != self._place or self._view.is_namespace):
            return False  # Rights in a namespace do not include rights on the Namespace itself.
        value = self._examined.value
        if item.subjects is not None and not (
            type(value) is AugmentedReview
            and item.subjects.includes(value.request.document.get("userInfo") or {})
        ):
            return False
        if item.matches is None and item.conditions is None:
            return True
        known = self._about.get(id(item))
        if known is None:
            known = self._about[id(item)] = self._is_matched(item)
        return known

    def _is_matched(self, item: PolicyException) -> bool:
        limits = self._examined.limits
        try:
            if item.matches is not None and not self._matches(item.matches):
                return False
            return item.conditions is None or item.conditions(self._document(), limits)
        except MatchError as error:
            self._faults[item.excuse.title] = str(error)
        except TimeUp as error:
            if limits.budget is not None and limits.budget.deferrable:
                raise Deferred from None
            self._faults[item.excuse.title] = error.text
        except EvaluationError as error:
            # The words of an error may have values of the object.
            is_secret = (self._view.group, self._view.kind) == ("", "Secret")
            self._faults[item.excuse.title] = "an error on a Secret" if is_secret else error.text
        return False

    def _matches(self, test: Callable[[View, MatchSubject], bool]) -> bool:
        if self._subject is None:
            examined = self._examined
            namespaces = examined.snapshot.namespaces
            self._subject = subject_of(examined.value, self._view, namespaces)
        return test(self._view, self._subject)

    def _document(self) -> dict[str, Any]:
        """Returns ``input.review``, the document of the conditions."""
        examined = self._examined
        target = examined.snapshot.targets[NAME]
        review = target.handle_review(examined.value, examined.snapshot.namespaces)
        assert review is not None
        document: dict[str, Any] = review.document
        return document


def _place_of(value: Any, view: View) -> str | None:
    """Returns the namespace of an object; None for none. A Namespace is in itself."""
    if view.is_namespace:
        return view.name
    named = value.request.namespace if type(value) is AugmentedReview else ""
    return named or view.namespace or None


def _weakened(result: Result, excuse: Excuse) -> Result:
    """Returns a violation with an exception's effect: never with a stronger action than before."""
    effect = excuse.effect
    if effect == "skip" or not any(
        _STRENGTH.get(action, 0) > _STRENGTH[effect] for action in result.actions
    ):
        # Every excused violation is constructed directly: ``_replace`` takes twice as long.
        target, constraint, msg, details, action, scoped, cause, _, existing = result
        fields = target, constraint, msg, details, action, scoped, cause, excuse, existing
        return tuple.__new__(Result, fields)
    return result._replace(enforcement_action=effect, scoped_actions=(), excuse=excuse)
