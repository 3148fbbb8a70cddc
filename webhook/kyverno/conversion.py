"""Converts rules of Kyverno's ClusterPolicies to ValidatingPolicies in CEL, if possible.

A rule with ``validate.cel``, a pattern, or conditions of ``deny`` becomes one policy; inconvertible
parts are named. Source: Kyverno 1.18: pkg/engine/validate, pkg/engine/anchor, pkg/engine/pattern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import name_of, namespace_of, plural_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.kyverno.checks import message_of, take_variable, validations_of
from webhook.kyverno.compiling import without_nulls
from webhook.kyverno.conditions import conditions_of
from webhook.kyverno.kinds import GROUP, NAMESPACED_POLICY, OLD_POLICY, POLICY
from webhook.kyverno.patterns import Unwritable, text_matches, written
from webhook.kyverno.pod_security import security_spec
from webhook.kyverno.queries import Queries
from webhook.kyverno.validating_policy import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.api.shapes import Json

_OPERATIONS: Final = ["CREATE", "UPDATE"]
OPERATION: Final = "request.operation"
_OPERATION_VARIABLE: Final = re.compile(r"\{\{\s*request\.operation\s*(\|\|\s*'\w*'\s*)?\}\}")

_NO_TEXT: Final = re.compile(
    r"spec\.validations\[(\d+)\]\.messageExpression: must evaluate to string"
)
"""The fault of a messageExpression of another type than a text."""

AUTOGEN: Final = "pod-policies.kyverno.io/autogen-controllers"
_RESOURCE: Final = frozenset(
    [
        "annotations",
        "kinds",
        "name",
        "names",
        "namespaceSelector",
        "namespaces",
        "operations",
        "selector",
    ]
)
_OTHERS: Final = ("mutate", "generate", "verifyImages")
"""Rule types other than ``validate``."""

_QUOTED: Final = re.compile(
    r"""\\?"?request\\?"?\.\\?"(object|oldObject)|request\.(object|oldObject)\.\\?"(spec|metadata)"""
)
_ROLES: Final = ("roles", "clusterRoles")
_SUBJECTS: Final = ("subjects", *_ROLES)
_KIND: Final = re.compile(
    r"(?:(?:(?P<group>\*|[a-z][a-z0-9.-]*)/)?(?P<version>\*|v[0-9][a-z0-9]*)/)?(?P<kind>[A-Z][A-Za-z0-9]*)"
    r"(?:[/.](?P<below>[a-z]+))?"
)
_CONNECTED: Final = frozenset(("attach", "exec", "portforward", "proxy"))
"""Subresources without creation: requests connect to them."""

_EITHER: Final = "(request.operation != 'DELETE' ? object : oldObject)"
"""The object, or the deleted one; autogen does not rewrite it, as Kyverno does not rewrite
selectors."""

_VERSIONS: Final = {"autoscaling": "v2", "flowcontrol.apiserver.k8s.io": "v1"}
"""Versions of builtin groups; v1 for others."""


def converted(document: Json) -> Iterator[tuple[str, Json | Unwritable]]:
    """Yields each rule's name, with the policy that it becomes or why it becomes none."""
    spec = object_of(document.get("spec"))
    for at, rule in enumerate(objects_of(spec.get("rules"))):
        name = str(rule.get("name") or f"[{at}]")
        try:
            yield name, _policy(document, spec, rule, name)
        except Unwritable as why:
            yield name, why


def _policy(document: Json, spec: Json, rule: Json, name: str) -> Json:
    validate = object_of(rule.get("validate"))
    _check_convertible(spec, rule, validate)
    spec_fields: Json = {"validationActions": [_action(spec, validate)]}
    is_deleted = _is_about_deletions(rule)
    spec_fields["matchConstraints"], conditions = _matched(rule, is_deleted=is_deleted)
    operations = {
        operation
        for each in spec_fields["matchConstraints"]["resourceRules"]
        for operation in each["operations"]
    }
    is_of_pods = _is_of_pods(rule)
    if is_of_pods and _QUOTED.search(str(rule)):
        raise Unwritable(
            'request."object": what Kyverno does not write again for Pods\' controllers'
        )
    queries = Queries(is_of_pods=is_of_pods, is_deleted=bool(operations & {"DELETE", "*"}))
    for at, entry in enumerate(objects_of(rule.get("context"))):
        take_variable(entry, f"context[{at}]", queries)
    conditions += _preconditions(rule, queries)
    more, validations = validations_of(validate, queries)
    spec_fields["matchConditions"] = [
        {"name": f"rule-{at}", "expression": condition}
        for at, condition in enumerate([*conditions, *more])
    ]
    if not spec_fields["matchConditions"]:
        del spec_fields["matchConditions"]
    if variables := object_of(validate.get("cel")).get("variables"):
        spec_fields["variables"] = variables
    spec_fields["validations"] = validations
    if validate.get("podSecurity"):
        spec_fields |= security_spec(validations, set(map(_kind_of, _kinds(rule))))
    # Of rules in CEL, an error in a condition is a failure, whatever the failurePolicy.
    if spec.get("failurePolicy") and not validate.get("cel"):
        spec_fields["failurePolicy"] = spec["failurePolicy"]
    if is_of_pods:
        spec_fields |= _autogen(document, spec, rule)
    if spec.get("background") is False:
        spec_fields["evaluation"] = {"background": {"enabled": False}}
    if spec.get("admission") is False:
        spec_fields.setdefault("evaluation", {})["admission"] = {"enabled": False}
    metadata: Json = {"name": rule_policy_name(document, name)}
    is_of_namespace = document.get("kind") == OLD_POLICY
    if is_of_namespace and (namespace := namespace_of(document)):
        metadata["namespace"] = namespace
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    if kept := {key: value for key, value in annotations.items() if not key.startswith("pod-")}:
        metadata["annotations"] = kept
    policy: Json = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": NAMESPACED_POLICY if is_of_namespace else POLICY,
        "metadata": metadata,
        "spec": spec_fields,
    }
    is_cel = bool(validate.get("cel"))
    if not is_cel:
        return policy
    policy["spec"] = without_nulls(policy["spec"])
    return _with_plain_messages(policy, message_of(validate, queries))


def _with_plain_messages(policy: Json, message: Json) -> Json:
    """Leaves out each messageExpression that gives no text; ``message`` is the rule's own.

    For a ClusterPolicy, Kyverno then shows the plain message. It refuses such a ValidatingPolicy.
    """
    validations = policy["spec"]["validations"]
    while fault := _NO_TEXT.match(fault_of(policy)):
        validation = validations[int(fault[1])]
        del validation["messageExpression"]
        if not validation.get("message"):
            validation |= message
    return policy


def _check_convertible(spec: Json, rule: Json, validate: Json) -> None:
    """Raises for other rule types, and for fields over all rules of a policy."""
    if not validate:
        other = next((f"`{field}`" for field in _OTHERS if rule.get(field)), "no `validate`")
        raise Unwritable(f"it has {other}, and only `validate` is converted")
    overrides = "validationFailureActionOverrides", "failureActionOverrides"
    for field, of in zip(overrides, (spec, validate), strict=True):
        if of.get(field):
            raise Unwritable(f"{field}: write a policy for each action, by namespaceSelector")
    if spec.get("applyRules") == "One" and len(objects_of(spec.get("rules"))) > 1:
        raise Unwritable("applyRules One: the first rule that matches ends the others")
    if object_of(spec.get("webhookConfiguration")).get("matchConditions"):
        raise Unwritable("webhookConfiguration.matchConditions: write them as matchConditions")


def rule_policy_name(document: Json, rule: str) -> str:
    """Returns the name of a converted rule: the policy's, with the rule's if it has several."""
    own_name = name_of(document)
    if len(objects_of(object_of(document.get("spec")).get("rules"))) == 1:
        return own_name
    return f"{own_name}-{re.sub(r'[^a-z0-9]+', '-', rule.lower()).strip('-')}"


def _action(spec: Json, validate: Json) -> str:
    action = str(validate.get("failureAction") or spec.get("validationFailureAction") or "Audit")
    return "Deny" if action.lower() == "enforce" else "Audit"


def _autogen(document: Json, spec: Json, rule: Json) -> Json:
    """Returns the controllers of a rule about Pods, as Kyverno finds them; empty for all."""
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    named = annotations.get(AUTOGEN)
    if named == "none" or not (_has_autogen(spec) and _excludes_pods_or_any_kind(rule)):
        return {"autogen": {"podControllers": {"controllers": []}}}
    if named is None:
        return {}
    names = [plural_of(name.strip()) for name in str(named).split(",")]
    return {"autogen": {"podControllers": {"controllers": names}}}


def _has_autogen(spec: Json) -> bool:
    """Returns whether Kyverno applies a policy's rules to controllers, too.

    One rule that cannot be applied to them keeps all others from it.
    """
    for rule in objects_of(spec.get("rules")):
        mutate = object_of(rule.get("mutate"))
        if rule.get("generate") or any(
            part.get("patchesJson6902") for part in (mutate, *objects_of(mutate.get("foreach")))
        ):
            return False
        for block in ("match", "exclude"):
            for filter_ in _filters(object_of(rule.get(block))):
                resources = object_of(filter_.get("resources"))
                kinds = texts_of(resources.get("kinds"))
                if (
                    any(resources.get(name) is not None for name in ("selector", "annotations"))
                    or any(resources.get(name) for name in ("name", "names"))
                    or (len(kinds) > 1 and _has_pods(kinds))
                ):
                    return False
    return True


def _excludes_pods_or_any_kind(rule: Json) -> bool:
    """Returns whether a rule excludes Pods, or nothing by its kind: only then it has controllers."""
    kinds = _kinds(rule, "exclude")
    return not kinds or _has_pods(kinds)


def _has_pods(kinds: list[str]) -> bool:
    return any(_kind_of(kind) == "Pod" for kind in kinds)


# --- matches of a rule
# ----------------------------------------------------------------------------


def _is_of_pods(rule: Json) -> bool:
    """Returns whether the rule is about Pods, so that Kyverno applies it to controllers, too."""
    kinds = _kinds(rule)
    return bool(kinds) and all(kind.rpartition("/")[2] == "Pod" for kind in kinds)


def _filters(block: Json) -> list[Json]:
    return [*objects_of(block.get("any")), *objects_of(block.get("all")), block]


def _kinds(rule: Json, block: str = "match") -> list[str]:
    """Returns the kinds that a rule matches or excludes, as they are written."""
    return [
        str(kind)
        for filter_ in _filters(object_of(rule.get(block)))
        for kind in object_of(filter_.get("resources")).get("kinds") or ()
    ]


def _kind_of(written_kind: str) -> str:
    match = _KIND.fullmatch(written_kind)
    return match["kind"] if match else written_kind


def _matched(rule: Json, *, is_deleted: bool) -> tuple[Json, list[str]]:
    """Returns the matchConstraints, and further conditions."""
    block = object_of(rule.get("match"))
    are_alternatives = not objects_of(block.get("all"))
    filters = filters_of(block, "match")
    default = [*_OPERATIONS, "DELETE"] if is_deleted else _OPERATIONS
    rules: list[Json] = []
    parts: list[list[str]] = []
    for filter_ in filters:
        resources = resources_of(filter_, "match", may_be_all=not are_alternatives)
        if are_alternatives or (resources.get("kinds") and not rules):
            rules += _rules(resources, default)
        parts.append([*_of_kinds(resources, len(filters) > 1), *_conditions(filter_)])
    if not rules:
        raise Unwritable("match.resources without kinds")
    conditions = []
    if any(parts):
        joint = " || " if are_alternatives else " && "
        every = [" && ".join(f"({part})" for part in each) or "true" for each in parts]
        conditions.append(joint.join(f"({condition})" for condition in every))
    if excluded := _excluded(rule):
        conditions += excluded
    return {"resourceRules": rules}, conditions


def _excluded(rule: Json) -> list[str]:
    """Returns conditions for excluded objects."""
    block = object_of(rule.get("exclude"))
    return [f"!({condition})" for condition in alternatives(block, "exclude")] if block else []


def alternatives(block: Json, where: str) -> list[str]:
    """Returns the conditions of which one holds for the objects of an exclude, or an exception."""
    every = []
    for filter_ in filters_of(block, where):
        resources = resources_of(filter_, where)
        parts = [*_of_kinds(resources, is_asked=True), *_conditions(filter_)]
        if resources.get("operations"):
            parts.append(f"request.operation in {written(list(resources['operations']))}")
        if not parts:
            raise Unwritable(f"{where}: it includes everything")
        every.append(" && ".join(f"({part})" for part in parts))
    if objects_of(block.get("all")):
        return [" && ".join(f"({condition})" for condition in every)]
    return every


def for_requester(document: Json, requester: Json) -> Json:
    """Returns a ClusterPolicy for one requester: conditions on roles are decided.

    ``requester`` has ``userInfo``, ``roles`` and ``clusterRoles``. If it is empty, rules match
    every user, and exclude none, as in Kyverno's tests.
    """
    spec = object_of(document.get("spec"))
    rules = [_rule_for(rule, requester) for rule in objects_of(spec.get("rules"))]
    return {**document, "spec": {**spec, "rules": rules}}


def _rule_for(rule: Json, requester: Json) -> Json:
    is_met = True
    for name in ("match", "exclude"):
        block = object_of(rule.get(name))
        joint = next((key for key in ("any", "all") if objects_of(block.get(key))), "")
        filters = objects_of(block.get(joint)) if joint else [block]
        if not any(filter_.get(field) for filter_ in filters for field in _SUBJECTS):
            continue
        read = (_filter_for(filter_, requester, excludes=name == "exclude") for filter_ in filters)
        kept = [filter_ for filter_ in read if filter_ is not None]
        matches = len(kept) == len(filters) if joint == "all" else bool(kept)
        if name == "exclude":
            # A filter without other fields excludes everything.
            excludes_all = matches and not (any(kept) if joint == "all" else all(kept))
            is_met = is_met and not excludes_all
            kept = [filter_ for filter_ in kept if filter_ and matches and not excludes_all]
        elif not matches:
            is_met = False
            kept = [{"resources": filter_.get("resources")} for filter_ in filters]
        block = {joint: kept} if joint and kept else (kept or [{}])[0]
        rule = {**rule, name: block}
    never = [{"name": "requester", "expression": "false"}]
    return rule if is_met else {**rule, "celPreconditions": never}


def _filter_for(filter_: Json, requester: Json, *, excludes: bool) -> Json | None:
    """Returns a filter without conditions on the requester; None if these do not match."""
    if not requester:
        if excludes and any(filter_.get(field) for field in _SUBJECTS):
            return None
        return {key: value for key, value in filter_.items() if key not in _SUBJECTS}
    for field in _ROLES:
        if filter_.get(field) and not {*texts_of(filter_[field])} & {
            *texts_of(requester.get(field))
        }:
            return None
    return {key: value for key, value in filter_.items() if key not in _ROLES}


def filters_of(block: Json, where: str) -> list[Json]:
    """Returns the filters of a match or exclude; raises :class:`Unwritable` if it is empty."""
    filters = objects_of(block.get("any")) or objects_of(block.get("all"))
    if filters:
        return filters
    if any(block.get(name) for name in ("resources", *_SUBJECTS)):
        return [block]
    raise Unwritable(f"{where}: it names no resources")


def resources_of(filter_: Json, where: str, *, may_be_all: bool = False) -> Json:
    """Returns a filter's resources as rules; raises :class:`Unwritable`."""
    for field in _ROLES:
        if filter_.get(field):
            raise Unwritable(f"{where}.{field}: roles are known to the API server alone")
    resources = object_of(filter_.get("resources"))
    if more := sorted(resources.keys() - _RESOURCE):
        raise Unwritable(f"{where}.resources.{more[0]}")
    if where == "match" and not resources.get("kinds") and not may_be_all:
        raise Unwritable("match.resources without kinds")
    return resources


def _texts(resources: Json, field: str) -> list[str]:
    """Returns the texts of a field, none if it is absent; raises :class:`Unwritable`."""
    given = resources.get(field) or []
    if type(given) is not list or texts_of(given) != given:
        raise Unwritable(f"{field}: it is not a list of texts")
    return given


def _rules(resources: Json, default: list[str]) -> Iterator[Json]:
    for text in _texts(resources, "kinds"):
        operations = list(_texts(resources, "operations") or default)
        if text == "*":
            group, version, resource = "*", "*", "*"
        else:
            group, version, name, below = parsed_kind(text)
            resource = _resource_of(group, name) + (f"/{below}" if below else "")
            if below in _CONNECTED and not resources.get("operations"):
                operations = ["CONNECT"]
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": operations,
            "resources": [resource],
        }


def _resource_of(group: str, name: str) -> str:
    """Returns the resource of a kind; for other than builtin kinds an English plural."""
    is_guess = group == "*" and re.search("[aeiou]y$", name) is not None
    return f"{name.lower()}s" if is_guess else plural_of(name)


def kind_of(text: str) -> tuple[str, str, str]:
    """Group, version and kind of ``Kind``, ``version/Kind`` or ``group/version/Kind``."""
    group, version, name, below = parsed_kind(text)
    if below:
        raise Unwritable(f"match.resources.kinds: {text}: a subresource")
    return group, version, name


def parsed_kind(text: str) -> tuple[str, str, str, str]:
    """Returns group, version, kind and subresource; raises :class:`Unwritable`.

    A kind of no builtin group is of any group and version, as in Kyverno.
    """
    match = _KIND.fullmatch(text)
    if match is None:
        raise Unwritable(f"match.resources.kinds: {text}: a pattern of kinds")
    group, version, name = match["group"], match["version"] or "*", match["kind"]
    below = match["below"] or ""
    if group:
        return group, version, name, below
    groups = sorted(group for group, kind in BUILTIN_KINDS if kind == name)
    groups = [
        named for named in groups if named in {"", "apps", "batch", "policy"} or "k8s.io" in named
    ]
    if name == "Event":
        groups = [""]
    if name == "HorizontalPodAutoscaler":
        groups = ["autoscaling"]
    if len(groups) != 1:
        return "*", version, name, below
    known = version if match["version"] else _VERSIONS.get(groups[0], "v1")
    return groups[0], known, name, below


def _of_kinds(resources: Json, is_asked: bool) -> list[str]:
    """Returns the condition on a filter's kinds, if its rules are not precise enough."""
    kinds = _texts(resources, "kinds")
    if not kinds or "*" in kinds:
        return []
    parsed = [parsed_kind(kind) for kind in kinds]
    if any(below for *_, below in parsed):
        if is_asked:
            raise Unwritable("match.resources.kinds: a subresource beside other filters")
        return []
    if not is_asked and all(group != "*" for group, *_ in parsed):
        return []
    return [f"request.kind.kind in {written([name for _, _, name, _ in parsed])}"]


def _conditions(filter_: Json) -> list[str]:
    """Returns conditions on the object besides its kind, and on the user."""
    resources = object_of(filter_.get("resources"))
    conditions = []
    if name := resources.get("name"):
        conditions.append(text_matches("request.name", str(name)))
    if names := _texts(resources, "names"):
        conditions.append(_any_text("request.name", names))
    if namespaces := _texts(resources, "namespaces"):
        place = "(request.kind.kind == 'Namespace' ? request.name : request.?namespace.orValue(''))"
        conditions.append(_any_text(place, namespaces))
    for key, value in object_of(resources.get("annotations")).items():
        if any(mark in str(key) for mark in "*?"):
            raise Unwritable("match.resources.annotations: a pattern of keys")
        held = f"{_EITHER}.metadata.?annotations[?{written(str(key))}]"
        conditions.append(f"{held}.hasValue() && {text_matches(f'{held}.value()', str(value))}")
    if selector := resources.get("selector"):
        labels = f"{_EITHER}.metadata.?labels.orValue({{}})"
        conditions.append(_selected(labels, selector, "selector"))
    if selector := resources.get("namespaceSelector"):
        labels = "namespaceObject.metadata.?labels.orValue({})"
        selected = _selected(labels, selector, "namespaceSelector")
        conditions.append(f"namespaceObject != null && {selected}")
    if subjects := objects_of(filter_.get("subjects")):
        conditions.append(" || ".join(f"({_is_subject(subject)})" for subject in subjects))
    return conditions


def _is_subject(subject: Json) -> str:
    """Returns whether the user is a subject, whose name may be a pattern."""
    kind, name = subject.get("kind"), str(subject.get("name") or "")
    username = "request.userInfo.?username.orValue('')"
    if kind == "User":
        return text_matches(username, name)
    if kind == "ServiceAccount":
        return text_matches(
            username, f"system:serviceaccount:{subject.get('namespace') or ''}:{name}"
        )
    if kind == "Group":
        return f"request.userInfo.?groups.orValue([]).exists(g, {text_matches('g', name)})"
    raise Unwritable(f"subjects: {kind} is not a kind of subject")


def _any_text(value: str, patterns: list[str]) -> str:
    return " || ".join(text_matches(value, pattern) for pattern in patterns)


def _selected(labels: str, selector: Json, where: str) -> str:
    if type(selector) is not dict:
        raise Unwritable(f"{where}: it is not a label selector")
    parts = []
    for key, value in object_of(selector.get("matchLabels")).items():
        if any(mark in str(key) for mark in "*?"):
            raise Unwritable(f"{where}: a pattern of keys")
        name = written(str(key))
        parts.append(f"({name} in {labels} && {text_matches(f'{labels}[{name}]', str(value))})")
    for expression in objects_of(selector.get("matchExpressions")):
        name, operator = written(str(expression.get("key"))), expression.get("operator")
        values = written(_texts(expression, "values"))
        is_there = f"{name} in {labels}"
        if operator == "Exists":
            parts.append(f"({is_there})")
        elif operator == "DoesNotExist":
            parts.append(f"!({is_there})")
        elif operator == "In":
            parts.append(f"({is_there} && {labels}[{name}] in {values})")
        elif operator == "NotIn":
            parts.append(f"!({is_there} && {labels}[{name}] in {values})")
        else:
            raise Unwritable(f"{where}.matchExpressions: operator {operator}")
    return " && ".join(parts) or "true"


# --- operations of a rule
# -------------------------------------------------------------------------


def _preconditions(rule: Json, queries: Queries) -> list[str]:
    given = rule.get("preconditions")
    kept = [
        str(condition.get("expression") or "")
        for condition in objects_of(rule.get("celPreconditions"))
    ]
    return [*kept, *([conditions_of(given, "preconditions", queries)] if given else [])]


def _is_about_deletions(rule: Json) -> bool:
    """Returns whether Kyverno applies a rule to deleted objects.

    Rules in CEL do. Patterns do not, and a deleted object has no lists. Conditions of deny do,
    unless these or the preconditions are about another operation.
    """
    validate = object_of(rule.get("validate"))
    if validate.get("cel"):
        return True
    if type(validate.get("deny")) is not dict:
        return OPERATION in str(validate)
    given = rule.get("preconditions")
    blocks = objects_of(given) if type(given) is list else [object_of(given)]
    for block in blocks:
        alone = [block] if "key" in block else []
        if any(
            _is_never_of_deletions(condition)
            for condition in [*objects_of(block.get("all")), *alone]
        ):
            return False
        some = objects_of(block.get("any"))
        if some and all(_is_never_of_deletions(condition) for condition in some):
            return False
    return True


def _is_never_of_deletions(condition: Json) -> bool:
    if not _OPERATION_VARIABLE.fullmatch(str(condition.get("key"))):
        return False
    operator, value = str(condition.get("operator") or ""), condition.get("value")
    values = value if type(value) is list else [value]
    if any(type(item) is not str or any(mark in item for mark in "*?{-[") for item in values):
        return False
    if operator in {"Equals", "Equal", "NotEquals", "NotEqual"} and type(value) is list:
        return not operator.startswith("Not")  # A text equals no list.
    if operator in {"Equals", "Equal", "In", "AnyIn", "AllIn"}:
        return "DELETE" not in values
    return (
        operator in {"NotEquals", "NotEqual", "NotIn", "AnyNotIn", "AllNotIn"}
        and "DELETE" in values
    )
