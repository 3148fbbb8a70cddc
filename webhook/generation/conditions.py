"""Translates ``match`` and the globally excluded namespaces into a policy's match conditions.

They have the meaning of :mod:`webhook.constraint.match`, and Gatekeeper's names
(pkg/drivers/k8scel/transform). Selectors and ``scope`` are in the binding
(:mod:`webhook.generation.binding`). No condition uses a function that Kubernetes 1.28 lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from webhook.api import names
from webhook.api.config import WEBHOOK_PROCESS
from webhook.api.shapes import Json
from webhook.constraint.match import for_process
from webhook.generation.literal import string, strings

PREFIX: Final = "gatekeeper_internal_match_"


_IS_NAMESPACE: Final = 'request.kind.group == "" && request.kind.kind == "Namespace"'

_OWN_NAME: Final = "(object == null ? oldObject : object).metadata.name"

_PLACE: Final = (
    f'({_IS_NAMESPACE} ? {_OWN_NAME} : (has(request.namespace) ? request.namespace : ""))'
)
"""The namespace of a request, a Namespace's own name, or an empty text."""


_PROCESSES: Final = "params.spec.match.processes"
_ELSEWHERE: Final = (
    f"(has({_PROCESSES}) && size({_PROCESSES}) > 0"
    f' && !("{WEBHOOK_PROCESS}" in {_PROCESSES}) && !("*" in {_PROCESSES}))'
)
"""Whether excludedNamespaces applies only to processes other than admission."""


_Given: TypeAlias = "Callable[[str], tuple[str, str] | None]"
"""Returns the test for the absence of a match's field, and the field; None if the match lacks it."""


def of_parameters() -> list[Json]:
    """Returns conditions that read the match from the constraint, the policy's parameters."""

    def given(field: str) -> tuple[str, str]:
        at = f"params.spec.match.{field}"
        absent = f"!has(params.spec) || !has(params.spec.match) || !has({at}) || size({at}) == 0"
        if field == "excludedNamespaces":
            absent += f" || {_ELSEWHERE}"
        return f"{absent} || ", at

    return _conditions(given, _kinds_of(*given("kinds")))


def of_match(match: Mapping[str, Any]) -> list[Json]:
    """Returns conditions for the fields of a match, which is inserted into them."""
    match = for_process(match, WEBHOOK_PROCESS)

    def given(field: str) -> tuple[str, str] | None:
        value = match.get(field)
        if not value:
            return None
        return "", string(value) if field == "name" else strings(value)

    return _conditions(given, _listed_kinds(match.get("kinds") or ()))


def _listed_kinds(listed: Sequence[Mapping[str, Any]]) -> str:
    """Returns the test for a request's kind; empty if every kind matches."""
    entries = []
    for condition in listed:
        tests = [
            f"request.kind.{of_request} in {strings(condition[field])}"
            for field, of_request in (("kinds", "kind"), ("apiGroups", "group"))
            if condition.get(field) and "*" not in condition[field]
        ]
        if not tests:
            return ""
        entries.append(f"({' && '.join(tests)})")
    return " || ".join(entries)


def _conditions(given: _Given, kinds: str) -> list[Json]:
    expressions = (
        ("excluded_namespaces", _lists(given("excludedNamespaces"), included=False)),
        ("namespaces", _lists(given("namespaces"), included=True)),
        ("name", _name(given("name"))),
        ("kinds", kinds),
    )
    return [
        {"name": f"{PREFIX}{name}", "expression": expression}
        for name, expression in expressions
        if expression
    ]


def _matches(name: str, pattern: str) -> str:
    """Returns the test of a name against a pattern with ``*`` in front, at the end or at both."""
    return (
        f'({pattern}.startsWith("*")'
        f' ? ({pattern}.endsWith("*") && size({pattern}) > 1'
        f" ? {name}.contains({pattern}.substring(1, size({pattern}) - 1))"
        f" : {name}.endsWith({pattern}.substring(1)))"
        f' : ({pattern}.endsWith("*")'
        f" ? {name}.startsWith({pattern}.substring(0, size({pattern}) - 1))"
        f" : {name} == {pattern}))"
    )


def _lists(given: tuple[str, str] | None, *, included: bool) -> str:
    if given is None:
        return ""
    absent, listed = given
    is_listed = f"{listed}.exists(pattern, {_matches('place', 'pattern')})"
    return f'{absent}[{_PLACE}].exists(place, place == "" || {"" if included else "!"}{is_listed})'


def _name(given: tuple[str, str] | None) -> str:
    if given is None:
        return ""
    absent, pattern = given
    name, generated = "subject.metadata.name", "subject.metadata.generateName"
    own_name = f'(has(subject.metadata) && has({name}) ? {name} : "")'
    return (
        f"{absent}[{pattern}].exists(pattern, [object, oldObject].exists(subject, subject != null"
        f" && ([{own_name}].exists(name, {_matches('name', 'pattern')})"
        f' || (pattern.endsWith("*") && has(subject.metadata) && has({generated})'
        f" && [{generated}].exists(name, {_matches('name', 'pattern')})))))"
    )


def _kinds_of(absent: str, listed: str) -> str:
    return (
        f"{absent}{listed}.exists(one, {_among('kinds', 'kind')} && {_among('apiGroups', 'group')})"
    )


def _among(field: str, of_request: str) -> str:
    listed = f"one.{field}"
    return (
        f'(!has({listed}) || size({listed}) == 0 || "*" in {listed}'
        f" || request.kind.{of_request} in {listed})"
    )


_BY_API_SERVER: Final = strings(
    (
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)

_ONLY_RELEASES: Final = (
    'request.operation == "UPDATE" && has(oldObject.metadata.finalizers)'
    " && (!has(object.metadata.finalizers)"
    " || (size(object.metadata.finalizers) < size(oldObject.metadata.finalizers)"
    " && object.metadata.finalizers.all(item, item in oldObject.metadata.finalizers)))"
    f" && object.metadata.all(key, key in {_BY_API_SERVER} || (key in oldObject.metadata"
    " && object.metadata[key] == oldObject.metadata[key]))"
    f" && oldObject.metadata.all(key, key in {_BY_API_SERVER} || key in object.metadata)"
    ' && object.all(key, key == "metadata" || (key in oldObject && object[key] == oldObject[key]))'
    ' && oldObject.all(key, key == "metadata" || key in object)'
)


def not_released() -> Json:
    """Returns the condition that spares updates that only remove finalizers.

    It has the meaning of :func:`webhook.review.releasing.only_releases` for these.
    """
    return {"name": f"{PREFIX}not_released", "expression": f"!({_ONLY_RELEASES})"}


def globally_excluded(patterns: Sequence[str]) -> list[Json]:
    """Returns the condition for namespaces that a Config excludes; a Namespace is in itself."""
    if not patterns:
        return []
    is_listed = f"{strings(patterns)}.exists(pattern, {_matches('place', 'pattern')})"
    expression = f'[{_PLACE}].exists(place, place == "" || !{is_listed})'
    return [{"name": f"{PREFIX}global_excluded_namespaces", "expression": expression}]


def globally_exempted(patterns: Sequence[str]) -> list[Json]:
    """Returns the condition that exempts Namespaces with a permitted exempting label.

    Objects in them are excluded by the label itself, through the namespaceSelector of policy and
    webhook. So a Namespace that may have the label but lacks it is not exempt.
    """
    if not patterns:
        return []
    is_listed = f"{strings(patterns)}.exists(pattern, {_matches('place', 'pattern')})"
    labelled = (
        "[object, oldObject].exists(subject, subject != null && has(subject.metadata.labels)"
        f" && {string(names.IGNORE)} in subject.metadata.labels)"
    )
    expression = f"!({_IS_NAMESPACE} && [{_PLACE}].exists(place, {is_listed}) && {labelled})"
    return [{"name": f"{PREFIX}global_exempted_namespaces", "expression": expression}]
