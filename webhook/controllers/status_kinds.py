"""The kinds of status objects, where they are served, and what each object is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import LABEL_PREFIX
from webhook.api.resource import Resource
from webhook.api.shapes import object_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import StatusKind


STATUS_KINDS: Final = (pod_status.TEMPLATE, pod_status.CONSTRAINT, pod_status.CONFIG)


class Subject(NamedTuple):
    """What a status is about, as its labels say: the constraint kind is empty for other kinds."""

    kind: str
    constraint_kind: str
    name: str


def status_resource(kind: StatusKind) -> Resource:
    """Where a kind of status objects is served."""
    gvk = GroupVersionKind(pod_status.GROUP, pod_status.VERSION, kind.kind)
    return Resource(gvk, kind.plural, namespaced=True)


def subject_of(kind: StatusKind, item: Mapping[str, Any]) -> Subject:
    """The subject that a status object's labels name."""
    labels = object_of(item["metadata"].get("labels"))
    if kind is pod_status.CONSTRAINT:
        constraint_kind = labels.get(f"{LABEL_PREFIX}constraint-kind", "")
        return Subject(kind.kind, constraint_kind, labels.get(f"{LABEL_PREFIX}constraint-name", ""))
    label = "constrainttemplate-name" if kind is pod_status.TEMPLATE else "config-name"
    return Subject(kind.kind, "", labels.get(f"{LABEL_PREFIX}{label}", ""))
