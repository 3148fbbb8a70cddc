"""The kinds of status objects, where they are served, and what each object is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind, text
from webhook.api.pod_status import LABEL_PREFIX, InvalidName, pack_name
from webhook.api.resource import Resource
from webhook.api.shapes import object_of
from webhook.replicas.pods import owners_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import StatusKind


STATUS_KINDS: Final = (
    pod_status.TEMPLATE,
    pod_status.CONSTRAINT,
    pod_status.CONFIG,
    pod_status.MUTATOR,
    pod_status.EXPANSION,
)

_LABELS: Final = {
    pod_status.TEMPLATE: ("", "constrainttemplate-name"),
    pod_status.CONSTRAINT: ("constraint-kind", "constraint-name"),
    pod_status.CONFIG: ("", "config-name"),
    pod_status.MUTATOR: ("mutator-kind", "mutator-name"),
    pod_status.EXPANSION: ("", "expansiontemplate-name"),
}
"""The labels that name a subject's kind, where there are several, and its name."""


class LabelledSubject(NamedTuple):
    """What a status is about, as its labels say.

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
    """The label that has the name of what a status object is about."""
    return f"{LABEL_PREFIX}{_LABELS[kind][1]}"


def subject_of(kind: StatusKind, item: Mapping[str, Any]) -> LabelledSubject:
    """The subject that a status object's labels name."""
    labels = object_of(item["metadata"].get("labels"))
    of_kind, of_name = _LABELS[kind]
    name = labels.get(f"{LABEL_PREFIX}{of_kind}", "") if of_kind else ""
    return LabelledSubject(kind.kind, name, labels.get(f"{LABEL_PREFIX}{of_name}", ""))


def is_named_for_owner(kind: StatusKind, item: Mapping[str, Any]) -> bool:
    """Whether a status object has the one name that its Pod gives it: a Pod has no second voice."""
    owners = owners_of(item)
    subject = subject_of(kind, item)
    if kind is pod_status.CONFIG:
        parts = (text(item, "metadata", "namespace"), subject.name)
    else:
        parts = (subject.constraint_kind.lower(), subject.name)
    try:
        named = [pack_name(text(owner, "name"), *filter(None, parts)) for owner in owners]
    except InvalidName:
        return False
    return named == [text(item, "metadata", "name")]
