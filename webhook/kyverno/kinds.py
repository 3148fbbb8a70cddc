"""Kyverno's kinds of policies: the evaluated kinds, and notes on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies import kinds
from webhook.api.gvk import gvk_of, text
from webhook.api.shapes import object_of, objects_of
from webhook.constraint.errors import ConstraintFrameworkError

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP: Final = "policies.kyverno.io"
VERSIONS: Final = kinds.VERSIONS
"""The supported versions, as of the API server's policies; their fields are the same."""

POLICY: Final = "ValidatingPolicy"
NAMESPACED_POLICY: Final = "NamespacedValidatingPolicy"
MUTATING_POLICY: Final = "MutatingPolicy"
NAMESPACED_MUTATING_POLICY: Final = "NamespacedMutatingPolicy"
EXCEPTION_KINDS: Final = frozenset({"PolicyException"})
(EXCEPTION,) = EXCEPTION_KINDS

PLURALS: Final = {
    POLICY: "validatingpolicies",
    NAMESPACED_POLICY: "namespacedvalidatingpolicies",
    MUTATING_POLICY: "mutatingpolicies",
    NAMESPACED_MUTATING_POLICY: "namespacedmutatingpolicies",
    EXCEPTION: "policyexceptions",
}
"""The kinds that are evaluated, by name."""

KNOWN_AS: Final = {EXCEPTION: f"{EXCEPTION}.{GROUP}"}
"""Kinds whose names exist in other groups, too, with their full names as in kubectl."""

AUDITED: Final = "admissions are not decided by it: --kyverno-policies is audit"
"""The note on each policy that applies in audits only."""

VALIDATING_KINDS: Final = frozenset({POLICY, NAMESPACED_POLICY})
MUTATING_KINDS: Final = frozenset({MUTATING_POLICY, NAMESPACED_MUTATING_POLICY})
CLUSTER_KINDS: Final = frozenset({POLICY, MUTATING_POLICY})
"""The kinds that are in no namespace."""

KINDS: Final = VALIDATING_KINDS | MUTATING_KINDS

TEST_FILES: Final = frozenset({"kyverno-test.yaml", "kyverno-test.yml"})
"""The names of Kyverno's test files, which ``waddle verify`` runs."""

CLUSTER_POLICY: Final = "ClusterPolicy"
OLD_POLICY: Final = "Policy"
OLD_GROUP: Final = "kyverno.io"
"""The API group of the policies without CEL."""

_TO_BE_WRITTEN: Final = (
    "waddle migrate kyverno --converted FILE writes its rules as policies in CEL"
)
IMAGE_POLICY: Final = "ImageValidatingPolicy"
NAMESPACED_IMAGE_POLICY: Final = "NamespacedImageValidatingPolicy"
_TO_BE_VERIFIED: Final = (
    "waddle migrate kyverno --converted FILE writes VerificationPolicies and a constraint"
)

NOT_RUN: Final = {
    CLUSTER_POLICY: _TO_BE_WRITTEN,
    OLD_POLICY: _TO_BE_WRITTEN,
    "PolicyException": (
        "waddle migrate kyverno --converted FILE writes it for its policies in CEL; for a "
        "constraint write a PolicyException of waddle.dev"
    ),
    "GeneratingPolicy": "Waddle makes no objects",
    "NamespacedGeneratingPolicy": "Waddle makes no objects",
    "DeletingPolicy": "Waddle deletes no objects",
    "NamespacedDeletingPolicy": "Waddle deletes no objects",
    "CleanupPolicy": "Waddle deletes no objects",
    "ClusterCleanupPolicy": "Waddle deletes no objects",
    IMAGE_POLICY: _TO_BE_VERIFIED,
    NAMESPACED_IMAGE_POLICY: _TO_BE_VERIFIED,
}
"""Kyverno's policies that are not evaluated, with a note on each."""


class InvalidPolicy(ConstraintFrameworkError):
    """A policy of Kyverno is unusable; the text names the part and the reason."""


JSON_MODE: Final = "JSON"
"""The evaluation mode of policies that review documents instead of objects."""


def evaluation_mode(document: Mapping[str, Any]) -> str:
    """Returns the mode of a policy; "" without one."""
    return text(document, "spec", "evaluation", "mode")


def is_evaluated(document: Mapping[str, Any]) -> bool:
    """Returns whether reviews evaluate it: a policy or an exception."""
    gvk = gvk_of(document)
    return gvk.group == GROUP and gvk.kind in PLURALS


def why_not_run(document: Mapping[str, Any]) -> str:
    """Returns why a policy of Kyverno is not evaluated; "" for evaluated ones and other objects."""
    gvk = gvk_of(document)
    if gvk.group not in {GROUP, OLD_GROUP} or is_evaluated(document):
        return ""
    return NOT_RUN.get(gvk.kind, "")


def is_old_mutating(document: Mapping[str, Any]) -> bool:
    """Whether it is a policy without CEL that would change objects."""
    if gvk_of(document).group_kind not in {(OLD_GROUP, CLUSTER_POLICY), (OLD_GROUP, OLD_POLICY)}:
        return False
    rules = objects_of(object_of(document.get("spec")).get("rules"))
    return any(rule.get("mutate") for rule in rules)


def is_kyverno(document: Mapping[str, Any]) -> bool:
    """Whether it is a policy of Kyverno."""
    return is_evaluated(document) or bool(why_not_run(document))
