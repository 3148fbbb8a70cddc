"""This replica's status objects, and their comparison with the objects in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import text
from webhook.api.pod_status import POD_LABEL, SIGNATURE, Pod, pod_label
from webhook.api.shapes import Json, status_of
from webhook.cluster.reflector import ObjectSelection
from webhook.replicas.pods import owners_of

_STAGED: Final = ("enforcementAction", "preview")
"""Fields about a stage, of a constraint and of a mutator."""


def own_statuses(pod: Pod) -> ObjectSelection:
    """The status objects of this replica and of no other: N replicas watch N shares, not N²."""
    return ObjectSelection(pod.namespace, labels=f"{POD_LABEL}={pod_label(pod.name)}")


def overlay_status(desired: Json, current: Json) -> Json | None:
    """Returns the desired status over the current object.

    None if status, labels and owner are right.
    """
    ours, theirs = desired["metadata"], current["metadata"]
    if (
        desired["status"] == current.get("status")
        and ours["labels"] == theirs.get("labels")
        and ours["ownerReferences"] == theirs.get("ownerReferences")
    ):
        return None
    return desired | {"metadata": theirs | ours}


def declared_fields(crd: Mapping[str, Any], version: str) -> frozenset[str]:
    """The fields of ``status`` that a CRD keeps; the API server prunes every other in silence."""
    for item in crd["spec"]["versions"]:
        if item["name"] == version:
            properties = item["schema"]["openAPIV3Schema"].get("properties", {})
            return frozenset(properties.get("status", {}).get("properties", ()))
    return frozenset()


def kept(document: Json, fields: frozenset[str]) -> Json:
    """Returns the status object as the API server will keep it."""
    status = {name: value for name, value in document["status"].items() if name in fields}
    return {**document, "status": status}


def signed(document: Json, sign: Callable[[bytes], str]) -> Json:
    """Returns the status object with a signature, if it reports a stage of a roll-out."""
    status = document["status"]
    if not any(status.get(name) for name in _STAGED) or not (
        signature := sign(signed_bytes(document))
    ):
        return document
    return {**document, "status": {**status, SIGNATURE: signature}}


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """Returns the bytes to sign for a status object: its owners, name and content.

    No other signed message has the field ``statusOf``.
    """
    unsigned = {name: value for name, value in status_of(document).items() if name != SIGNATURE}
    owners = [text(owner, "uid") for owner in owners_of(document)]
    name = text(document, "metadata", "name")
    return encode({"statusOf": owners, "name": name, "status": unsigned}, sort_keys=True)


def keep_since(document: Json, before: Json | None) -> None:
    """Keeps the ``since`` time of the previous status, if nothing else differs."""
    if before is not None:
        since = {"since": before["status"]["since"]}
        if before["status"] == document["status"] | since:
            document["status"] |= since
