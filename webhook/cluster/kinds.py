"""Built-in Kubernetes kinds with their API paths. Policy kinds are declared in ``policy_kinds``."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource

NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")

CONFIG_MAPS: Final = Resource(
    GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True
)
DEPLOYMENTS: Final = Resource(
    GroupVersionKind("apps", "v1", "Deployment"), "deployments", namespaced=True
)
EVENTS: Final = Resource(GroupVersionKind("", "v1", "Event"), "events", namespaced=True)
LEASES: Final = Resource(
    GroupVersionKind("coordination.k8s.io", "v1", "Lease"), "leases", namespaced=True
)
NAMESPACES: Final = Resource(NAMESPACE, "namespaces", namespaced=False)
PODS: Final = Resource(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
SECRETS: Final = Resource(GroupVersionKind("", "v1", "Secret"), "secrets", namespaced=True)

ACCESS_REVIEWS: Final = Resource(
    GroupVersionKind("authorization.k8s.io", "v1", "SubjectAccessReview"),
    "subjectaccessreviews",
    namespaced=False,
)
TOKEN_REVIEWS: Final = Resource(
    GroupVersionKind("authentication.k8s.io", "v1", "TokenReview"),
    "tokenreviews",
    namespaced=False,
)

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
