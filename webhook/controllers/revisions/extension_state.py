"""The state of a mutator or ExpansionTemplate of the cluster, and its part of this replica's status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.api import pod_status
from webhook.controllers.revisions.revisions import InForce, origin_fields
from webhook.policy_kinds.known import extension_named, kind_of_document
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import Pod, StatusKind
    from webhook.api.shapes import Json
    from webhook.policy_kinds.kind import ExtensionStanding


def subject_key(kind: str, name: str) -> tuple[str, str]:
    """Returns an object's key among kept revisions: its kind with its group, and its name."""
    row = extension_named(kind)
    return f"{row.kind}.{row.group}", name


@dataclass(frozen=True, slots=True)
class ExtensionState:
    """The state of a mutator or ExpansionTemplate, apart from other objects.

    ``error`` is why its newest generation cannot be used. ``fighting`` names the object on which
    the mutator's change is undone again and again. Both are empty without a fault. ``error_at`` is
    when the error last came or went, ``in_force_at`` when the version in force was put there.
    """

    document: Mapping[str, Any]
    in_force: InForce | None = None
    error: str = ""
    fighting: str = ""
    error_at: str = ""
    in_force_at: str = ""

    @property
    def uid(self) -> str:
        """The UID of the object."""
        return uid_of(self.document)

    def with_error(self, error: str, now: str) -> ExtensionState:
        """Returns this state with an error; ``now`` is in RFC 3339."""
        if error == self.error:
            return self
        return replace(self, error=error, error_at=now)

    def with_in_force(self, in_force: InForce, now: str) -> ExtensionState:
        """Returns this state with a revision in force; the time stays if it was in force before."""
        before = self.in_force
        is_same = before is not None and _identity(before) == _identity(in_force)
        return replace(self, in_force=in_force, in_force_at=self.in_force_at if is_same else now)


def _identity(in_force: InForce) -> tuple[int, str, str, str]:
    """Returns the fields in which two revisions in force differ."""
    return in_force.generation, in_force.digest, in_force.revision, in_force.rollback


def uid_of(document: Mapping[str, Any]) -> str:
    """Returns an object's UID; empty if it has none."""
    uid: str = document["metadata"].get("uid", "")
    return uid


def extension_status(
    pod: Pod, state: ExtensionState, standing: ExtensionStanding, now: str
) -> Json | None:
    """Returns this replica's status object about an extension; ``now`` is in RFC 3339.

    None for a kind without statuses, or a name that Gatekeeper refuses, too.
    """
    row = kind_of_document(state.document)
    if row is None or row.status is None:
        return None
    status = row.status
    errors: list[Json] = [_error(status, state)] if state.error else []
    if standing.shared_error is not None:
        errors.append(standing.shared_error)
    in_force = state.in_force
    is_active = not (standing.is_preview or standing.shared_error)
    active = in_force.generation if in_force is not None and is_active else 0
    additions: Json = {"activeGeneration": active, "since": now}
    additions |= origin_fields(in_force)
    if standing.is_preview:
        additions["preview"] = True
    if status.reports_active:
        additions |= _activity(state)
    if state.fighting:
        additions["fighting"] = state.fighting
    if standing.warnings:
        additions["warnings"] = list(standing.warnings)
    if errors:
        additions["errors"] = errors
    is_enforced = not errors and not standing.is_preview
    try:
        return pod_status.pod_status(
            pod,
            pod_status.status_subject(status, state.document),
            enforced=is_enforced if status.reports_enforced else None,
            additions=additions,
        )
    except pod_status.InvalidName:
        return None


def _error(status: StatusKind, state: ExtensionState) -> Json:
    """Returns an object's fault in the form of its kind of status."""
    if not status.reports_active:
        return {"message": state.error}
    return {
        "type": status.error_type,
        "message": state.error,
        "retryable": True,  # as Gatekeeper writes for each
        "errorTimestamp": state.error_at,
    }


def _activity(state: ExtensionState) -> Json:
    """Returns whether the newest version is active, and the time of the last change."""
    times = {"lastTransitionTime": state.error_at, "lastCacheUpdateTime": state.in_force_at}
    return {"active": not state.error} | {name: at for name, at in times.items() if at}
