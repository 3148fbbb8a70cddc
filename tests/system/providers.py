"""Providers at the API server: where they are, and when replicas go by them."""

from collections.abc import Sequence
from typing import Any

from tests.system.replicas import Plane, Replica

PROVIDERS = "/apis/externaldata.gatekeeper.sh/v1beta1/providers"


def put_provider(plane: Plane, document: dict[str, Any], replicas: Sequence[Replica]) -> None:
    """Apply a Provider, and wait until every replica follows it."""
    path = f"{PROVIDERS}/{document['metadata']['name']}"
    plane.apply_and_await(path, document, replicas)
