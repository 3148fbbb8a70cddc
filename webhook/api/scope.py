"""Cluster-scoped kinds, for commands that read files without an API server."""

from __future__ import annotations

from typing import Final

from webhook.api.names import OURS

_KINDS: Final = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
    "openreports.io": "ClusterReport",
    "wgpolicyk8s.io": "ClusterPolicyReport",
    "expansion.gatekeeper.sh": "ExpansionTemplate",
    "externaldata.gatekeeper.sh": "Provider",
    "mutations.gatekeeper.sh": "Assign AssignImage AssignMetadata ModifySet",
    "policy.waddle.dev": "PolicyRevision",
    "syncset.gatekeeper.sh": "SyncSet",
    "templates.gatekeeper.sh": "ConstraintTemplate",
    "waddle.dev": "ClusterPolicyException ConstraintGroup",
}

CLUSTER_SCOPED: Final = frozenset(
    (group, kind) for group, kinds in _KINDS.items() for kind in kinds.split()
)
"""Kinds by group of Kubernetes' own API, of policy reports, of Gatekeeper and of Waddle. A test
checks them against a real API server."""

_OF_AN_INSTALLATION: Final = frozenset(
    f"{name}.gatekeeper.sh" for name in ("config", "connection", "status")
)

_OURS_IN_NAMESPACES: Final = frozenset({"PolicyException"})


def is_cluster_scoped(group: str, kind: str) -> bool:
    """Returns whether a kind is known to be cluster-scoped; False for an unknown custom resource.

    Policies of Gatekeeper and Waddle are cluster-scoped, except PolicyException and the groups of
    an installation's own objects.
    """
    if group == OURS:
        return kind not in _OURS_IN_NAMESPACES
    if group.endswith((".gatekeeper.sh", ".waddle.dev")):
        return group not in _OF_AN_INSTALLATION
    return (group, kind) in CLUSTER_SCOPED
