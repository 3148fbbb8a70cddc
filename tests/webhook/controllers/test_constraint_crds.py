"""CRDs of constraints at a real API server: made once, changed with the template, else left alone."""

import copy
import gc
import json
import sys
from pathlib import Path

import pytest
import yaml

from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.known import TARGETS
from webhook.controllers.apply.constraint_crds import (
    COLUMNS,
    GENERATION,
    MATCH_FIELDS,
    SchemaSharing,
    overlay_crd,
    owned,
)

POLICIES = Path(__file__).parents[3] / "policies"
CRD = Resource(
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    "customresourcedefinitions",
    namespaced=False,
)


def templates():
    """Returns the templates for the product's own targets: declared targets are in no cluster."""
    known = {target.name for target in TARGETS}
    found = [yaml.safe_load(file.read_text()) for file in sorted(POLICIES.rglob("template.yaml"))]
    return [one for one in found if one["spec"]["targets"][0]["target"] in known]


def owned_crd(template):
    template["metadata"]["uid"] = "00000000-0000-0000-0000-000000000001"
    client = Client(targets=TARGETS, drivers=(RegoDriver(),))
    return owned(client.create_crd(template), template)


@pytest.fixture
def with_api(cluster):
    """Run a coroutine function with a client of the cluster."""

    def run(work):
        async def main():
            async with ClusterClient(load_credentials(cluster.kubeconfig)) as api:
                await work(api)

        event_loop.run(main())

    return run


def test_what_the_api_server_fills_in_is_no_difference(with_api):
    """For every template of our library; else each replica would write at each start."""

    async def work(api):
        assert templates()
        for template in templates():
            crd = owned_crd(template)
            # No such owner exists here, and the garbage collector would take the CRD along.
            crd["metadata"].pop("ownerReferences")
            crd["metadata"]["labels"]["tests"] = "fills-in"
            name = crd["metadata"]["name"]
            try:
                made = await api.create(CRD, crd)
                assert overlay_crd(crd, made) is None, name
            finally:
                await api.delete(CRD, name)

    with_api(work)


def test_a_changed_schema_is_written_and_accepted(with_api):
    async def work(api):
        crd = owned_crd(templates()[0])
        crd["metadata"].pop("ownerReferences")
        crd["metadata"]["name"] = "k8schanged.constraints.gatekeeper.sh"
        crd["spec"]["names"] = {"kind": "K8sChanged", "plural": "k8schanged"}
        try:
            made = await api.create(CRD, crd)
            spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"]["parameters"] = {
                "type": "object",
                "properties": {"only": {"type": "string"}},
            }
            assert overlay_crd(crd, made) is not None
            name = crd["metadata"]["name"]
            made = await api.update(CRD, name, "", lambda current: overlay_crd(crd, current))
            assert overlay_crd(crd, made) is None
        finally:
            await api.delete(CRD, crd["metadata"]["name"])

    with_api(work)


def test_what_others_add_is_kept_and_what_is_ours_is_put_right():
    crd = owned_crd(templates()[0])
    current = {
        **crd,
        "metadata": {
            **crd["metadata"],
            "labels": {"another": "label"},
            "resourceVersion": "7",
        },
        "status": {"acceptedNames": {}},
    }
    changed = overlay_crd(crd, current)

    assert changed is not None
    assert changed["metadata"]["labels"]["another"] == "label"
    assert changed["metadata"]["labels"]["gatekeeper.sh/constraint"] == "yes"
    assert changed["metadata"]["resourceVersion"] == "7"
    assert overlay_crd(crd, changed) is None


def at(generation, uid="t"):
    """A CRD of a schema of its own, as a replica wants it that enforces this generation."""
    template = templates()[0]
    template["metadata"] |= {"generation": generation, "uid": uid}
    crd = owned_crd(template)
    crd["metadata"]["ownerReferences"][0]["uid"] = uid
    crd["metadata"]["annotations"][GENERATION] = str(generation)
    crd["spec"]["names"]["shortNames"] = [f"g{generation}"]
    return crd


def test_a_replica_with_an_earlier_generation_leaves_the_crd_alone():
    """Two that did not agree would write it again and again."""
    assert overlay_crd(at(2), at(1))["spec"]["names"]["shortNames"] == ["g2"]
    assert overlay_crd(at(1), at(2)) is None
    assert overlay_crd(at(10), at(9)) is not None
    assert overlay_crd(at(1, "made anew"), at(9)) is not None


def test_a_generation_that_changes_no_schema_is_no_write():
    later = at(1)
    later["metadata"]["annotations"][GENERATION] = "2"

    assert overlay_crd(later, at(1)) is None


def test_a_crd_that_another_product_made_is_put_right():
    """It has no such annotation, or one that somebody wrote by hand."""
    for annotations in ({}, {GENERATION: "newest"}, {"note": "x"}):
        foreign = at(7)
        foreign["metadata"]["annotations"] = annotations
        changed = overlay_crd(at(1), foreign)
        assert changed["metadata"]["annotations"] == annotations | {
            GENERATION: "1",
            COLUMNS: at(1)["metadata"]["annotations"][COLUMNS],
            MATCH_FIELDS: "processes",
        }


def test_columns_that_somebody_took_away_are_not_put_back_again_and_again():
    """They are written into a CRD that never had them, and with other columns, once."""
    bare = at(1)
    for version in bare["spec"]["versions"]:
        version["additionalPrinterColumns"] = version["additionalPrinterColumns"][:2]
    assert overlay_crd(at(1), bare) is None
    changed = overlay_crd(at(2), bare)
    assert changed["spec"]["names"]["shortNames"] == ["g2"]
    assert changed["spec"]["versions"] == bare["spec"]["versions"]
    for annotation in (None, "state"):
        bare["metadata"]["annotations"].pop(COLUMNS, None)
        if annotation is not None:
            bare["metadata"]["annotations"][COLUMNS] = annotation
        assert overlay_crd(at(1), bare)["spec"] == at(1)["spec"]


def test_fields_of_a_match_that_somebody_took_away_are_not_put_back_again_and_again():
    """Gatekeeper's match has no processes, and it replaces the spec of CRDs that it makes, too."""
    bare = copy.deepcopy(at(1))
    for version in bare["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec["match"]["properties"].pop("processes", None)  # versions share it
    assert bare["spec"] != at(1)["spec"]
    assert overlay_crd(at(1), bare) is None
    changed = overlay_crd(at(2), bare)
    assert changed["spec"]["names"]["shortNames"] == ["g2"]
    assert changed["spec"]["versions"] == bare["spec"]["versions"]
    del bare["metadata"]["annotations"][MATCH_FIELDS]
    assert overlay_crd(at(1), bare)["spec"] == at(1)["spec"]


def test_a_template_named_as_owner_by_another_version_of_its_kind_is_the_owner():
    current = at(1)
    current["metadata"]["ownerReferences"][0]["apiVersion"] = "templates.gatekeeper.sh/v1beta1"
    assert overlay_crd(at(1), current) is None
    changed = overlay_crd(at(2), current)
    assert changed["metadata"]["ownerReferences"] == current["metadata"]["ownerReferences"]
    anew = overlay_crd(at(1, "made anew"), current)
    assert [owner["uid"] for owner in anew["metadata"]["ownerReferences"]] == ["made anew"]


def test_a_schema_in_other_words_is_no_difference_and_a_property_named_description_is():
    current = at(1)
    for version in current["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["match"]["description"] = "in other words"
    assert overlay_crd(at(1), current) is None
    for version in current["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["description"] = {"type": "string"}
    assert overlay_crd(at(1), current)["spec"] == at(1)["spec"]


def test_a_default_that_becomes_another_type_of_an_equal_value_is_written():
    """Python takes true for 1; the API server and policies do not."""
    current, desired = at(1), at(2)
    for crd, default in ((current, True), (desired, 1)):
        for version in crd["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"]["extra"] = {
                "x-kubernetes-preserve-unknown-fields": True,
                "default": default,
            }
    (version, *_) = overlay_crd(desired, current)["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert type(properties["extra"]["default"]) is int


def test_a_property_that_the_template_lost_goes():
    crd = owned_crd(templates()[0])
    current = yaml.safe_load(yaml.safe_dump(crd))
    schema = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["earlier"] = {"type": "string"}

    assert overlay_crd(crd, current)["spec"] == crd["spec"]


def bytes_of(documents):
    """Returns the bytes that documents take in memory; what is shared counts once."""
    seen, pending = {}, [documents]
    while pending:
        value = pending.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            pending += gc.get_referents(value) if isinstance(value, dict | list) else []
    return sum(map(sys.getsizeof, seen.values()))


def test_crds_share_what_is_equal_and_stay_as_they_were():
    """Each took 50 KB of every replica's memory; 13 KB are enough."""
    sources = [json.dumps(owned_crd(template)) for template in templates()]
    sources += [
        '{"metadata": {"name": "x"}, "spec": {"versions": [{"name": "v1"}, {"name": "v2"}]}}'
    ]
    sources += ['{"metadata": {"name": "y"}, "spec": {}}', *sources[:2]]
    share = SchemaSharing()
    kept = [share(json.loads(source)) for source in sources]
    assert kept == [json.loads(source) for source in sources]
    crd = at(1)
    first, second = crd["spec"]["versions"][:2]
    second["schema"] = copy.deepcopy(first["schema"])
    for version, default in ((first, True), (second, 1)):
        version["schema"]["openAPIV3Schema"]["default"] = default
    shared_versions = SchemaSharing()(crd)["spec"]["versions"][:2]
    defaults = [version["schema"]["openAPIV3Schema"]["default"] for version in shared_versions]
    assert list(map(type, defaults)) == [bool, int]
    assert 2 * bytes_of(kept) < bytes_of([json.loads(source) for source in sources])
