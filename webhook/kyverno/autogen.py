"""Rewrites a policy about Pods only for pod controllers, as Kyverno does.

The expressions are rewritten as text, as in Kyverno: ``object.spec`` becomes the template's spec,
and ``object.metadata`` the template's metadata, except the namespace, which templates seldom have
(pkg/cel/autogen of Kyverno 1.18).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.patterns import written
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.shapes import Json


@dataclass(frozen=True, slots=True)
class Controller:
    """A kind that creates Pods, and the path of its template."""

    group: str
    kind: str
    template: str


_TEMPLATE: Final = "spec.template"

CONTROLLERS: Final = {
    "daemonsets": Controller("apps", "DaemonSet", _TEMPLATE),
    "deployments": Controller("apps", "Deployment", _TEMPLATE),
    "replicasets": Controller("apps", "ReplicaSet", _TEMPLATE),
    "statefulsets": Controller("apps", "StatefulSet", _TEMPLATE),
    "jobs": Controller("batch", "Job", _TEMPLATE),
    "cronjobs": Controller("batch", "CronJob", "spec.jobTemplate.spec.template"),
}
"""By resource; all of version v1."""

_NOT_THE_TEMPLATES: Final = r"(?!\.namespace(?![A-Za-z0-9_]))"


def generated_specs(spec: Json) -> list[Json]:
    """Returns the specs for pod controllers, by resource; none if the policy is not about Pods.

    A spec with mutations is rewritten as in MutatingPolicies.
    """
    if not _is_about_pods(object_of(spec.get("matchConstraints"))):
        return []
    named = _named(spec)
    chosen = (
        CONTROLLERS
        if named is None
        else [controller for controller in CONTROLLERS if controller in texts_of(named)]
    )
    by_template: dict[str, list[str]] = {}
    for name in chosen:
        by_template.setdefault(CONTROLLERS[name].template, []).append(name)
    operations = spec["matchConstraints"]["resourceRules"][0].get("operations") or ["*"]
    return [
        _generated(spec, template, names, operations) for template, names in by_template.items()
    ]


def autogen_warnings(spec: Json) -> tuple[str, ...]:
    """Returns a warning for each named controller for which nothing is generated.

    Raises :class:`InvalidPolicy` for names of another shape.
    """
    field = "spec.autogen.podControllers.controllers"
    named = _named(spec) or []
    if type(named) is not list or any(type(name) is not str for name in named):
        raise InvalidPolicy(f"{field} is not a list of strings")
    if named and not _is_about_pods(object_of(spec.get("matchConstraints"))):
        why = (
            'one rule for pods of the group "" and v1, without excludeResourceRules, resourceNames'
        )
        return (f"{field}: nothing is generated: that needs {why} and objectSelector",)
    return tuple(
        f"{field}: nothing is generated for {written(name)}: name some of {', '.join(CONTROLLERS)}"
        for name in named
        if name not in CONTROLLERS
    )


def template_advice(resource: str, document: Any) -> str:
    """Returns what to do about a controller whose template has no Pod's spec; "" for others."""
    controller = CONTROLLERS.get(resource)
    if controller is None:
        return ""
    part = object_of(document)
    for name in (*controller.template.split("."), "spec"):
        if type(part.get(name)) is not dict:
            return (
                f"; the policy is about Pods: write the spec of the {controller.kind}'s Pods at "
                f"{controller.template}.spec"
            )
        part = part[name]
    return ""


def _named(spec: Json) -> Any:
    """Returns the named controllers; None for all."""
    return object_of(object_of(spec.get("autogen")).get("podControllers")).get("controllers")


def _is_about_pods(matched: Json) -> bool:
    """Returns whether the spec matches only Pods, and all of them."""
    rules = objects_of(matched.get("resourceRules"))
    selector = object_of(matched.get("objectSelector"))
    if any(selector.get(name) for name in ("matchLabels", "matchExpressions")):
        return False
    if matched.get("excludeResourceRules") or len(rules) != 1 or rules[0].get("resourceNames"):
        return False
    return all(
        rules[0].get(name) == values
        for name, values in (("apiGroups", [""]), ("apiVersions", ["v1"]), ("resources", ["pods"]))
    )


def _generated(spec: Json, template: str, resources: list[str], operations: list[str]) -> Json:
    by_group: dict[str, list[str]] = {}
    for name in resources:
        by_group.setdefault(CONTROLLERS[name].group, []).append(name)
    rewritten: Json = (
        _mutating(spec, template) if "mutations" in spec else _rewritten(spec, template)
    )
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "resources": names, "operations": operations}
        for group, names in sorted(by_group.items())
    ]
    selector = spec["matchConstraints"].get("namespaceSelector")
    matched = {"resourceRules": rules} | ({"namespaceSelector": selector} if selector else {})
    return {**rewritten, "matchConstraints": matched}


def _rewritten(value: Any, template: str) -> Any:
    """Returns a value with its texts rewritten from Pods to templates."""
    if isinstance(value, dict):
        return {name: _rewritten(part, template) for name, part in value.items()}
    if isinstance(value, list):
        return [_rewritten(part, template) for part in value]
    if not isinstance(value, str):
        return value
    # One after the other, as in Kyverno: a later replacement does not see the output of an earlier
    # one.
    for part in ("spec", "metadata"):
        value = re.sub(
            rf"\b(object|oldObject)\.{part}{_NOT_THE_TEMPLATES}", rf"\1.{template}.{part}", value
        )
    return value


_PARTS: Final = re.compile(
    r"\b(object|oldObject|Object)\.(spec|metadata\.labels|metadata\.annotations)"
)
_ROOT: Final = re.compile(r"\s*Object\s*\{")


def _mutating(spec: Json, template: str) -> Json:
    """Returns a MutatingPolicy's spec with conditions and apply configurations about templates.

    Variables and JSON Patches are unchanged (pkg/cel/policies/mpol/autogen).
    """
    conditions = [
        {**condition, "expression": _of_template(condition.get("expression"), template)}
        for condition in spec.get("matchConditions") or ()
    ]
    mutations = []
    for mutation in spec.get("mutations") or ():
        converted, applied = dict(mutation), object_of(mutation.get("applyConfiguration"))
        if applied:
            expression = _of_template(applied.get("expression"), template)
            converted["applyConfiguration"] = {**applied, "expression": expression}
        mutations.append(converted)
    return {**spec, "matchConditions": conditions, "mutations": mutations}


def _of_template(expression: Any, template: str) -> Any:
    """Returns an expression about templates; its ``Object{…}`` is placed in a template."""
    if type(expression) is not str:
        return expression
    rewritten = _PARTS.sub(rf"\1.{template}.\2", expression)
    root = _ROOT.match(rewritten)
    if root is None:
        return rewritten
    depth = 1
    for at in range(root.end(), len(rewritten)):
        depth += {"{": 1, "}": -1}.get(rewritten[at], 0)
        if not depth:
            inner, rest = rewritten[root.end() : at], rewritten[at + 1 :]
            names = template.split(".")
            paths = (".".join(["Object", *names[:number]]) for number in range(1, len(names) + 1))
            opened = "".join(f"{name}: {path}{{" for name, path in zip(names, paths, strict=True))
            return f"Object{{{opened}{inner}{'}' * (len(names) + 1)}{rest}"
    return rewritten
