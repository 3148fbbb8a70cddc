"""The objects in which each replica says what it enforces: Gatekeeper's ``*PodStatus`` kinds.

One object for each replica and template, constraint or Config, owned by the
replica's Pod so that it goes when the Pod goes. Names, labels and fields are
Gatekeeper's (apis/status/v1beta1); fields of our own are the caller's to add.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.api import audit_shard
from webhook.api.fitting import OBJECT_BYTES_MAX, fitted
from webhook.api.names import NAME_MAX
from webhook.api.shapes import Json, status_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


GROUP: Final = "status.gatekeeper.sh"
VERSION: Final = "v1beta1"
LABEL_PREFIX: Final = "internal.gatekeeper.sh/"
POD_LABEL: Final = f"{LABEL_PREFIX}pod"

MESSAGE_CHARACTERS_MAX: Final = 4096
"""Of one error. An expression of 100,000 characters in a line is in what is told of it with a mark
below; ``status.byPod`` has it from every replica, and an API server keeps no object beyond 1.5 MB."""


LABEL_VALUE_MAX: Final = 63
"""Characters of a label's value; a Pod's name may be longer."""


class InvalidName(ValueError):
    """A part that cannot be packed into a status object's name."""


def pack_name(*parts: str) -> str:
    """A status object's name: each part's dashes doubled, the parts joined by single ones.

    So that no two lists of parts share a name (Gatekeeper's DashPacker). One that would be too
    long ends in a digest. Raises :class:`InvalidName`.
    """
    for part in parts:
        if not part:
            raise InvalidName("dash packing requires all parts to be non-empty")
        if part.startswith("-") or part.endswith("-"):
            raise InvalidName(f'dash packing requires parts without a dash at either end: "{part}"')
    return _shortened("-".join(part.replace("-", "--") for part in parts), NAME_MAX)


def pod_label(name: str) -> str:
    """The value of the label that names a status's Pod: its name, as far as a label may be long.

    Gatekeeper cannot write statuses of a Pod with a longer name.
    """
    return _shortened(name, LABEL_VALUE_MAX)


def _shortened(name: str, characters_max: int) -> str:
    """A name that is no longer than it may be; another for each name."""
    if len(name) <= characters_max:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: characters_max - len(digest) - 1].rstrip('-.')}-{digest}"


@dataclass(frozen=True, slots=True)
class Pod:
    """The replica that a status belongs to: its Pod and what it was told to do."""

    name: str
    namespace: str
    uid: str
    operations: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StatusError:
    """One entry of ``status.errors``."""

    code: str
    message: str
    location: str = ""

    def document(self) -> Json:
        """As it stands in the object."""
        message = self.message
        if len(message) > MESSAGE_CHARACTERS_MAX:
            message = f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
        entry = {"code": self.code, "message": message}
        return entry | {"location": self.location} if self.location else entry


@dataclass(frozen=True, slots=True)
class StatusKind:
    """A kind of status object, and the field that holds its subject's UID."""

    kind: str
    plural: str
    uid_field: str


TEMPLATE: Final = StatusKind(
    "ConstraintTemplatePodStatus", "constrainttemplatepodstatuses", "templateUID"
)
CONSTRAINT: Final = StatusKind("ConstraintPodStatus", "constraintpodstatuses", "constraintUID")
CONFIG: Final = StatusKind("ConfigPodStatus", "configpodstatuses", "configUID")
MUTATOR: Final = StatusKind("MutatorPodStatus", "mutatorpodstatuses", "mutatorUID")
EXPANSION: Final = StatusKind(
    "ExpansionTemplatePodStatus", "expansiontemplatepodstatuses", "templateUID"
)


@dataclass(frozen=True, slots=True)
class StatusSubject:
    """The object that a status is about."""

    status: StatusKind
    name_parts: tuple[str, ...]
    labels: Mapping[str, str]
    uid: str
    generation: int


def template_subject(document: Mapping[str, Any]) -> StatusSubject:
    """A ConstraintTemplate as the subject of a status."""
    name = document["metadata"]["name"]
    return _subject(TEMPLATE, document, (name,), {"constrainttemplate-name": name})


def constraint_subject(document: Mapping[str, Any]) -> StatusSubject:
    """A constraint as the subject of a status."""
    name, kind = document["metadata"]["name"], document["kind"]
    labels = {
        "constraint-name": name,
        "constraint-kind": kind,
        "constrainttemplate-name": kind.lower(),
    }
    return _subject(CONSTRAINT, document, (kind.lower(), name), labels)


def config_subject(document: Mapping[str, Any]) -> StatusSubject:
    """A Config as the subject of a status."""
    metadata = document["metadata"]
    parts = (metadata["namespace"], metadata["name"])
    return _subject(CONFIG, document, parts, {"config-name": metadata["name"]})


def mutator_subject(document: Mapping[str, Any]) -> StatusSubject:
    """A mutator as the subject of a status."""
    name, kind = document["metadata"]["name"], document["kind"]
    labels = {"mutator-name": name, "mutator-kind": kind}
    return _subject(MUTATOR, document, (kind.lower(), name), labels)


def expansion_subject(document: Mapping[str, Any]) -> StatusSubject:
    """An ExpansionTemplate as the subject of a status."""
    name = document["metadata"]["name"]
    return _subject(EXPANSION, document, (name,), {"expansiontemplate-name": name})


def _subject(
    status: StatusKind,
    document: Mapping[str, Any],
    parts: tuple[str, ...],
    labels: Mapping[str, str],
) -> StatusSubject:
    metadata = document["metadata"]
    return StatusSubject(
        status,
        parts,
        {f"{LABEL_PREFIX}{name}": value for name, value in labels.items()},
        metadata.get("uid", ""),
        metadata.get("generation", 0),
    )


def pod_status(
    pod: Pod,
    subject: StatusSubject,
    *,
    errors: Iterable[StatusError] = (),
    enforced: bool | None = None,
    additions: Mapping[str, Any] | None = None,
) -> Json:
    """The status object of a replica for a subject. Raises :class:`InvalidName`.

    ``enforced`` is given for constraints and mutators; ``additions`` are fields of our
    own, which the CRDs must declare or the API server prunes them.
    """
    status: Json = {
        "id": pod.name,
        subject.status.uid_field: subject.uid,
        "operations": sorted(pod.operations),
        "observedGeneration": subject.generation,
    }
    if enforced is not None:
        status["enforced"] = enforced
    if described := [error.document() for error in errors]:
        status["errors"] = described
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": subject.status.kind,
        "metadata": {
            "name": pack_name(pod.name, *subject.name_parts),
            "namespace": pod.namespace,
            "labels": {POD_LABEL: pod_label(pod.name), **subject.labels},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
            ],
        },
        "status": fitted(status | dict(additions or {}), OBJECT_BYTES_MAX),
    }


def by_pod(statuses: Iterable[Mapping[str, Any]], kind: StatusKind, subject_uid: str) -> list[Json]:
    """``status.byPod`` of a subject: the statuses about this very object, sorted by pod.

    A status about an earlier object of the same name has another UID and is left
    out. Statuses are copied whole, as Gatekeeper does, but for a shard of the
    audit: that is merged into the subject's own results.
    """
    current = [
        {name: value for name, value in status_of(item).items() if name != audit_shard.FIELD}
        for item in statuses
        if status_of(item).get(kind.uid_field) == subject_uid
    ]
    return sorted(current, key=lambda status: str(status.get("id", "")))
