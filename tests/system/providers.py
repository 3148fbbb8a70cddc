"""Providers at the API server: where they are, and when replicas go by them."""

from collections.abc import Sequence
from typing import Any

from tests.patience import until
from tests.system.replicas import Plane, Replica

PROVIDERS = "/apis/externaldata.gatekeeper.sh/v1beta1/providers"


def put_provider(plane: Plane, document: dict[str, Any], replicas: Sequence[Replica]) -> None:
    """Apply a Provider, and wait until every replica says that it goes by it as it is now."""
    path = f"{PROVIDERS}/{document['metadata']['name']}"
    made = plane.api.apply(path, document)
    now = (made["metadata"]["uid"], made["metadata"]["generation"])
    names = {replica.name for replica in replicas}

    def all_say_so() -> bool:
        said = {
            entry["id"]
            for entry in plane.by_pod(path)
            if (entry["providerUID"], entry["observedGeneration"]) == now
        }
        return names <= said

    until(all_say_so, f"{path} is taken by all")
