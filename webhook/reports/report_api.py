"""The two APIs that reports can be written in: the policy working group's, and its successor."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class ReportApi:
    """A group of report kinds: one for namespaced resources and one for the others.

    ``has_source``: whether a report names its source beside its results.
    """

    name: str
    namespaced: Resource
    cluster: Resource
    has_source: bool = False

    def resource(self, namespace: str) -> Resource:
        """The kind of reports for a namespace; the cluster's where it is empty."""
        return self.namespaced if namespace else self.cluster

    @property
    def resources(self) -> tuple[Resource, Resource]:
        """Both kinds."""
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
"""By the name that ``--report-api`` takes."""
