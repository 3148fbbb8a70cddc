"""The kinds of Kubernetes' own API by group, and those of which no webhook is ever asked."""

from __future__ import annotations

from typing import Final

from webhook.api.scope import CLUSTER_SCOPED

_NAMESPACED: Final = {
    "": (
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodAttachOptions "
        "PodExecOptions PodPortForwardOptions PodProxyOptions PodTemplate ReplicationController "
        "ResourceQuota Secret Service ServiceAccount ServiceProxyOptions NodeProxyOptions"
    ),
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io": "TokenRequest",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "DaemonSet Deployment Ingress NetworkPolicy PodSecurityPolicy ReplicaSet",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "storage.k8s.io": "CSIStorageCapacity",
}

BUILTIN_KINDS: Final = CLUSTER_SCOPED | {
    (group, kind) for group, kinds in _NAMESPACED.items() for kind in kinds.split()
}
"""By group and kind: those that an API server, policy reports, Gatekeeper and Waddle bring."""

BUILTIN_GROUPS: Final = frozenset(group for group, _ in BUILTIN_KINDS)

NEVER_ASKED: Final = frozenset(
    {
        *(("authentication.k8s.io", kind) for kind in ("SelfSubjectReview", "TokenReview")),
        *(
            ("authorization.k8s.io", kind)
            for kind in (
                "LocalSubjectAccessReview",
                "SelfSubjectAccessReview",
                "SelfSubjectRulesReview",
                "SubjectAccessReview",
            )
        ),
        *(
            ("admissionregistration.k8s.io", kind)
            for kind in (
                "MutatingAdmissionPolicy",
                "MutatingAdmissionPolicyBinding",
                "MutatingWebhookConfiguration",
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
                "ValidatingWebhookConfiguration",
            )
        ),
    }
)
"""Of what guards admission itself the API server asks no webhook (apiserver 1.37, rules.go,
IsExemptAdmissionConfigurationResource). Of questions about users it asks none from 1.37 on, and most
webhooks' rules spare them before that."""
