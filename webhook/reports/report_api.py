"""The two report APIs: that of the policy working group, and its successor."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class ReportApi:
    """The report kinds of an API group: for namespaced resources and for cluster-wide ones.

    ``has_source``: whether a report has a field of its source besides its results.
    """

    name: str
    namespaced: Resource
    cluster: Resource
    has_source: bool = False

    def resource(self, namespace: str) -> Resource:
        """Returns the report kind for a namespace; the cluster-wide kind if empty."""
        return self.namespaced if namespace else self.cluster

    @property
    def resources(self) -> tuple[Resource, Resource]:
        """Returns both kinds."""
        return self.namespaced, self.cluster


def _kind(group: str, version: str, kind: str, *, namespaced: bool) -> Resource:
    gvk = GroupVersionKind(group, version, kind)
    return Resource(gvk, f"{kind.lower()}s", namespaced=namespaced)


WGPOLICY: Final = ReportApi(
    "wgpolicyk8s",
    _kind("wgpolicyk8s.io", "v1alpha2", "PolicyReport", namespaced=True),
    _kind("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport", namespaced=False),
)

OPENREPORTS: Final = ReportApi(
    "openreports",
    _kind("openreports.io", "v1alpha1", "Report", namespaced=True),
    _kind("openreports.io", "v1alpha1", "ClusterReport", namespaced=False),
    has_source=True,
)

APIS: Final = {api.name: api for api in (WGPOLICY, OPENREPORTS)}
"""The report APIs by their names in ``--report-api``."""
