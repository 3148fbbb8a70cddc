"""Policies that the API server is given, and what it says by them."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests import policies
from tests.cluster import ApiError
from tests.system.conftest import ALL_OPERATIONS
from tests.system.replicas import Plane, Replica, config_map, try_request

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
DRY_RUN = "dryRun=All"
NO_WAIT = "--default-wait-for-vapb-generation=0"


def template(name: str, expression: str, **source: Any) -> dict[str, Any]:
    """A template in CEL; ``word`` is its parameter."""
    message = "'denied: ' + variables.params.word"
    validation = {"expression": expression, "messageExpression": message}
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    return policies.template(name, cel={"validations": [validation], **source}, schema=schema)


def constraint(name: str, kind: str, word: str, **spec: Any) -> dict[str, Any]:
    """A constraint of it, about ConfigMaps."""
    given = {"parameters": {"word": word}, **spec}
    return policies.constraint(kind, name, kinds=["ConfigMap"], **given)


UNLIKE = "!has(variables.anyObject.data) || variables.anyObject.data.deny != variables.params.word"


def refusal(plane: Plane, document: dict[str, Any]) -> str:
    """Returns the refusal by the API server's own policies; empty if there is none."""
    kind, namespace = document["kind"], document["metadata"].get("namespace")
    group = "/api/v1" if document["apiVersion"] == "v1" else f"/apis/{document['apiVersion']}"
    place = f"/namespaces/{namespace}" if namespace else ""
    try:
        plane.api.request("POST", f"{group}{place}/{kind.lower()}s?{DRY_RUN}", document)
    except ApiError as error:
        if "denied request: " in error.body:
            return error.body.partition("denied request: ")[2]
        raise
    return ""


def state(plane: Plane, path: str) -> list[Any]:
    """Returns the state of the policy or binding, from byPod."""
    found = []
    for entry in plane.by_pod(path):
        points = entry.get("enforcementPointsStatus") or [entry.get("vapGenerationStatus")]
        found += [None if point is None else point["state"] for point in points]
    return found


@dataclass(frozen=True, slots=True)
class InCel:
    """Rounds of a policy and a binding: the API server itself refuses a ConfigMap of each's word.

    Nothing less says that they have passed: they are there before the API server goes by them, and
    Gatekeeper's policy refuses all that it is about until the kind of its parameters is known.
    """

    plane: Plane

    def documents(self, kind: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The word stands in both, and both must be the new ones for something to be refused."""
        unlike = f"!has(variables.anyObject.data) || variables.anyObject.data.deny != '{word}'"
        made = template(kind, f"{unlike} || variables.params.word != '{word}'")
        return made, constraint(kind.lower(), kind, word)

    def has_passed(self, name: str, word: str) -> bool:
        """Whether the API server refuses the word."""
        return f"denied: {word}" in refusal(self.plane, config_map(word))

    def has_gone(self, name: str) -> bool:
        """Whether neither is left."""
        left = (f"{POLICIES}/gatekeeper-{name}", f"{BINDINGS}/gatekeeper-{name}-{name}")
        return not any(try_request(self.plane.api, "GET", path) for path in left)


def running(plane: Plane, stack: ExitStack, name: str, *flags: str) -> Replica:
    """A replica that generates, and whose Pod says that it is ready."""
    stack.callback(plane.delete_pod, name)
    replica = stack.enter_context(Replica(plane, name, *ALL_OPERATIONS, NO_WAIT, *flags))
    replica.wait_ready()
    plane.mark_pod(name, ready=True)
    return replica
