"""Kubernetes' own kinds as they are served, each said once; policies' kinds are their owners' to say."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource

NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")

EVENTS: Final = Resource(GroupVersionKind("", "v1", "Event"), "events", namespaced=True)
LEASES: Final = Resource(
    GroupVersionKind("coordination.k8s.io", "v1", "Lease"), "leases", namespaced=True
)
NAMESPACES: Final = Resource(NAMESPACE, "namespaces", namespaced=False)
PODS: Final = Resource(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
SECRETS: Final = Resource(GroupVersionKind("", "v1", "Secret"), "secrets", namespaced=True)

CRDS: Final = Resource(
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    "customresourcedefinitions",
    namespaced=False,
)
MUTATING_CONFIGURATIONS: Final = Resource(
    GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    "mutatingwebhookconfigurations",
    namespaced=False,
)
WEBHOOK_CONFIGURATIONS: Final = Resource(
    GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    "validatingwebhookconfigurations",
    namespaced=False,
)

POLICIES: Final = Resource(
    GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    "validatingadmissionpolicies",
    namespaced=False,
)
POLICY_BINDINGS: Final = Resource(
    GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    "validatingadmissionpolicybindings",
    namespaced=False,
)
