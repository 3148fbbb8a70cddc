"""Subjects and findings that the tests of reports share."""

from typing import Any

from webhook.api.gvk import GroupVersionKind
from webhook.reports.finding import Finding, ReportSubject

POD = GroupVersionKind("", "v1", "Pod")


def subject(
    name: str = "web", namespace: str = "shop", gvk: GroupVersionKind = POD
) -> ReportSubject:
    """A resource whose UID follows from its name."""
    return ReportSubject(gvk, namespace, name, f"uid-of-{name}")


def finding(rule: str = "must-run-as-non-root", **fields: Any) -> Finding:
    """A failed result."""
    values = {
        "policy": "RequireRunAsNonRoot",
        "rule": rule,
        "verdict": "fail",
        "message": f"{rule} is not met",
        "action": "deny",
    }
    return Finding(**(values | fields))
