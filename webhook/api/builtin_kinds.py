"""Kinds of Kubernetes' own API by group, kinds without webhook calls, and removed versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.api.scope import CLUSTER_SCOPED
from webhook.api.shapes import texts_of

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
"""Kinds by group of an API server, of policy reports, of Gatekeeper and of Waddle."""

BUILTIN_GROUPS: Final = frozenset(group for group, _ in BUILTIN_KINDS)

NEVER_INTERCEPTED: Final = frozenset(
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
"""Kinds for which the API server calls no webhook: its admission configuration (apiserver 1.37,
rules.go, IsExemptAdmissionConfigurationResource). Reviews of users and tokens are exempt from 1.37
on; most webhooks' rules exclude them before."""

_GONE: Final = """
admissionregistration.k8s.io/v1beta1 1.22 mutatingwebhookconfigurations
  validatingwebhookconfigurations
apiextensions.k8s.io/v1beta1 1.22 customresourcedefinitions *
apiregistration.k8s.io/v1beta1 1.22 apiservices *
apps/v1beta1 1.16 controllerrevisions deployments statefulsets *
apps/v1beta2 1.16 controllerrevisions daemonsets deployments replicasets statefulsets *
authentication.k8s.io/v1beta1 1.22 tokenreviews
authorization.k8s.io/v1beta1 1.22 localsubjectaccessreviews selfsubjectaccessreviews
  selfsubjectrulesreviews subjectaccessreviews *
autoscaling/v2beta1 1.25 horizontalpodautoscalers *
autoscaling/v2beta2 1.26 horizontalpodautoscalers *
batch/v1beta1 1.25 cronjobs *
batch/v2alpha1 1.21 cronjobs *
certificates.k8s.io/v1beta1 1.22 certificatesigningrequests
coordination.k8s.io/v1beta1 1.22 leases
discovery.k8s.io/v1beta1 1.25 endpointslices *
events.k8s.io/v1beta1 1.25 events *
extensions/v1beta1 1.16 daemonsets deployments networkpolicies podsecuritypolicies replicasets
extensions/v1beta1 1.22 ingresses *
flowcontrol.apiserver.k8s.io/v1beta1 1.26 flowschemas prioritylevelconfigurations *
flowcontrol.apiserver.k8s.io/v1beta2 1.29 flowschemas prioritylevelconfigurations *
flowcontrol.apiserver.k8s.io/v1beta3 1.32 flowschemas prioritylevelconfigurations *
networking.k8s.io/v1beta1 1.22 ingressclasses ingresses
node.k8s.io/v1beta1 1.25 runtimeclasses *
policy/v1beta1 1.25 poddisruptionbudgets podsecuritypolicies *
rbac.authorization.k8s.io/v1beta1 1.22 clusterrolebindings clusterroles rolebindings roles *
scheduling.k8s.io/v1beta1 1.22 priorityclasses
storage.k8s.io/v1beta1 1.22 csidrivers csinodes storageclasses volumeattachments
storage.k8s.io/v1beta1 1.27 csistoragecapacities
"""
"""A version, the release that no longer serves these resources, and the resources; ``*`` for all of
them."""


def _gone() -> Iterator[tuple[tuple[str, str, str], str]]:
    for line in _GONE.replace("\n  ", " ").strip().splitlines():
        group_version, release, *resources = line.split()
        group, _, version = group_version.partition("/")
        for resource in resources:
            yield (group, version, resource), release
            if group == "extensions":
                yield (group, "*", resource), release


_GONE_SINCE: Final = dict(_gone())


def gone_since(rule: Mapping[str, Any], group: str, resource: str) -> str:
    """Returns the release that stopped serving a rule's resources of a group.

    Empty if some are served. A removed version is certain: API servers newer than this table do not
    serve it either.
    """
    name = resource.partition("/")[0]
    releases = [
        _GONE_SINCE.get((group, version, name), "") for version in texts_of(rule.get("apiVersions"))
    ]
    return max(releases, key=_number) if releases and all(releases) else ""


def _number(release: str) -> int:
    return int(release.partition(".")[2])
