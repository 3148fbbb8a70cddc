"""Reads exceptions; the message of a fault names its field."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.timestamp import text_of
from webhook.constraint import structural
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.match import compile_criteria
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.constraint.result import Excuse
from webhook.constraint.selector_validation import validate_selectors
from webhook.exceptions import schema
from webhook.exceptions.exception import (
    ANY,
    CLUSTER_KIND,
    InvalidException,
    PolicyException,
    SubjectTests,
)
from webhook.exceptions.globs import any_glob, glob
from webhook.exceptions.parts import Parts, takes_all_containers
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.location import Field, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.constraint.limits import Limits
    from webhook.constraint.match import MatchSubject, View
    from webhook.constraint.result import Result
    from webhook.mutation.location import Location

IMPLIED: Final = "[Implied by "
"""The beginning of the message of an implied object's violation."""

_OF_OTHER_PLACES: Final = ("namespaces", "excludedNamespaces", "namespaceSelector", "scope")

_NEVER: Final = math.inf


def read_exception(document: Mapping[str, Any]) -> PolicyException:
    """Reads an exception of either kind; raises :class:`InvalidException`."""
    kind, name, namespace = gvk_of(document).kind, name_of(document), namespace_of(document)
    is_cluster = kind == CLUSTER_KIND
    if not name:
        raise InvalidException(f"{kind} has no metadata.name")
    if len(name) > POLICY_NAME_MAX:
        raise InvalidException(f"{kind} name must be at most {POLICY_NAME_MAX} characters: {name}")
    of = f"{kind} {name}"
    if not is_cluster and not namespace:
        raise InvalidException(f"{of} has no metadata.namespace: it is for its own namespace alone")
    spec = document.get("spec")
    if type(spec) is not dict:
        raise InvalidException(f"{of} has no spec")
    spec = {key: value for key, value in spec.items() if value is not None}
    if faults := _shape_faults(spec, schema.CLUSTER if is_cluster else schema.NAMESPACED):
        raise InvalidException(f"{of}: {'; '.join(dict.fromkeys(faults))}")
    try:
        item = _Reader(kind, name, "" if is_cluster else namespace, spec).read()
    except InvalidException as error:
        raise InvalidException(f"{of}: {error}") from None
    return replace(item, generation=document["metadata"].get("generation", 0))


def _shape_faults(spec: Json, shape: Mapping[str, Any]) -> list[str]:
    """Returns the schema's faults of a spec; files were not checked by an API server."""
    faults = structural.faults(spec, shape, "spec")
    unknown = structural.unknown_fields(
        {"spec": spec}, {"type": "object", "properties": {"spec": shape}}
    )
    return [
        *(fault.removeprefix("[].") for fault in faults),
        *(f"unknown field {name}" for name in unknown),
    ]


def warnings_of_exception(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the probable mistakes of a usable exception."""
    spec = document["spec"]
    warnings = []
    if not _is_narrow(spec):
        warnings.append(
            "it excuses every violation of its constraints in its namespace: narrow it by "
            "spec.match, spec.violations or spec.parts"
        )
    if spec.get("subjects"):
        warnings.append(NOT_FOR_AUDIT)
    if spec.get("permanent"):
        warnings.append("it is permanent: nothing will remind anybody to remove it")
    return tuple(warnings)


def warning_of_times(item: PolicyException, now: float) -> str:
    """Returns why an exception has no effect at a time; empty if it has."""
    if item.ends <= now:
        return f"it ended at {item.excuse.expires}, and has no effect any more"
    if item.begins > now:
        return f"it begins at {text_of(item.begins)}, and has no effect before"
    return ""


def warnings_in_files(document: Mapping[str, Any], now: float) -> tuple[str, ...]:
    """Returns the probable mistakes of an exception in a file; files may have exceptions of any time."""
    return warnings_of_written(read_exception(document), document, now)


def warnings_of_written(
    item: PolicyException, document: Mapping[str, Any], now: float
) -> tuple[str, ...]:
    """Returns the probable mistakes of an exception that was read from a document in a file."""
    warning = warning_of_times(item, now)
    others = () if item.ends <= now else warnings_of_exception(document)
    return (warning, *others) if warning else others


NOT_FOR_AUDIT: Final = "spec.subjects: only an admission has a user, so the audit and reports still find the violations"


def seconds_of(text: object) -> float:
    """Returns a time of RFC 3339 in seconds since the epoch; raises ``ValueError``."""
    if type(text) is not str:
        raise ValueError("no text")  # the schema's check of a format lets a list pass
    time = dt.datetime.fromisoformat(text.upper())
    if time.tzinfo is None:
        raise ValueError("no offset")
    try:
        return time.astimezone(dt.UTC).timestamp()
    except OverflowError:
        raise ValueError("its year has no four digits") from None


class _Reader:
    def __init__(self, kind: str, name: str, namespace: str, spec: Json) -> None:
        self._kind = kind
        self._name = name
        self._namespace = namespace
        self._spec = spec

    def read(self) -> PolicyException:
        spec = self._spec
        begins, ends = self._time("notBefore", 0.0), self._ends()
        if begins >= ends:
            raise InvalidException(
                "spec.notBefore is not before spec.expires: it is never in force"
            )
        match = self._match()
        constraints = self._constraints()
        parts = self._parts()
        self._check_narrow()
        places: list[str] = match.get("namespaces") or []
        place = self._namespace or (
            places[0] if len(places) == 1 and "*" not in places[0] else None
        )
        named = match.get("name") or ""
        is_beginning = named.endswith("*") and not named.startswith("*")
        is_pattern = "*" in named and not is_beginning
        excuse = Excuse(
            kind=self._kind,
            namespace=self._namespace,
            name=self._name,
            effect=spec.get("effect", "skip"),
            reason=spec["reason"],
            expires="" if ends == _NEVER else text_of(ends),
            ticket=spec.get("ticket", ""),
            owner=spec.get("owner", ""),
        )
        return PolicyException(
            excuse,
            constraints,
            begins,
            ends,
            _matches(match, place),
            place,
            "" if "*" in named else named,
            named[:-1] if is_beginning else "",
            named if is_pattern else "",
            self._subjects(),
            self._violation(),
            parts,
            self._conditions(),
        )

    def _time(self, name: str, otherwise: float) -> float:
        text = self._spec.get(name)
        if text is None:
            return otherwise
        try:
            return seconds_of(text)
        except ValueError:
            raise InvalidException(
                f"spec.{name} is not a time such as 2027-03-31T12:00:00Z: {text!r}"
            ) from None

    def _ends(self) -> float:
        is_permanent = self._spec.get("permanent", False)
        if is_permanent == ("expires" in self._spec):
            raise InvalidException(
                "spec has both expires and permanent: it has one of them"
                if is_permanent
                else "spec.expires is missing: say when it ends, or spec.permanent: true"
            )
        return self._time("expires", _NEVER)

    def _constraints(self) -> tuple[tuple[str, str], ...]:
        pairs = tuple((item["kind"], item["name"]) for item in self._spec["constraints"])
        for number, (kind, name) in enumerate(pairs):
            at = f"spec.constraints[{number}]"
            if not kind or not name:
                raise InvalidException(f"{at} has no {'name' if kind else 'kind'}")
            if "*" in kind:
                raise InvalidException(f"{at}.kind is not a kind: {kind!r}; name each kind")
            if "*" in name and name != ANY:
                raise InvalidException(f"{at}.name is a pattern: {name!r}; name each constraint")
            if name == ANY and self._kind != CLUSTER_KIND:
                raise InvalidException(
                    f"{at}.name is *, which only a {CLUSTER_KIND} may say; name each constraint"
                )
        return pairs

    def _check_narrow(self) -> None:
        """Refuses a ClusterPolicyException that would excuse all violations of its constraints."""
        if self._kind == CLUSTER_KIND and not _is_narrow(self._spec):
            raise InvalidException(
                "it would excuse everything: narrow it by spec.match, spec.subjects, spec.violations, "
                "spec.parts or spec.matchConditions, or set enforcementAction: dryrun on the constraint"
            )

    def _match(self) -> Json:
        match: Json = self._spec.get("match") or {}
        if self._namespace:
            for name in _OF_OTHER_PLACES:
                if match.get(name) is not None:
                    raise InvalidException(
                        f"spec.match.{name}: it is for its own namespace alone; a {CLUSTER_KIND} "
                        "is for others"
                    )
        try:
            validate_selectors({"spec": {"match": match}})
        except InvalidConstraint as error:
            raise InvalidException(str(error).removeprefix("invalid Constraint: ")) from None
        return match

    def _subjects(self) -> SubjectTests | None:
        subjects = self._spec.get("subjects")
        if not subjects:
            return None
        users, groups = [], []
        for number, item in enumerate(subjects):
            at, kind, name = f"spec.subjects[{number}]", item["kind"], item["name"]
            namespace = item.get("namespace") or self._namespace
            if not name:
                raise InvalidException(f"{at}.name is empty")
            if kind != "ServiceAccount" and item.get("namespace"):
                raise InvalidException(f"{at}.namespace: only a ServiceAccount has one")
            if kind == "ServiceAccount" and not namespace:
                raise InvalidException(f"{at}.namespace is missing: a ServiceAccount is in one")
            if kind == "Group":
                groups.append(name)
            elif kind == "User":
                users.append(name)
            else:
                users.append(f"system:serviceaccount:{namespace}:{name}")
        return SubjectTests(any_glob(users), any_glob(groups))

    def _violation(self) -> Callable[[Result], bool] | None:
        listed = self._spec.get("violations")
        if not listed:
            return None
        tests = []
        for number, item in enumerate(listed):
            if not item.get("message") and not item.get("details"):
                raise InvalidException(
                    f"spec.violations[{number}] has neither message nor details: say which it is"
                )
            tests.append(_violation_test(item))
        return lambda result: any(test(result) for test in tests)

    def _parts(self) -> Parts | None:
        parts = self._spec.get("parts")
        if parts is None:
            return None
        if not any(parts.get(name) for name in ("containers", "images", "paths")):
            raise InvalidException("spec.parts names no containers, images or paths")
        return Parts(
            any_glob(parts["containers"]) if parts.get("containers") else None,
            any_glob(parts["images"]) if parts.get("images") else None,
            tuple(
                _path(text, f"spec.parts.paths[{number}]")
                for number, text in enumerate(parts.get("paths") or ())
            ),
        )

    def _conditions(self) -> Callable[[dict[str, Any], Limits], bool] | None:
        listed = self._spec.get("matchConditions")
        if not listed:
            return None
        # Imported here, so that exceptions without conditions need no CEL.
        from webhook.exceptions.conditions import compile_conditions  # noqa: PLC0415

        return compile_conditions([item["expression"] for item in listed])


def _is_narrow(spec: Mapping[str, Any]) -> bool:
    """Returns whether any field leaves violations unexcused; a lone ``*`` leaves none."""
    subjects, violations = spec.get("subjects"), spec.get("violations")
    return (
        not all(_takes_all(field, value) for field, value in (spec.get("match") or {}).items())
        or bool(spec.get("matchConditions"))
        or not _takes_all_containers(spec.get("parts"))
        or bool(subjects and not any(map(_is_anybody, subjects)))
        or bool(
            violations
            and not any(
                _is_any(item.get("message")) and not item.get("details") for item in violations
            )
        )
    )


def _takes_all(field: str, value: Any) -> bool:
    """Returns whether a criterion of a match is true of every object."""
    if field == "kinds":
        return not value or any(
            all(not item.get(name) or ANY in item[name] for name in ("apiGroups", "kinds"))
            for item in value
        )
    if field == "namespaces":
        return not value or any(map(_is_any, value))
    if field in ("labelSelector", "namespaceSelector"):
        return not any((value or {}).values())
    if field == "source":
        return value in (None, "", "All")
    return not value or _is_any(value)


def _is_anybody(subject: Mapping[str, Any]) -> bool:
    """Returns whether a subject is every user; all service accounts of a namespace are not."""
    is_in_place = subject["kind"] == "ServiceAccount" and not _is_any(subject.get("namespace"))
    return _is_any(subject["name"]) and not is_in_place


def _takes_all_containers(parts: Mapping[str, Any] | None) -> bool:
    """Returns whether parts, which are readable, leave no container, or there are none."""
    if not parts:
        return True
    patterns = (*(parts.get("containers") or ()), *(parts.get("images") or ()))
    paths = map(parse, parts.get("paths") or ())
    return any(map(_is_any, patterns)) or any(map(takes_all_containers, paths))


def _is_any(text: object) -> bool:
    """Returns whether a pattern is only stars."""
    return type(text) is str and text != "" and not text.strip(ANY)


def _matches(match: Json, place: str | None) -> Callable[[View, MatchSubject], bool] | None:
    """Returns the test of the rest of a match, beside the indexed namespace and name.

    None if there is no rest. Unlike a constraint's, a list or a selector of namespaces never matches
    a cluster-scoped object: that would excuse more than it says.
    """
    by_index = ("name",) if place is None else ("name", "namespaces")
    conditions = {field: value for field, value in match.items() if field not in by_index}
    if not conditions:
        return None
    criteria = compile_criteria(conditions)
    is_placed_by = match.get("namespaces") or any((match.get("namespaceSelector") or {}).values())
    if place is not None or not is_placed_by:
        return criteria

    def matches(view: View, subject: MatchSubject) -> bool:
        is_placed = (
            view.is_namespace or view.namespace or subject.request_namespace or subject.namespace
        )
        return bool(is_placed) and criteria(view, subject)

    return matches


def _violation_test(item: Json) -> Callable[[Result], bool]:
    message, details = item.get("message"), item.get("details")
    says = glob(message) if message else None

    def test(result: Result) -> bool:
        if says is not None and not any(map(says, _messages(result.msg))):
            return False
        return not details or _holds(details, result.details)

    return test


def _messages(message: str) -> Sequence[str]:
    """Returns a message, with and without the prefix of implied objects."""
    if not message.startswith(IMPLIED):
        return (message,)
    return (message, message.partition("] ")[2])


def _holds(pattern: Any, given: Any) -> bool:
    """Whether details have the given values: all fields of objects, patterns for texts."""
    if type(pattern) is dict:
        return type(given) is dict and all(
            name in given and _holds(value, given[name]) for name, value in pattern.items()
        )
    if type(pattern) is list:
        return (
            type(given) is list and len(given) == len(pattern) and all(map(_holds, pattern, given))
        )
    if type(pattern) is str:
        return type(given) is str and glob(pattern)(given)
    if type(pattern) is bool or type(given) is bool:
        return pattern is given
    return bool(pattern == given)


def _path(text: str, at: str) -> Location:
    try:
        path = parse(text)
    except InvalidMutator as error:
        raise InvalidException(f"{at} is not a location: {error}") from None
    first = path[0] if path else None
    if type(first) is not Field or (
        first.name in ("apiVersion", "kind")
        or (first.name == "metadata" and len(path) == 1)
        or [getattr(node, "name", "") for node in path[:2]]
        in (["metadata", "name"], ["metadata", "namespace"])
    ):
        raise InvalidException(f"{at}: without it there is no object to review")
    return path
