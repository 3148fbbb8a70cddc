"""The scope of all generated policies: exactly the requests that the webhook gets.

It comes from the webhook's own configuration, from Config, and from the flags that exempt
namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from webhook.api.shapes import Json, object_of, objects_of
from webhook.constraint.enforcement import WEBHOOK
from webhook.values import dataclass

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")

_EVERYTHING: Final[Json] = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["*"],
    "scope": "*",
}
"""The rule of a policy without a followed webhook configuration."""


_FAILS_CLOSED: Final = "/v1/admit/fail"
"""The path of an entry for further constraints; only its rules may contain their kinds."""


class NoOperation(Exception):
    """The webhook gets no requests for the operations of a template."""


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The requests that policies apply to.

    ``conditions`` are the webhook's own match conditions.
    """

    rules: tuple[Mapping[str, Any], ...] = (_EVERYTHING,)
    synced: bool = False
    namespace_selector: Mapping[str, Any] = field(default_factory=dict)
    object_selector: Mapping[str, Any] = field(default_factory=dict)
    match_policy: str = "Equivalent"
    conditions: tuple[Mapping[str, Any], ...] = ()
    excluded: tuple[str, ...] = ()
    exempted: tuple[str, ...] = ()

    def match_constraints(self, operations: Sequence[str]) -> tuple[Json, str]:
        """Returns a policy's ``matchConstraints`` for a template's operations, and a warning.

        Raises :class:`NoOperation`.
        """
        expanded = _expanded(operations)
        rules = []
        sent: set[str] = set()
        for rule in self.rules:
            of_rule = list(rule.get("operations") or ())
            if operations and self.synced:
                offered = _expanded(of_rule)
                of_rule = [
                    operation
                    for operation in OPERATIONS
                    if operation in offered and operation in expanded
                ]
                sent.update(of_rule)
                if not of_rule:
                    continue  # the rule is for other kinds
            rules.append(
                {
                    "apiGroups": list(rule.get("apiGroups") or ()),
                    "apiVersions": list(rule.get("apiVersions") or ()),
                    "operations": of_rule,
                    "resources": list(rule.get("resources") or ()),
                    "scope": rule.get("scope") or "*",
                }
            )
        warning = ""
        if operations and self.synced:
            if not rules:
                raise NoOperation("no matching operations between webhook and constraint template")
            if sent != expanded:
                warning = "operations mismatch between webhook and constraint template"
        constraints: Json = {
            "matchPolicy": self.match_policy,
            "namespaceSelector": dict(self.namespace_selector),
            "objectSelector": dict(self.object_selector),
            "resourceRules": rules,
        }
        return constraints, warning


def _expanded(operations: Sequence[str]) -> set[str]:
    return set(OPERATIONS) if "*" in operations else set(operations)


def scope_of(
    configuration: Mapping[str, Any] | None,
    *,
    excluded: Sequence[str] = (),
    exempted: Sequence[str] = (),
) -> PolicyScope:
    """Returns the scope of a ValidatingWebhookConfiguration, or the default without one."""
    webhooks = objects_of((configuration or {}).get("webhooks"))
    webhook = next((candidate for candidate in webhooks if candidate.get("name") == WEBHOOK), None)
    if webhook is None:
        return PolicyScope(excluded=tuple(excluded), exempted=tuple(exempted))
    closed = (candidate for candidate in webhooks if _called(candidate).endswith(_FAILS_CLOSED))
    return PolicyScope(
        tuple(rule for entry in (webhook, *closed) for rule in objects_of(entry.get("rules"))),
        synced=True,
        namespace_selector=webhook.get("namespaceSelector") or {},
        object_selector=webhook.get("objectSelector") or {},
        match_policy=webhook.get("matchPolicy") or "Equivalent",
        conditions=tuple(objects_of(webhook.get("matchConditions"))),
        excluded=tuple(excluded),
        exempted=tuple(exempted),
    )


def _called(webhook: Mapping[str, Any]) -> str:
    """Returns the URL or path of a webhook."""
    client = object_of(webhook.get("clientConfig"))
    return str(client.get("url") or object_of(client.get("service")).get("path") or "")


def exempted_patterns(
    names: Sequence[str], prefixes: Sequence[str], suffixes: Sequence[str]
) -> tuple[str, ...]:
    """Returns the flags that exempt namespaces as patterns."""
    return (
        *names,
        *(f"{prefix}*" for prefix in prefixes),
        *(f"*{suffix}" for suffix in suffixes),
    )
