"""Rules of Kyverno's ClusterPolicies as ValidatingPolicies in CEL: those that can be written so.

A rule with ``validate.cel``, a pattern, or conditions of ``deny`` becomes one policy; what cannot be
written is named. Read in Kyverno 1.18: pkg/engine/validate, pkg/engine/anchor, pkg/engine/pattern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import name_of, plural_of
from webhook.api.shapes import object_of, objects_of
from webhook.kyverno.kinds import GROUP, POLICY
from webhook.kyverno.patterns import Unwritable, pattern_of, text_matches, written
from webhook.kyverno.pod_security import VARIABLES, security_validations
from webhook.kyverno.templates import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.api.shapes import Json

_OPERATIONS: Final = ["CREATE", "UPDATE"]
_DELETION: Final = "request.operation"
"""Of a rule that reads it, Kyverno is asked about deletions, too."""

AUTOGEN: Final = "pod-policies.kyverno.io/autogen-controllers"
_RESOURCE: Final = frozenset(
    ("kinds", "names", "name", "namespaces", "operations", "selector", "namespaceSelector")
)
_EITHER: Final = "(object != null ? object : oldObject)"
"""The object, or the one that is deleted; autogen leaves it alone, as Kyverno leaves selectors."""

_VERSIONS: Final = {"autoscaling": "v2", "flowcontrol.apiserver.k8s.io": "v1"}
"""Of builtin groups; of others v1."""


def converted(document: Json) -> Iterator[tuple[str, Json | Unwritable]]:
    """Each rule's name, with the policy that it becomes or why it becomes none."""
    spec = object_of(document.get("spec"))
    for at, rule in enumerate(objects_of(spec.get("rules"))):
        name = str(rule.get("name") or f"[{at}]")
        try:
            yield name, _policy(document, spec, rule, name)
        except Unwritable as why:
            yield name, why


def _policy(document: Json, spec: Json, rule: Json, name: str) -> Json:
    if not rule.get("validate"):
        raise Unwritable("it validates nothing")
    if rule.get("context"):
        raise Unwritable("context: it asks for more than the object")
    validate = object_of(rule.get("validate"))
    made: Json = {"validationActions": [_action(spec, validate)]}
    made["matchConstraints"], conditions = _matched(rule)
    conditions += _preconditions(rule)
    more, validations = _validations(validate)
    made["matchConditions"] = [
        {"name": f"rule-{at}", "expression": one} for at, one in enumerate([*conditions, *more])
    ]
    if not made["matchConditions"]:
        del made["matchConditions"]
    variables = object_of(validate.get("cel")).get("variables")
    if validate.get("podSecurity"):
        variables = VARIABLES
    if variables:
        made["variables"] = variables
    made["validations"] = validations
    if spec.get("failurePolicy"):
        made["failurePolicy"] = spec["failurePolicy"]
    made |= _autogen(document)
    if spec.get("background") is False:
        made["evaluation"] = {"background": {"enabled": False}}
    if spec.get("admission") is False:
        made.setdefault("evaluation", {})["admission"] = {"enabled": False}
    metadata: Json = {"name": rule_policy_name(document, name)}
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    if kept := {key: value for key, value in annotations.items() if not key.startswith("pod-")}:
        metadata["annotations"] = kept
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": POLICY,
        "metadata": metadata,
        "spec": made,
    }


def rule_policy_name(document: Json, rule: str) -> str:
    """The name of what a rule becomes: the policy's, with the rule's where it has several."""
    own = name_of(document)
    if len(objects_of(object_of(document.get("spec")).get("rules"))) == 1:
        return own
    return f"{own}-{re.sub(r'[^a-z0-9]+', '-', rule.lower()).strip('-')}"


def _action(spec: Json, validate: Json) -> str:
    action = str(validate.get("failureAction") or spec.get("validationFailureAction") or "Audit")
    return "Deny" if action.lower() == "enforce" else "Audit"


def _autogen(document: Json) -> Json:
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    named = annotations.get(AUTOGEN)
    if named is None:
        return {}
    names = [] if named == "none" else [plural_of(one.strip()) for one in str(named).split(",")]
    return {"autogen": {"podControllers": {"controllers": names}}}


# --- what a rule is about -------------------------------------------------------------------------


def _matched(rule: Json) -> tuple[Json, list[str]]:
    """The matchConstraints, and what they cannot say as conditions."""
    filters = filters_of(object_of(rule.get("match")), "match")
    rules: list[Json] = []
    alternatives, kinds = [], []
    for one in filters:
        resources = resources_of(one, "match")
        default = (
            [*_OPERATIONS, "DELETE"] if _DELETION in str(rule.get("validate")) else _OPERATIONS
        )
        rules += _rules(resources, default)
        kinds.append(tuple(map(str, resources.get("kinds") or ())))
        alternatives.append(" && ".join(f"({each})" for each in _conditions(resources)))
    matched: Json = {"resourceRules": rules}
    conditions: list[str] = []
    if any(alternatives):
        if len(filters) > 1:
            alternatives = [
                " && ".join(filter(None, [_is_kind(of), one]))
                for of, one in zip(kinds, alternatives, strict=True)
            ]
        conditions.append(" || ".join(f"({one})" for one in alternatives))
    excluded = filters_of(object_of(rule.get("exclude")), "exclude") if rule.get("exclude") else []
    for one in excluded:
        resources = resources_of(one, "exclude")
        parts = _conditions(resources)
        if resources.get("kinds"):
            parts.insert(0, _is_kind(tuple(map(str, resources["kinds"]))))
        if resources.get("operations"):
            parts.append(f"request.operation in {written(list(resources['operations']))}")
        if not parts:
            raise Unwritable("exclude: it excludes everything")
        conditions.append(f"!({' && '.join(f'({part})' for part in parts)})")
    return matched, conditions


def filters_of(block: Json, where: str) -> list[Json]:
    """The filters of a match or exclude, any of which may hold; raises :class:`Unwritable`."""
    any_of, all_of = objects_of(block.get("any")), objects_of(block.get("all"))
    if any_of:
        return any_of
    if len(all_of) > 1:
        raise Unwritable(f"{where}.all of several filters")
    if all_of:
        return all_of
    if block.get("resources"):
        return [block]
    raise Unwritable(f"{where}: it names no resources")


def resources_of(one: Json, where: str) -> Json:
    """What a filter says of resources; raises :class:`Unwritable`."""
    for field in ("subjects", "roles", "clusterRoles"):
        if one.get(field):
            raise Unwritable(f"{where}.{field}: who asks is no part of a match")
    resources = object_of(one.get("resources"))
    if more := sorted(resources.keys() - _RESOURCE):
        raise Unwritable(f"{where}.resources.{more[0]}")
    if where == "match" and not resources.get("kinds"):
        raise Unwritable("match.resources without kinds")
    return resources


def _rules(resources: Json, default: list[str]) -> Iterator[Json]:
    operations = list(resources.get("operations") or default)
    for kind in resources["kinds"]:
        group, version, name = kind_of(str(kind))
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": [*operations],
            "resources": [plural_of(name)],
        }


def kind_of(text: str) -> tuple[str, str, str]:
    """Group, version and kind of ``Kind``, ``version/Kind`` or ``group/version/Kind``."""
    parts = text.split("/")
    name = parts[-1]
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) or len(parts) > 3:
        raise Unwritable(f"match.resources.kinds: {text}: no pattern, and no subresource")
    if len(parts) == 3:
        return parts[0], parts[1], name
    groups = sorted(group for group, kind in BUILTIN_KINDS if kind == name)
    groups = [one for one in groups if one in {"", "apps", "batch", "policy"} or "k8s.io" in one]
    if name == "Event":
        groups = [""]
    if name == "HorizontalPodAutoscaler":
        groups = ["autoscaling"]
    if len(groups) != 1:
        raise Unwritable(f"match.resources.kinds: {text}: write group/version/Kind")
    version = parts[0] if len(parts) == 2 else _VERSIONS.get(groups[0], "v1")
    return groups[0], version, name


def _is_kind(kinds: tuple[str, ...]) -> str:
    names = [kind_of(one)[2] for one in kinds]
    return f"request.kind.kind in {written(names)}" if names else ""


def _conditions(resources: Json) -> list[str]:
    """What is asked of an object beside its kind."""
    asked = []
    names = [*(resources.get("names") or ()), *filter(None, [resources.get("name")])]
    if names:
        asked.append(_any_text("request.name", names))
    if namespaces := resources.get("namespaces"):
        place = "(request.kind.kind == 'Namespace' ? request.name : request.?namespace.orValue(''))"
        asked.append(_any_text(place, namespaces))
    if selector := resources.get("selector"):
        labels = f"{_EITHER}.metadata.?labels.orValue({{}})"
        asked.append(_selected(labels, selector, "selector"))
    if selector := resources.get("namespaceSelector"):
        labels = "namespaceObject.metadata.?labels.orValue({})"
        selected = _selected(labels, selector, "namespaceSelector")
        asked.append(f"namespaceObject != null && {selected}")
    return asked


def _any_text(value: str, patterns: list[Any]) -> str:
    return " || ".join(text_matches(value, str(one)) for one in patterns)


def _selected(labels: str, selector: Json, where: str) -> str:
    parts = []
    for key, value in object_of(selector.get("matchLabels")).items():
        if any(mark in str(key) for mark in "*?"):
            raise Unwritable(f"{where}: a pattern of keys")
        name = written(str(key))
        parts.append(f"({name} in {labels} && {text_matches(f'{labels}[{name}]', str(value))})")
    for one in objects_of(selector.get("matchExpressions")):
        name, operator = written(str(one.get("key"))), one.get("operator")
        values = written([str(value) for value in one.get("values") or ()])
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


# --- what a rule asks -----------------------------------------------------------------------------


def _preconditions(rule: Json) -> list[str]:
    given = rule.get("preconditions")
    kept = [str(one.get("expression") or "") for one in objects_of(rule.get("celPreconditions"))]
    return [*kept, *([_all_conditions(given, "preconditions")] if given else [])]


def _validations(validate: Json) -> tuple[list[str], list[Json]]:
    """Conditions without which the rule is skipped, and what must hold."""
    message = validate.get("message")
    if type(message) is str and "{{" in message:
        raise Unwritable("validate.message has variables")
    told = {"message": message.strip()} if type(message) is str else {}
    if cel := object_of(validate.get("cel")):
        if cel.get("paramKind") or cel.get("paramRef"):
            raise Unwritable("validate.cel.paramKind")
        return [], [{**one, **({} if one.get("message") else told)} for one in cel["expressions"]]
    if pattern := object_of(validate.get("pattern")):
        held = pattern_of(pattern)
        return held.conditions, [{"expression": held.expression, **told}]
    if patterns := objects_of(validate.get("anyPattern")):
        every = [pattern_of(one) for one in patterns]
        if any(one.conditions for one in every):
            raise Unwritable("validate.anyPattern with conditional anchors")
        text = " || ".join(f"({one.expression})" for one in every)
        return [], [{"expression": text, **told}]
    if deny := object_of(validate.get("deny")):
        conditions = deny.get("conditions")
        text = f"!({_all_conditions(conditions, 'deny.conditions')})" if conditions else "false"
        return [], [{"expression": text, **told}]
    if security := object_of(validate.get("podSecurity")):
        return [], security_validations(security, told.get("message", ""))
    field = next(iter(validate.keys() - {"message", "failureAction"}), "")
    raise Unwritable(f"validate.{field}")


def _all_conditions(given: Any, where: str) -> str:
    """Conditions in ``any`` and ``all``; a bare list is of ``all``."""
    block = given if type(given) is dict else {"all": given}
    any_of = [condition_of(one, where) for one in objects_of(block.get("any"))]
    all_of = [condition_of(one, where) for one in objects_of(block.get("all"))]
    parts = [f"({one})" for one in all_of]
    if any_of:
        parts.append(f"({' || '.join(f'({one})' for one in any_of)})")
    return " && ".join(parts) or "true"
