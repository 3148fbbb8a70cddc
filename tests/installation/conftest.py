"""The manifests in a real API server, as far as they harm nobody."""

from collections.abc import Iterator

import pytest

from tests.cluster import Api, Cluster, serves
from tests.manifests import MANIFESTS, Objects, apply, kustomized, path_of
from tests.patience import until


@pytest.fixture(scope="module")
def base() -> Objects:
    return kustomized(MANIFESTS / "base")


@pytest.fixture(scope="module")
def installed(cluster: Cluster, base: Objects) -> Iterator[Api]:
    """All that harms nobody, served: no webhook configuration ever, and nothing that would run.

    The namespace and CRDs are not deleted: the next module would have to wait for their end.
    """
    api = cluster.api
    harmless = [
        item
        for item in base.values()
        if item["kind"] not in {"ValidatingWebhookConfiguration", "Deployment"}
    ]
    for item in harmless:
        apply(api, item, dry_run=False)
    for item in base.values():
        if item["kind"] == "CustomResourceDefinition":
            until(lambda crd=item: serves(api, crd), f"{item['metadata']['name']} is served")
    yield api
    for item in harmless:
        if item["kind"] not in {"CustomResourceDefinition", "Namespace"}:
            api.request("DELETE", path_of(item))
