"""Reviews objects of workloads that an audit cannot list: their Scale, Jobs and Pods to come.

``kubectl scale`` and autoscalers send a Scale, which exists in requests alone. A CronJob has no Job
between two runs, and a Deployment of no replicas has no Pod.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind, gvk_of, labels_of, name_of, namespace_of
from webhook.api.shapes import object_of, objects_of
from webhook.audit.kinds import is_matchable
from webhook.audit.sink import Audited, identity_of
from webhook.cli.cluster_access import REVIEW_SECONDS
from webhook.cli.cluster_policies import list_kind
from webhook.cluster.errors import ApiError
from webhook.constraint import enforcement
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedObject
from webhook.exceptions.baseline import selector_labels
from webhook.exceptions.exception import GENERATED_BEGINNING_MAX
from webhook.review.loops import review
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.api.shapes import Json
    from webhook.audit.sink import AuditSink
    from webhook.cluster.client import ClusterClient
    from webhook.review.policy_set import PolicySet

SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_POD: Final = GroupVersionKind("", "v1", "Pod")
_JOB: Final = GroupVersionKind("batch", "v1", "Job")
_CRON_JOB: Final = GroupVersionKind("batch", "v1", "CronJob")
_DAEMON_SET: Final = GroupVersionKind("apps", "v1", "DaemonSet")

_SCALED: Final = (
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("apps", "v1", "ReplicaSet"),
    GroupVersionKind("apps", "v1", "StatefulSet"),
    GroupVersionKind("", "v1", "ReplicationController"),
)
"""The kinds whose Scale the webhook reviews."""

UNLISTED: Final[Mapping[GroupVersionKind, tuple[GroupVersionKind, ...]]] = {
    **dict.fromkeys(_SCALED, (SCALE, _POD)),
    _DAEMON_SET: (_POD,),
    _JOB: (_POD,),
    _CRON_JOB: (_JOB, _POD),
}
"""The kinds of workloads, with the kinds of what they send or make."""


async def review_unlisted(
    client: ClusterClient, policies: PolicySet, namespace: str, sink: AuditSink
) -> list[str]:
    """Gives a sink each such object, with its workload as owner; returns what could not be read.

    ``namespace`` is empty for all. Nothing is read if no policy matches such an object.
    """
    unread = []
    for gvk, kinds in UNLISTED.items():
        matchable = {
            kind for kind in kinds if is_matchable(policies.snapshot, policies.expansion, kind)
        }
        if not matchable:
            continue
        try:
            workloads = await list_kind(client, gvk)
        except ApiError as error:
            if not error.is_forbidden:
                raise
            unread += [
                f"not audited: the {kind.kind} of each {gvk.kind}: no right to list {gvk}"
                for kind in sorted(matchable)
            ]
            continue
        for workload in workloads:
            if namespace in ("", namespace_of(workload)):
                for obj in _objects(workload):
                    if gvk_of(obj) in matchable:
                        unread += await _review(policies, workload, obj, sink)
    return unread


async def _review(
    policies: PolicySet, workload: Mapping[str, Any], obj: Json, sink: AuditSink
) -> list[str]:
    """Reviews an object of a workload; returns what could not be decided."""
    subject = Subject(
        AugmentedObject(obj),
        point=enforcement.AUDIT,
        process="audit",
        mutates=False,
        limits=Limits(time.monotonic() + REVIEW_SECONDS),
    )
    responses = review(policies, subject).responses
    owners = _owners(workload, obj)
    owned = {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}
    await sink.audited(Audited("", identity_of(obj), owned, responses, policies.snapshot))
    title = (
        f"the {gvk_of(obj).kind} of {gvk_of(workload).kind} "
        f"{namespace_of(workload)}/{name_of(workload)}"
    )
    faults = (*responses.faults, *responses.undecided)
    return [f"not audited: {title}: {fault}" for fault in faults]


def _owners(workload: Mapping[str, Any], obj: Json) -> list[Json]:
    """Returns the owners of an object: the workload, or of its Scale the workload's own."""
    if gvk_of(obj) == SCALE:
        return objects_of(workload["metadata"].get("ownerReferences"))
    owner = {key: workload[key] for key in ("apiVersion", "kind")}
    return [{**owner, "name": name_of(workload), "controller": True}]


def _objects(workload: Mapping[str, Any]) -> Iterator[Json]:
    gvk, spec = gvk_of(workload), object_of(workload.get("spec"))
    if gvk in _SCALED:
        yield scale_of(workload)
    if _is_owned(workload) or not _is_idle(workload):
        return
    template = object_of(spec.get("template"))
    if gvk == _CRON_JOB:
        job = object_of(spec.get("jobTemplate"))
        yield _made(workload, _JOB, job)
        template = object_of(object_of(job.get("spec")).get("template"))
    yield _made(workload, _POD, template)


def _is_owned(workload: Mapping[str, Any]) -> bool:
    """Whether another workload makes it, as a Deployment its ReplicaSets, of old revisions too."""
    owners = objects_of(workload["metadata"].get("ownerReferences"))
    kinds = {gvk.kind for gvk in UNLISTED}
    return any(owner.get("controller") is True and owner.get("kind") in kinds for owner in owners)


def _is_idle(workload: Mapping[str, Any]) -> bool:
    """Whether it may have no objects now that it makes later."""
    gvk, status = gvk_of(workload), object_of(workload.get("status"))
    if gvk in _SCALED:
        return not status.get("replicas")
    if gvk == _DAEMON_SET:
        return not status.get("currentNumberScheduled")
    return gvk == _CRON_JOB or object_of(workload.get("spec")).get("suspend") is True


def _made(workload: Mapping[str, Any], gvk: GroupVersionKind, template: Json) -> Json:
    """Returns an object as a workload's controller makes it of a template."""
    metadata, beginning = object_of(template.get("metadata")), f"{name_of(workload)}-"
    labels = {**dict(selector_labels(workload)), **labels_of(template)}
    return {
        "apiVersion": gvk.group_version,
        "kind": gvk.kind,
        "metadata": {
            **metadata,
            "name": f"{beginning[:GENERATED_BEGINNING_MAX]}00000",
            "namespace": namespace_of(workload),
            "labels": labels,
        },
        "spec": object_of(template.get("spec")),
    }


def scale_of(workload: Mapping[str, Any]) -> Json:
    """Returns the Scale of a workload as the API server writes it: without labels."""
    metadata, status = workload["metadata"], object_of(workload.get("status"))
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = object_of(workload.get("spec")).get("replicas", 1)
    return {
        "apiVersion": SCALE.group_version,
        "kind": SCALE.kind,
        "metadata": {key: metadata[key] for key in names if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": status.get("replicas") or 0},
    }
