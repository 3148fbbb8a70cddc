"""What became of a mutator or ExpansionTemplate of the cluster, and what this replica says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api import pod_status
from webhook.controllers.revisions.revisions import origin_fields
from webhook.policy_kinds.known import extension_named
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.controllers.revisions.revisions import InForce
    from webhook.policy_kinds.kind import ExtensionStanding


def subject_key(kind: str, name: str) -> tuple[str, str]:
    """What the kept revisions call an object: its kind with its group, that of a constraint has none."""
    return f"{kind}.{extension_named(kind).group}", name


@dataclass(frozen=True, slots=True)
class ExtensionState:
    """All that is known of a mutator or ExpansionTemplate by itself.

    ``error`` says why its newest generation cannot be used, ``fighting`` names the object over
    which somebody undoes what the mutator does; both are empty where nothing is wrong.
    """

    document: Mapping[str, Any]
    in_force: InForce | None = None
    error: str = ""
    fighting: str = ""

    @property
    def uid(self) -> str:
        """The object's."""
        return uid_of(self.document)


def uid_of(document: Mapping[str, Any]) -> str:
    """An object's UID."""
    uid: str = document["metadata"].get("uid", "")
    return uid


def extension_status(
    pod: Pod, state: ExtensionState, standing: ExtensionStanding, now: str
) -> Json | None:
    """The status object; None for a kind without, or a name that Gatekeeper has none for either.

    ``now`` is in RFC 3339.
    """
    status = extension_named(state.document["kind"]).status
    if status is None:
        return None
    errors: list[Json] = [{"message": state.error}] if state.error else []
    if standing.shared_error is not None:
        errors.append(standing.shared_error)
    in_force = state.in_force
    is_active = not (standing.is_preview or standing.shared_error)
    active = in_force.generation if in_force is not None and is_active else 0
    additions: Json = {"activeGeneration": active, "since": now}
    additions |= origin_fields(in_force)
    if standing.is_preview:
        additions["preview"] = True
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
            enforced=is_enforced if status.says_enforced else None,
            additions=additions,
        )
    except pod_status.InvalidName:
        return None
