"""Converts older PolicyExceptions, of kyverno.io, to those of policies in CEL.

Source: Kyverno 1.19: pkg/engine/utils/exceptions.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import Json, object_of, objects_of, texts_of
from webhook.kyverno.conditions import conditions_of
from webhook.kyverno.conversion import alternatives, converted, rule_policy_name
from webhook.kyverno.kinds import CLUSTER_POLICY, EXCEPTION, GROUP, OLD_GROUP, OLD_POLICY
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.queries import Queries

_OLD_POLICIES: Final = frozenset({CLUSTER_POLICY, OLD_POLICY})
_GENERATED: Final = {
    "": "request.kind.kind == 'Pod'",
    "autogen-": "!(request.kind.kind in ['Pod', 'CronJob'])",
    "autogen-cronjob-": "request.kind.kind == 'CronJob'",
}
"""Rules that Kyverno makes of one about Pods, by the prefixes of their names: what each is about."""


def is_old_exception(document: Json) -> bool:
    """Whether it is a PolicyException of kyverno.io."""
    gvk = gvk_of(document)
    return (gvk.group, gvk.kind) == (OLD_GROUP, EXCEPTION)


def excused(document: Json, rules: Iterable[str]) -> list[str]:
    """Returns those of rules, as ``POLICY/RULE``, whose policy an older exception names."""
    named = objects_of(object_of(document.get("spec")).get("exceptions"))
    names = {str(policy.get("policyName")).rpartition("/")[2] for policy in named}
    return [rule for rule in rules if "/" in rule and rule.partition("/")[0] in names]


def converted_exceptions(
    document: Json, policies: Iterable[Json], notes: list[str] | None = None
) -> list[Json]:
    """Returns the PolicyExceptions of policies in CEL that an older one becomes.

    ``policies`` are those of the files, and ``notes`` get what has another effect. Raises :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    spec = object_of(document.get("spec"))
    if spec.get("podSecurity"):
        raise Unwritable("spec.podSecurity: exclude the controls in the policy")
    notes = [] if notes is None else notes
    if spec.get("background") is False:
        notes.append("spec.background: the exception excuses in audits and reports, too")
    conditions = [
        " || ".join(f"({held})" for held in _matched(object_of(spec.get("match")), notes))
    ]
    if given := spec.get("conditions"):
        queries = Queries(is_of_pods=False, is_deleted=True)
        # Kyverno leaves out an exception whose conditions end in an error.
        conditions.append(conditions_of(given, "conditions", queries, skips_missing=True))
    references: dict[str, list[Json]] = defaultdict(list)
    known = {
        _full_name(policy): policy for policy in policies if policy.get("kind") in _OLD_POLICIES
    }
    for at, entry in enumerate(objects_of(spec.get("exceptions"))):
        name = str(entry.get("policyName") or "")
        if name not in known:
            notes.append(
                f"spec.exceptions[{at}].policyName: {name} is not among the files: give it with -f"
            )
            continue
        for kinds, reference in _excused(known[name], texts_of(entry.get("ruleNames")), notes):
            references[kinds].append(reference)
    if not references:
        why = "it names no rule that is converted"
        raise Unwritable("; ".join([f"spec.exceptions: {why}", *notes]))
    return [
        _exception(document, at, named, [*filter(None, [kinds]), *conditions])
        for at, (kinds, named) in enumerate(references.items())
    ]


def _full_name(policy: Json) -> str:
    namespace = namespace_of(policy) if policy.get("kind") == OLD_POLICY else ""
    return f"{namespace}/{name_of(policy)}" if namespace else name_of(policy)


def _matched(match: Json, notes: list[str]) -> list[str]:
    joint = next((key for key in ("any", "all") if objects_of(match.get(key))), "")
    if not joint:
        raise Unwritable("spec.match: it has neither any nor all, and matches nothing")
    filters = []
    for filter_ in objects_of(match[joint]):
        resources = {**object_of(filter_.get("resources"))}
        if resources.pop("operations", None):
            notes.append("spec.match: operations have no effect in an exception, as in Kyverno")
        filters.append({**filter_, "resources": resources})
    return alternatives({joint: filters}, "match of an exception")


def _excused(policy: Json, patterns: list[str], notes: list[str]) -> Iterable[tuple[str, Json]]:
    """Yields the converted policy of each excused rule, with the condition on kinds."""
    for name, becomes in converted(policy):
        named = {
            prefix
            for prefix in _GENERATED
            if any(fnmatchcase(f"{prefix}{name}", pattern) for pattern in patterns)
        }
        if not named:
            continue
        if isinstance(becomes, Unwritable):
            notes.append(f"rule {name} of {name_of(policy)} is not converted: except it by hand")
            continue
        kinds = " || ".join(text for prefix, text in _GENERATED.items() if prefix in named)
        if len(named) == len(_GENERATED) or not _has_generated(becomes):
            kinds = ""
        if kinds or "" in named:
            yield kinds, {"kind": becomes["kind"], "name": rule_policy_name(policy, name)}


def _has_generated(policy: Json) -> bool:
    """Whether a converted policy is about Pods and their controllers."""
    spec = policy["spec"]
    rules = objects_of(spec["matchConstraints"]["resourceRules"])
    controllers = object_of(object_of(spec.get("autogen")).get("podControllers"))
    return controllers.get("controllers") != [] and all(
        rule["resources"] == ["pods"] for rule in rules
    )


def _exception(document: Json, at: int, named: list[Json], conditions: list[str]) -> Json:
    """Returns one exception; further ones of a document have a number in their names."""
    name = name_of(document) if at == 0 else f"{name_of(document)}-{at + 1}"
    metadata: Json = {"name": name}
    if namespace := namespace_of(document):
        metadata["namespace"] = namespace
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": EXCEPTION,
        "metadata": metadata,
        "spec": {
            "policyRefs": named,
            "matchConditions": [
                {"name": f"match-{number}", "expression": condition}
                for number, condition in enumerate(conditions)
            ],
        },
    }
