"""The kept revisions of a template."""

import signal
from typing import Any

from tests.patience import until
from tests.system.replicas import Plane, Replica, config_map, review_of

REVISIONS = "/apis/policy.waddle.dev/v1alpha1/policyrevisions"
BROKEN = "package broken\nviolation[{"
MERGE = "application/merge-patch+json"


def kill(replicas: list[Replica]) -> None:
    """Kills each process and deletes its Pod, as a power cut does."""
    for replica in replicas:
        replica.process.send_signal(signal.SIGKILL)
        replica.process.wait()
        replica.plane.delete_pod(replica.name)


def kept(plane: Plane, kind: str, name: str) -> list[int]:
    """The generations of an object that are kept."""
    items = plane.api.request("GET", REVISIONS)["items"]
    return sorted(
        item["spec"]["generation"]
        for item in items
        if (item["spec"]["subject"]["kind"], item["spec"]["subject"]["name"]) == (kind, name)
    )


def conditions(plane: Plane, path: str) -> dict[str, dict[str, Any]]:
    """The conditions of an object by type."""
    status = plane.api.request("GET", path).get("status") or {}
    return {item["type"]: item for item in status.get("conditions") or ()}


def first_verdict(replica: Replica, word: str) -> dict[str, Any]:
    """The first answer of a starting replica that is a decision: it is so from readiness on."""
    verdicts: list[dict[str, Any]] = []

    def is_answered() -> bool:
        try:
            answer = replica.post(review_of(config_map(word)))
        except (OSError, KeyError):
            return False  # its port is not open yet
        if answer.status != 200:
            assert answer.status == 503
            return False
        verdicts.append(answer.verdict)
        return True

    until(is_answered, f"{replica.name} answers")
    return verdicts[0]


def states(plane: Plane, path: str, generation: int) -> set[str]:
    """The condition types that hold of this generation."""
    return {
        name
        for name, item in conditions(plane, path).items()
        if item["status"] == "True" and item["observedGeneration"] == generation
    }
