"""The kinds of status objects, their API resources, and the subject of each object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind, text
from webhook.api.pod_status import LABEL_PREFIX, InvalidName, StatusKind, pack_name
from webhook.api.resource import Resource
from webhook.api.shapes import object_of
from webhook.policy_kinds.known import constraints_of, kind_of
from webhook.policy_kinds.table import POLICY_KINDS
from webhook.replicas.pods import owners_of


class LabelledSubject(NamedTuple):
    """The subject of a status, as its labels name it.

    ``constraint_kind`` is the kind of a constraint or of a mutator, and empty for other kinds.
    """

    kind: str
    constraint_kind: str
    name: str


def status_resource(kind: StatusKind) -> Resource:
    """Where a kind of status objects is served."""
    gvk = GroupVersionKind(pod_status.GROUP, pod_status.VERSION, kind.kind)
    return Resource(gvk, kind.plural, namespaced=True)


def name_label(kind: StatusKind) -> str:
    """Returns the label with the name of the status object's subject."""
    return f"{LABEL_PREFIX}{kind.name_label}"


def subject_of(kind: StatusKind, item: Mapping[str, Any]) -> LabelledSubject:
    """Returns the subject that a status object's labels name."""
    labels = object_of(item["metadata"].get("labels"))
    of_kind = labels.get(f"{LABEL_PREFIX}{kind.kind_label}", "") if kind.kind_label else ""
    return LabelledSubject(kind.kind, of_kind, labels.get(name_label(kind), ""))


def subject_named(gvk: GroupVersionKind, name: str) -> LabelledSubject:
    """Returns the subject of status objects about an object of a kind."""
    row = kind_of(gvk)
    assert row is not None
    assert row.status is not None, f"nothing is said of {gvk}"
    return LabelledSubject(row.status.kind, gvk.kind if row.status.kind_label else "", name)


def resource_of(subject: LabelledSubject) -> Resource:
    """Returns the resource of a status's subject."""
    rows = [row for row in POLICY_KINDS if row.status and row.status.kind == subject.kind]
    row = next(
        (candidate for candidate in rows if candidate.kind == subject.constraint_kind), rows[0]
    )
    return row.resource if row.kind else constraints_of(subject.constraint_kind)


def is_named_for_owner(kind: StatusKind, item: Mapping[str, Any]) -> bool:
    """Whether a status object has the name that its Pod would give it: one Pod, one status."""
    owners = owners_of(item)
    subject = subject_of(kind, item)
    if kind.is_of_namespaced:
        parts = (text(item, "metadata", "namespace"), subject.name)
    else:
        parts = (subject.constraint_kind.lower(), subject.name)
    try:
        named = [pack_name(text(owner, "name"), *filter(None, parts)) for owner in owners]
    except InvalidName:
        return False
    return named == [text(item, "metadata", "name")]
