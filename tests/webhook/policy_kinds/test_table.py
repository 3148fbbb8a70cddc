"""The table of kinds and what an installation brings of each: CRDs, rights, scopes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.api import pod_status
from webhook.api.scope import is_cluster_scoped
from webhook.cli.uninstall.run import GROUPS
from webhook.controllers.status_kinds import status_resource
from webhook.policy_kinds.kind import PolicyKind
from webhook.policy_kinds.known import EXTENSIONS, STATUS_KINDS, kind_of
from webhook.policy_kinds.table import POLICY_KINDS

MANIFESTS = Path(__file__).parents[3] / "manifests"
ROWS = [row for row in POLICY_KINDS if row.kind]
READS = {"get", "list", "watch"}


def documents(*paths: Path) -> list[Any]:
    """Returns all documents in some manifests."""
    return [item for path in paths for item in yaml.safe_load_all(path.read_text()) if item]


CRDS = {
    (item["spec"]["group"], item["spec"]["names"]["kind"]): item["spec"]
    for item in documents(*(MANIFESTS / "crds").glob("*.yaml"))
    if item["kind"] == "CustomResourceDefinition"
}


def rights(group: str, resource: str) -> set[str]:
    """Returns the replicas' verbs for a resource."""
    named = {resource, resource.replace(resource.partition("/")[0], "*", 1)}
    return {
        verb
        for item in documents(MANIFESTS / "base" / "rbac.yaml")
        for rule in item.get("rules", ())
        if group in rule["apiGroups"] and named & set(rule["resources"])
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_each_kind_has_its_crd_its_rights_and_its_scope(row: PolicyKind):
    spec = CRDS[row.group, row.kind]
    assert spec["names"]["plural"] == row.plural
    assert (spec["scope"] == "Namespaced") == row.namespaced
    assert is_cluster_scoped(row.group, row.kind) != row.namespaced
    stored = [item["name"] for item in spec["versions"] if item["storage"]]
    assert stored == [row.gvk.version]
    assert {item["name"] for item in spec["versions"]} == set(row.versions)
    assert rights(row.group, row.plural) >= READS
    if row.status is not None:
        assert rights(row.group, f"{row.plural}/status") >= {"update"}
    assert row.group in GROUPS


@pytest.mark.parametrize("kind", STATUS_KINDS, ids=lambda kind: kind.kind)
def test_each_kind_of_status_has_its_crd_with_our_fields_and_its_rights(
    kind: pod_status.StatusKind,
):
    resource = status_resource(kind)
    spec = CRDS[resource.gvk.group, kind.kind]
    assert spec["names"]["plural"] == kind.plural
    version = next(item for item in spec["versions"] if item["name"] == pod_status.VERSION)
    fields = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert fields.keys() >= {kind.uid_field, *kind.own_fields}
    assert rights(pod_status.GROUP, kind.plural) >= READS | {"create"}


def test_extensions_have_names_of_their_own():
    """A kind is known by its name where its group is not at hand."""
    assert len({row.kind for row in EXTENSIONS}) == len(EXTENSIONS)
    for row in POLICY_KINDS:
        assert kind_of(row.gvk._replace(kind=row.kind or "Any")) is row
