"""The manifests in a real API server, as far as they harm nobody."""

from collections.abc import Iterator

import pytest

from tests.cluster import Api, ApiError, Cluster, serves
from tests.manifests import MANIFESTS, Objects, apply, kustomized
from tests.patience import until


@pytest.fixture(scope="module")
def base() -> Objects:
    return kustomized(MANIFESTS / "base")


@pytest.fixture(scope="module")
def installed(cluster: Cluster, base: Objects) -> Iterator[Api]:
    """All that harms nobody, served: no webhook configuration ever, and nothing that would run."""
    api = cluster.api
    for item in base.values():
        if item["kind"] not in {"ValidatingWebhookConfiguration", "Deployment"}:
            apply(api, item, dry_run=False)
    for item in base.values():
        if item["kind"] == "CustomResourceDefinition":
            until(lambda crd=item: serves(api, crd), f"{item['metadata']['name']} is served")
    yield api
    for kind in ("clusterrolebindings", "clusterroles"):
        for name in ("waddle", "waddle-synced-data", "waddle-synced-cluster-kinds"):
            try:
                api.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/{name}")
            except ApiError as error:
                if error.status != 404:
                    raise
