"""Mutators and objects that tests of mutation are made of."""

from typing import Any

from webhook.mutation.registry import Mutators
from webhook.mutation.setting import Context

CREATE = Context(operation="CREATE")
PODS = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]


def mutator(kind: str, name: str, location: str, **spec: Any) -> dict[str, Any]:
    """A mutator; of Pods, where its kind names what it applies to and the caller does not."""
    applies = {} if kind == "AssignMetadata" else {"applyTo": PODS}
    version = "v1alpha1" if kind == "AssignImage" else "v1"
    return {
        "apiVersion": f"mutations.gatekeeper.sh/{version}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**applies, "location": location, **spec},
    }


def assign(name: str, location: str, value: Any, **spec: Any) -> dict[str, Any]:
    """An Assign of a value."""
    parameters = {"assign": {"value": value}, **spec.pop("parameters", {})}
    return mutator("Assign", name, location, parameters=parameters, **spec)


def label(name: str, key: str, value: str, **spec: Any) -> dict[str, Any]:
    """An AssignMetadata of a label."""
    location = f'metadata.labels."{key}"'
    return mutator(
        "AssignMetadata", name, location, parameters={"assign": {"value": value}}, **spec
    )


def modify_set(name: str, location: str, operation: str, values: list[Any]) -> dict[str, Any]:
    """A ModifySet."""
    parameters = {"operation": operation, "values": {"fromList": values}}
    return mutator("ModifySet", name, location, parameters=parameters)


def image(name: str, location: str, **parts: str) -> dict[str, Any]:
    """An AssignImage."""
    return mutator("AssignImage", name, location, parameters=parts)


def pod(*images: str, **metadata: Any) -> dict[str, Any]:
    """A Pod of containers c0, c1, … with these images."""
    containers = [{"name": f"c{place}", "image": name} for place, name in enumerate(images)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", **metadata},
        "spec": {"containers": containers},
    }


def known(*documents: dict[str, Any]) -> Mutators:
    """A registry of mutators."""
    mutators = Mutators()
    for document in documents:
        mutators.add(document)
    return mutators
