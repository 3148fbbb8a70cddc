"""Reports as documents: made of findings, read back, compared.

The fields are chosen for viewers. Policy Reporter 3.9 groups by ``source``. It identifies a
result by resource, policy, rule, verdict, category and message. It uses ``scope`` for a result
without ``resources``. Headlamp counts by ``summary``, which therefore counts exactly the stored
results.
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
"""Names of result properties; the latter two mark a result of an admission that no audit can find.
"""

PROPERTIES: Final = {
    ACTION: "action",
    POINT: "point",
    STATE: "state",
    "exception": "exception",
    "reason": "reason",
    "expires": "expires",
}
"""The result properties and the finding's fields."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A report that must change; ``document`` is the one to write or to delete."""

    action: Literal["create", "replace", "delete"]
    document: Json


def report(
    subject: ReportSubject, findings: Sequence[Finding], api: ReportApi, seconds: int
) -> Json | None:
    """Returns the report of one resource, with its UID as name and owner; None without findings.

    The garbage collector deletes it with the resource. ``seconds`` is the time of the findings,
    since 1970.
    """
    if not findings:
        return None
    reference = reference_to(subject)
    owner = {name: reference[name] for name in ("apiVersion", "kind", "name", "uid")}
    document = frame(api, subject.uid, subject.namespace, owner)
    document["scope"] = reference
    return fill(document, [result(finding, seconds) for finding in findings])


def frame(api: ReportApi, name: str, namespace: str, owner: Json | None) -> Json:
    """Returns an empty report; the garbage collector deletes it with its owner."""
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
    """Returns the report with these results, and a summary that counts them.

    Results beyond the size limit of etcd are counted, but left out.
    """
    counts = Counter(item.get("result") for item in results)
    document["summary"] = {verdict: counts[verdict] for verdict in VERDICTS}
    document["results"] = first_of(results, OBJECT_BYTES_MAX)
    return document


def result(finding: Finding, seconds: int) -> Json:
    """Returns one result; empty fields are left out, as in Go's encoding."""
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
    properties = {name: getattr(finding, field) for name, field in PROPERTIES.items()}
    present = {name: value for name, value in properties.items() if value}
    if present or finding.annotations:
        result["properties"] = present | dict(finding.annotations)
    return result


def finding_in(item: Mapping[str, Any]) -> Finding:
    """Returns the finding of a result."""
    properties = item.get("properties") or {}
    fields = {field: properties.get(name, "") for name, field in PROPERTIES.items()}
    return Finding(
        item.get("policy", ""),
        item.get("rule", ""),
        item.get("result", "fail"),
        item.get("message", ""),
        item.get("severity", ""),
        item.get("category", ""),
        annotations=tuple(sorted(item for item in properties.items() if item[0] not in PROPERTIES)),
        **fields,
    )


def reference_to(subject: ReportSubject) -> Json:
    """Returns the ObjectReference of a resource."""
    reference = {
        "apiVersion": subject.gvk.group_version,
        "kind": subject.gvk.kind,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {**reference, "namespace": subject.namespace} if subject.namespace else reference


def subject_in(reference: Mapping[str, Any]) -> ReportSubject:
    """Returns the resource of an ObjectReference."""
    gvk = GroupVersionKind(
        *split_group_version(reference.get("apiVersion")), reference.get("kind", "")
    )
    return ReportSubject(
        gvk, reference.get("namespace", ""), reference.get("name", ""), reference.get("uid", "")
    )


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether Waddle wrote a report; other products may name their reports by UIDs, too."""
    return ((document.get("metadata") or {}).get("labels") or {}).get(MANAGED_BY) == SOURCE


def results_in(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the results of a report."""
    return document.get("results") or ()


def of_source(document: Mapping[str, Any]) -> Json:
    """Returns the report with Waddle's results only; a result's source overrides its report's."""
    source = document.get("source")
    results = [
        item for item in document.get("results") or () if item.get("source", source) == SOURCE
    ]
    return {**document, "results": results}


def difference(current: Json | None, desired: Json | None) -> Difference | None:
    """Returns the write that brings the report up to date; None if it is current.

    Times are not compared: a result that is found again keeps the time of its first finding. API
    versions are not compared either, since one resource is served in several.
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
    """Returns a hashable form of a result without its time."""
    references: Iterable[Mapping[str, Any]] = item.get("resources") or ()
    return (
        item.get("source"),
        item.get("scored"),
        finding_in(item),
        tuple(_identity(reference) for reference in references),
    )


def _essence(document: Mapping[str, Any], *, owned: bool) -> tuple[Any, ...]:
    """Returns the compared parts of a report; owners only if ``owned``."""
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
