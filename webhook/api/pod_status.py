"""Status objects of each replica: Gatekeeper's ``*PodStatus`` kinds.

One object for each replica and template, constraint or Config. The replica's Pod owns it, so that
it is deleted with the Pod. Names, labels and fields are Gatekeeper's (apis/status/v1beta1); callers
add Waddle's own fields.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.api import audit_shard
from webhook.api.fitting import OBJECT_BYTES_MAX, fitted
from webhook.api.names import NAME_MAX
from webhook.api.shapes import Json, status_of
from webhook.values import dataclass

GROUP: Final = "status.gatekeeper.sh"
VERSION: Final = "v1beta1"
LABEL_PREFIX: Final = "internal.gatekeeper.sh/"
POD_LABEL: Final = f"{LABEL_PREFIX}pod"

SIGNATURE: Final = "signature"
"""The field of a status with the replica's stage of a roll-out."""

MESSAGE_CHARACTERS_MAX: Final = 4096
"""The longest error, in characters. Errors of expressions quote the expression, which may have
100,000 characters. ``status.byPod`` repeats the error of each replica, and an API server keeps no
object beyond 1.5 MB."""


LABEL_VALUE_MAX: Final = 63
"""The longest label value, in characters; a Pod's name may be longer."""


class InvalidName(ValueError):
    """A part that cannot be packed into a status object's name."""


def pack_name(*parts: str) -> str:
    """Returns a status object's name.

    Dashes within a part are doubled, and single dashes join the parts. Different lists of parts
    have different names (Gatekeeper's DashPacker). A name that is too long ends in a digest. Raises
    :class:`InvalidName`.
    """
    for part in parts:
        if not part:
            raise InvalidName("dash packing requires all parts to be non-empty")
        if part.startswith("-") or part.endswith("-"):
            raise InvalidName(f'dash packing requires parts without a dash at either end: "{part}"')
    return _shortened("-".join(part.replace("-", "--") for part in parts), NAME_MAX)


def pod_label(name: str) -> str:
    """Returns the label value of a status's Pod: its name, cut to the length of a label.

    Gatekeeper cannot write statuses of a Pod with a longer name.
    """
    return _shortened(name, LABEL_VALUE_MAX)


def _shortened(name: str, characters_max: int) -> str:
    """Returns a name within the length limit; different names stay different."""
    if len(name) <= characters_max:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: characters_max - len(digest) - 1].rstrip('-.')}-{digest}"


@dataclass(frozen=True, slots=True)
class Pod:
    """The replica of a status: its Pod and its configured operations."""

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
        """Returns the entry as it is in the object."""
        message = self.message
        if len(message) > MESSAGE_CHARACTERS_MAX:
            message = f"{message[: MESSAGE_CHARACTERS_MAX - 1]}…"
        entry = {"code": self.code, "message": message}
        return entry | {"location": self.location} if self.location else entry


_IN_FORCE: Final = frozenset(
    {"activeGeneration", "activeDigest", "activeRevision", "rolledBackTo", "since"}
)
_POLICY: Final = _IN_FORCE | {"fault"}


@dataclass(frozen=True, slots=True)
class StatusKind:
    """A kind of status object: its subjects and its fields.

    ``uid_field`` has the UID of the subject; ``name_label`` and ``kind_label`` name it, the latter
    if subjects are of several kinds. ``counted_as`` is the metrics' name of subjects with
    conditions, ``own_fields`` are the fields beyond Gatekeeper's.
    """

    kind: str
    plural: str
    uid_field: str
    name_label: str
    kind_label: str = ""
    own_fields: frozenset[str] = _IN_FORCE
    counted_as: str = ""
    reports_enforced: bool = False
    """Whether it has a field of whether its subject is enforced."""
    reports_active: bool = False
    """Whether the status has the times of its activation and of each error."""
    error_type: str = ""
    """The type of an error in the subject itself, if errors have types."""
    is_of_namespaced: bool = False
    """Whether its subject is namespaced; the namespace is then a part of the name."""


TEMPLATE: Final = StatusKind(
    "ConstraintTemplatePodStatus",
    "constrainttemplatepodstatuses",
    "templateUID",
    "constrainttemplate-name",
    own_fields=_POLICY | {"expressionWarnings", "missingData"},
    counted_as="template",
)
CONSTRAINT: Final = StatusKind(
    "ConstraintPodStatus",
    "constraintpodstatuses",
    "constraintUID",
    "constraint-name",
    "constraint-kind",
    own_fields=_POLICY
    | {"audit", "breaker", "enforcementAction", "expressionWarnings", "lastViolation", SIGNATURE},
    counted_as="constraint",
    reports_enforced=True,
)
CONFIG: Final = StatusKind(
    "ConfigPodStatus",
    "configpodstatuses",
    "configUID",
    "config-name",
    own_fields=frozenset(),
    is_of_namespaced=True,
)
MUTATOR: Final = StatusKind(
    "MutatorPodStatus",
    "mutatorpodstatuses",
    "mutatorUID",
    "mutator-name",
    "mutator-kind",
    own_fields=_IN_FORCE | {"preview", "fighting", "warnings", SIGNATURE},
    counted_as="mutator",
    reports_enforced=True,
)
EXPANSION: Final = StatusKind(
    "ExpansionTemplatePodStatus",
    "expansiontemplatepodstatuses",
    "templateUID",
    "expansiontemplate-name",
    counted_as="expansion_template",
)
PROVIDER: Final = StatusKind(
    "ProviderPodStatus",
    "providerpodstatuses",
    "providerUID",
    "provider-name",
    own_fields=_IN_FORCE | {"warnings"},
    counted_as="provider",
    reports_active=True,
    error_type="UpsertCache",
)


@dataclass(frozen=True, slots=True)
class StatusSubject:
    """The subject of a status: a policy object."""

    status: StatusKind
    name_parts: tuple[str, ...]
    labels: Mapping[str, str]
    uid: str
    generation: int


def status_subject(status: StatusKind, document: Mapping[str, Any]) -> StatusSubject:
    """Returns an object as the subject of a status."""
    metadata = document["metadata"]
    name = metadata["name"]
    parts: tuple[str, ...] = (name,)
    labels = {status.name_label: name}
    if status.kind_label:
        parts = (document["kind"].lower(), name)
        labels[status.kind_label] = document["kind"]
    if status.is_of_namespaced:
        parts = (metadata["namespace"], *parts)
    if status is CONSTRAINT:
        labels[TEMPLATE.name_label] = document["kind"].lower()
    return StatusSubject(
        status,
        parts,
        {sys.intern(f"{LABEL_PREFIX}{label}"): value for label, value in labels.items()},
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
    """Returns the status object of a replica for a subject. Raises :class:`InvalidName`.

    ``enforced`` is given for constraints and mutators; ``additions`` are Waddle's own fields. The
    API server prunes fields that the CRDs do not declare.
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
    """Returns ``status.byPod`` of a subject: the statuses with its UID, sorted by Pod.

    Statuses of an earlier object of the same name have another UID and are left out. Statuses are
    copied whole, as in Gatekeeper, except for a shard of the audit, which is merged into the
    subject's results.
    """
    current = [
        {name: value for name, value in status_of(item).items() if name != audit_shard.FIELD}
        for item in statuses
        if status_of(item).get(kind.uid_field) == subject_uid
    ]
    return sorted(current, key=lambda status: str(status.get("id", "")))
