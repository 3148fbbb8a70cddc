"""Revisions as a user without rights may write them."""

from http import HTTPStatus
from typing import Any

from tests.cluster import ApiError
from tests.system.replicas import Plane, template
from tests.system.revisions import REVISIONS
from webhook import __version__
from webhook.api.revision import digest_of, revision_object
from webhook.api.revision_outcome import TrialOutcome


def harmless(kind: str) -> dict[str, Any]:
    """The template of a kind, with what denies nothing."""
    return template(kind, f'package {kind.lower()}\nviolation[{{"msg": "never"}}] {{ false }}')


def at(current: dict[str, Any], generation: int, other: dict[str, Any]) -> dict[str, Any]:
    """A template as the API server would keep it with the rules of another, at a generation."""
    metadata = {**current["metadata"], "generation": generation}
    spec = {**current["spec"], "targets": other["spec"]["targets"]}
    return {**current, "metadata": metadata, "spec": spec}


def saying(verdict: Any) -> TrialOutcome:
    """Returns a forged outcome in the name of a replica."""
    return TrialOutcome(verdict, "first-0", "u", __version__, "2026-01-01T00:00:00Z", "forged")


def forge(
    plane: Plane, document: dict[str, Any], name: str = "", *, owned: bool = True, verdict: str = ""
) -> str:
    """Make a revision of a document, which nobody but a replica is to make; its name."""
    outcome = saying(verdict) if verdict else None
    made = revision_object(document, digest_of(document), outcome)
    made["metadata"]["name"] = name or made["metadata"]["name"]
    made["status"] = {**made.get("status", {}), "signature": f"key-1700000000:{'0' * 64}"}
    if not owned:
        del made["metadata"]["ownerReferences"], made["status"]
    plane.api.request("POST", REVISIONS, made)
    return str(made["metadata"]["name"])


def outcome(plane: Plane, name: str) -> str:
    """Returns a revision's outcome; empty if there is none, ``gone`` while it is made anew."""
    try:
        found = plane.api.request("GET", f"{REVISIONS}/{name}")
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return "gone"
    return str((found.get("status") or {}).get("outcome", {}).get("verdict", ""))
