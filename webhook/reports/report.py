"""Reports as documents: built from findings, read back, compared.

The fields are those that viewers need: Policy Reporter 3.9 groups by ``source``,
identifies a result by resource, policy, rule, verdict, category and message, and
falls back to ``scope`` for a result without ``resources``; Headlamp counts by
``summary``, which therefore counts exactly the results that are stored.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.api.fitting import OBJECT_BYTES_MAX, first_of
from webhook.api.gvk import GroupVersionKind, split_group_version
from webhook.reports.finding import SOURCE, VERDICTS, Finding, ReportSubject
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.reports.report_api import ReportApi


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
ACTION: Final = "enforcementAction"
POINT: Final = "enforcementPoint"
STATE: Final = "resourceState"
"""Properties of a result; the latter two of one that an admission found, and no audit can find."""

_PROPERTIES: Final = {
    ACTION: "action",
    POINT: "point",
    STATE: "state",
    "exception": "exception",
    "reason": "reason",
    "expires": "expires",
}
"""The properties of a result, with the finding's fields, in the order of those."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One report that must change: ``document`` is what to write, or what to delete."""

    action: Literal["create", "replace", "delete"]
    document: Json


def report(
    subject: ReportSubject, findings: Sequence[Finding], api: ReportApi, seconds: int
) -> Json | None:
    """The report of one resource, named by its UID and owned by it; None without findings.

    The garbage collector deletes it with the resource. ``seconds`` since 1970 are
    when the findings were made.
    """
    if not findings:
        return None
    reference = reference_to(subject)
    owner = {name: reference[name] for name in ("apiVersion", "kind", "name", "uid")}
    document = frame(api, subject.uid, subject.namespace, owner)
    document["scope"] = reference
    return fill(document, [result(finding, seconds) for finding in findings])


def frame(api: ReportApi, name: str, namespace: str, owner: Json | None) -> Json:
    """A report with nothing in it yet; with its owner it is deleted by the garbage collector."""
    gvk = api.resource(namespace).gvk
    metadata: Json = {"name": name, "labels": {MANAGED_BY: SOURCE}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    if namespace:
        metadata["namespace"] = namespace
    document: Json = {"apiVersion": gvk.group_version, "kind": gvk.kind, "metadata": metadata}
    if api.has_source:
        document["source"] = SOURCE
    return document


def fill(document: Json, results: list[Json]) -> Json:
    """The report with these results, and a summary that counts them.

    Those that etcd would not take with the others are counted, and not shown.
    """
    counts = Counter(item.get("result") for item in results)
    document["summary"] = {verdict: counts[verdict] for verdict in VERDICTS}
    document["results"] = first_of(results, OBJECT_BYTES_MAX)
    return document


def result(finding: Finding, seconds: int) -> Json:
    """One result; fields without a value are left out, as they are in Go's encoding."""
    result: Json = {
        "source": SOURCE,
        "policy": finding.policy,
        "result": finding.verdict,
        "scored": finding.verdict not in ("warn", "skip"),
        "timestamp": {"seconds": seconds, "nanos": 0},
    }
    for name, value in (
        ("rule", finding.rule),
        ("message", finding.message),
        ("severity", finding.severity),
        ("category", finding.category),
    ):
        if value:
            result[name] = value
    properties = {name: getattr(finding, field) for name, field in _PROPERTIES.items()}
    if present := {name: value for name, value in properties.items() if value}:
        result["properties"] = present
    return result


def finding_in(item: Mapping[str, Any]) -> Finding:
    """The finding that a result was made from."""
    properties = item.get("properties") or {}
    return Finding(
        item.get("policy", ""),
        item.get("rule", ""),
        item.get("result", "fail"),
        item.get("message", ""),
        item.get("severity", ""),
        item.get("category", ""),
        *(properties.get(name, "") for name in _PROPERTIES),
    )


def reference_to(subject: ReportSubject) -> Json:
    """An ObjectReference."""
    reference = {
        "apiVersion": subject.gvk.group_version,
        "kind": subject.gvk.kind,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {**reference, "namespace": subject.namespace} if subject.namespace else reference


def subject_in(reference: Mapping[str, Any]) -> ReportSubject:
    """The resource that an ObjectReference names."""
    gvk = GroupVersionKind(
        *split_group_version(reference.get("apiVersion")), reference.get("kind", "")
    )
    return ReportSubject(
        gvk, reference.get("namespace", ""), reference.get("name", ""), reference.get("uid", "")
    )


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether a report is Waddle's: another product may name its reports by UIDs too."""
    return ((document.get("metadata") or {}).get("labels") or {}).get(MANAGED_BY) == SOURCE


def results_in(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The results of a report."""
    return document.get("results") or ()


def of_source(document: Mapping[str, Any]) -> Json:
    """The report with our results alone: a result's own source counts before its report's."""
    source = document.get("source")
    results = [
        item for item in document.get("results") or () if item.get("source", source) == SOURCE
    ]
    return {**document, "results": results}


def difference(current: Json | None, desired: Json | None) -> Difference | None:
    """Return the write that brings the report up to date; None where it is.

    Times do not count: a result that is found again keeps the time when it was
    first found. Nor does the version at which a resource was read, since one
    resource is served at several.
    """
    if desired is None:
        return None if current is None else Difference("delete", current)
    if current is None:
        return Difference("create", desired)
    desired = _with_times(desired, current)
    owned = "ownerReferences" in desired["metadata"]
    if _essence(current, owned=owned) == _essence(desired, owned=owned):
        return None
    metadata, ours = dict(current["metadata"]), desired["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **ours["labels"]}
    if "ownerReferences" in ours:
        metadata["ownerReferences"] = ours["ownerReferences"]
    return Difference("replace", {**desired, "metadata": metadata})


def _with_times(desired: Json, current: Json) -> Json:
    known = {
        _without_time(item): item["timestamp"]
        for item in current.get("results") or ()
        if item.get("timestamp")
    }
    results = [
        {**item, "timestamp": known.get(_without_time(item), item["timestamp"])}
        for item in desired["results"]
    ]
    return {**desired, "results": results}


def _without_time(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """A result but for its time, as something that can be looked up."""
    references: Iterable[Mapping[str, Any]] = item.get("resources") or ()
    return (
        item.get("source"),
        item.get("scored"),
        finding_in(item),
        tuple(_identity(reference) for reference in references),
    )


def _essence(document: Mapping[str, Any], *, owned: bool) -> tuple[Any, ...]:
    """Return the compared part of a report; its owners only where one is wanted."""
    metadata = document["metadata"]
    owners = (metadata.get("ownerReferences") or ()) if owned else ()
    return (
        document.get("summary"),
        [_without_time(item) for item in document.get("results") or ()],
        _identity(document.get("scope") or {}),
        [_identity(owner) for owner in owners],
        (metadata.get("labels") or {}).get(MANAGED_BY),
        document.get("source"),
    )


def _identity(reference: Mapping[str, Any]) -> tuple[Any, ...]:
    group, _ = split_group_version(reference.get("apiVersion"))
    return (group, *(reference.get(name, "") for name in ("kind", "namespace", "name", "uid")))
