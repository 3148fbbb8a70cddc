"""The targets for documents: how a file is split, and which constraints are about what."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import constraint, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidConstraint, ReviewError
from webhook.constraint.review import Document
from webhook.constraint.targets.declared import InvalidTarget, read_target
from webhook.constraint.targets.gcp import GcpTarget
from webhook.constraint.targets.known import TARGETS
from webhook.constraint.targets.terraform import TerraformTarget

TERRAFORM, GCP = TerraformTarget(), GcpTarget()


def change(address="google_storage_bucket.a", **fields):
    document = {"name": "a", "address": address, "type": "t", "change": {"actions": ["create"]}}
    return {**document, **fields}


def asset(**fields):
    return {
        "name": "//compute/a",
        "asset_type": "compute.googleapis.com/Instance",
        "ancestry_path": "organization/1/folder/2/project/p-12345",
        "resource": {},
        **fields,
    }


def declared(**spec):
    return read_target(
        {
            "apiVersion": "targets.waddle.dev/v1alpha1",
            "kind": "Target",
            "metadata": {"name": "t.example.com"},
            "spec": spec,
        }
    )


def names(target, value):
    return [document.name for document in target.documents(value, "file.json")]


def matched_names(target, match, value):
    """The names of what a match means of a file."""
    test = target.matcher(match)
    return [one.name for one in target.documents(value, "file.json") if test(one)]


# --- Terraform -----------------------------------------------------------------------------------


def test_each_change_of_a_plan_is_reviewed_under_its_address():
    plan = {"resource_changes": [change("a.b"), change("module.c.d.e")]}

    assert names(TERRAFORM, plan) == ["a.b", "module.c.d.e"]
    assert names(TERRAFORM, change("a.b")) == ["a.b"]
    assert names(TERRAFORM, {"format_version": "1.2", "planned_values": {}}) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "file.json: no Terraform plan"),
        ([], "file.json: no Terraform plan"),
        ({"resource_changes": {}}, "file.json: no Terraform plan"),
        ({"resource_changes": [7]}, r"file.json: resource_changes\[0\]: no name"),
        ({"resource_changes": [change(), change(address=1)]}, r"resource_changes\[1\]: no address"),
        ({"resource_changes": [change(change=[])]}, r"resource_changes\[0\]: no change"),
    ],
)
def test_what_is_no_plan_is_reported_with_the_place(value, message):
    with pytest.raises(ReviewError, match=message):
        names(TERRAFORM, value)


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ({}, ["a.b", "module.c.a.b", "module.c[0].d.e"]),
        ({"addresses": ["**"]}, ["a.b", "module.c.a.b", "module.c[0].d.e"]),
        ({"addresses": ["*"]}, []),
        ({"addresses": ["*.*"]}, ["a.b"]),
        ({"addresses": ["module.c.**"]}, ["module.c.a.b"]),
        ({"addresses": ["**"], "excludedAddresses": ["**.b"]}, ["module.c[0].d.e"]),
        ({"addresses": []}, []),
    ],
)
def test_addresses_are_globs_whose_stars_stop_at_dots(match, found):
    plan = {"resource_changes": [change("a.b"), change("module.c.a.b"), change("module.c[0].d.e")]}

    assert matched_names(TERRAFORM, match, plan) == found


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"addresses": "a"}, "spec.match.addresses must be an array of strings"),
        (
            {"excludedAddresses": ["a. .b"]},
            "invalid glob in spec.match.excludedAddresses: unexpected item   element 1 in a. .b",
        ),
        ({"addresses": ["a[b"]}, "spec.match: glob"),
    ],
)
def test_addresses_that_are_no_globs_are_refused(match, message):
    with pytest.raises(InvalidConstraint) as error:
        TERRAFORM.validate_constraint({"spec": {"match": match}})

    assert str(error.value).startswith(message)


# --- Google Cloud --------------------------------------------------------------------------------


def test_an_asset_has_the_path_of_its_ancestors():
    ancestors = asset(ancestors=["projects/3", "folders/2", "organizations/1"])
    (found,) = GCP.documents(ancestors, "f")
    assert found.value["ancestry_path"] == "organizations/1/folders/2/projects/3"

    first, _ = GCP.documents([asset(), asset(name="b")], "f")
    assert first.value["ancestry_path"] == "organizations/1/folders/2/projects/p-12345"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "f: no asset: expected an object, got a number"),
        ([asset(), {}], "f: asset 1: no asset: no name"),
        (asset(asset_type=None), "f: no asset: no asset_type"),
        (asset(ancestry_path=None), "f: asset missing ancestry information"),
        (asset(resource=None), "f: asset without any of: resource, iam_policy"),
        (asset(iam_policy={}), "f: malformed asset has more than one of: resource, iam_policy"),
    ],
)
def test_what_is_no_asset_is_reported(value, message):
    with pytest.raises(ReviewError) as error:
        list(GCP.documents(value, "f"))

    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("match", "is_meant"),
    [
        ({}, True),
        ({"ancestries": ["organizations/**"]}, True),
        ({"ancestries": ["organizations/*"]}, False),
        ({"target": ["organizations/1/folders/2/**"]}, True),
        ({"ancestries": ["**"], "excludedAncestries": ["**/projects/p-12345"]}, False),
        ({"exclude": ["organizations/2/**"]}, True),
    ],
)
def test_ancestries_are_globs_whose_stars_stop_at_slashes(match, is_meant):
    GCP.validate_constraint({"spec": {"match": match}})

    assert bool(matched_names(GCP, match, asset())) == is_meant


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (
            {"ancestries": [], "target": []},
            "only one of spec.match.ancestries and spec.match.target",
        ),
        ({"exclude": [], "excludedAncestries": []}, "only one of spec.match.excludedAncestries"),
        ({"ancestries": ["organization/1"]}, "unexpected item organization element 0"),
        ({"target": ["folders/1/organizations/2"]}, "unexpected item organizations element 2"),
        ({"target": ["projects/1/folders/2"]}, "unexpected item folders element 2"),
        ({"target": ["folders/name-of-it"]}, "unexpected item name-of-it element 1"),
        ({"target": ["projects/x"]}, "unexpected item x element 1"),
    ],
)
def test_ancestries_that_can_be_none_are_refused(match, message):
    with pytest.raises(InvalidConstraint, match=message):
        GCP.validate_constraint({"spec": {"match": match}})


# --- declared ------------------------------------------------------------------------------------

COMPOSE = {
    "services": {
        "web": {"image": "a/web:1", "container_name": "front", "labels": {"tier": "web"}},
        "db": {"image": "b/db:2", "labels": {"tier": "data"}},
        "none": {},
    }
}


def test_a_declared_target_splits_along_its_path_and_names_what_it_finds():
    target = declared(reviews="services.*", name="container_name")

    assert names(target, COMPOSE) == ["front", "file.json.services.db", "file.json.services.none"]
    assert names(declared(), [1]) == ["file.json"]
    assert names(declared(reviews="*"), [{}, {}]) == ["file.json.0", "file.json.1"]
    assert names(declared(reviews=["services", "web"]), COMPOSE) == ["file.json.services.web"]
    assert names(declared(reviews="nothing"), COMPOSE) == []
    with pytest.raises(ReviewError, match=r"expected an object or an array .*, got a number"):
        names(declared(reviews="a"), 7)


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ({}, ["web", "db", "none"]),
        ({"images": ["a/*"]}, ["web"]),
        ({"images": ["*"]}, []),
        ({"images": ["**"]}, ["web", "db"]),
        ({"excludedImages": ["b/**"]}, ["web", "none"]),
        ({"labels": {"matchLabels": {"tier": "web"}}}, ["web"]),
        ({"labels": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}, ["none"]),
        ({"files": ["file.*"]}, ["web", "db", "none"]),
        ({"files": ["other*"]}, []),
        ({"files": ["*"], "excludedImages": ["**:2"]}, ["web", "none"]),
    ],
)
def test_a_declared_target_matches_by_globs_and_labels(match, found):
    target = declared(
        reviews="services.*",
        match={
            "images": {"path": "image", "separator": "/"},
            "labels": {"as": "labels"},
            "files": {"of": "document"},
        },
    )
    target.validate_constraint({"spec": {"match": match}})

    prefix = "file.json.services."
    assert matched_names(target, match, COMPOSE) == [prefix + name for name in found]


def test_a_match_that_a_declared_target_does_not_know_is_refused():
    target = declared(match={"images": {"path": "image"}, "labels": {"as": "labels"}})

    with pytest.raises(
        InvalidConstraint, match=r"spec.match.kinds: target t.example.com matches by"
    ):
        target.validate_constraint({"spec": {"match": {"kinds": []}}})
    with pytest.raises(InvalidConstraint, match=r"spec.match.images must be an array"):
        target.validate_constraint({"spec": {"match": {"images": 7}}})
    wrong = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    with pytest.raises(InvalidConstraint, match="operator"):
        target.validate_constraint({"spec": {"match": {"labels": wrong}}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"review": "a"},
            "spec: unknown field review; there are description, match, name, reviews",
        ),
        ({"reviews": 7}, "spec.reviews must be names with dots between them"),
        ({"reviews": "a..b"}, "spec.reviews must be names with dots between them"),
        ({"match": []}, ""),
        ({"match": ["a"]}, "spec.match must be an object"),
        ({"match": {"a": "b"}}, "spec.match.a must be an object"),
        ({"match": {"a": {"as": "regex"}}}, "spec.match.a.as must be one of globs, labels"),
        ({"match": {"a": {"of": "x"}}}, "spec.match.a.of must be one of review, document"),
        ({"match": {"a": {"of": "document", "path": "b"}}}, "spec.match.a: a file has a name"),
        ({"match": {"a": {"separator": "ab"}}}, "spec.match.a.separator must be one character"),
        ({"match": {"a": {"glob": "b"}}}, "spec.match.a: unknown field glob"),
    ],
)
def test_a_declaration_that_makes_no_sense_says_where(spec, message):
    if not message:
        assert declared(**spec)
        return
    with pytest.raises(InvalidTarget) as error:
        declared(**spec)
    assert str(error.value).startswith(f"invalid Target t.example.com: {message}")


# --- in the framework ----------------------------------------------------------------------------


def test_a_review_concerns_the_templates_of_its_own_target_alone():
    client = Client(targets=(TERRAFORM, GCP), drivers=(RegoDriver(),))
    rego = 'package p\nviolation[{"msg": msg}] { msg := sprintf("%v", [input.review.name]) }'
    for kind, target in (("Planned", TERRAFORM), ("Owned", GCP)):
        client.add_template(
            {
                "apiVersion": "templates.gatekeeper.sh/v1",
                "kind": "ConstraintTemplate",
                "metadata": {"name": kind.lower()},
                "spec": {
                    "crd": {"spec": {"names": {"kind": kind}}},
                    "targets": [{"target": target.name, "rego": rego}],
                },
            }
        )
        client.add_constraint(
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": kind,
                "metadata": {"name": "all"},
                "spec": {"severity": "high", "constraintVersion": "0.1.0"},
            }
        )

    def messages(document: Document) -> list[tuple[str, str]]:
        results = client.snapshot.review(document).results
        return [(result.constraint.kind, result.msg) for result in results]

    (planned,) = TERRAFORM.documents(change(), "f")
    (owned,) = GCP.documents(asset(), "f")
    assert messages(planned) == [("Planned", "a")]
    assert messages(owned) == [("Owned", "//compute/a")]
    assert messages(Document({}, "x")) == []


# --- Google Cloud's assets that are objects of a cluster ------------------------------------------

IN_A_CLUSTER = "//container.googleapis.com/projects/p/zones/z/clusters/c/k8s/namespaces/web"


def cluster_asset(asset_type="k8s.io/Namespace", version="v1", **data):
    """An object of a GKE cluster, as the inventory exports it."""
    data = {"metadata": {"name": "web", "annotations": {"a": "b"}}, **data}
    resource = {"version": version, "data": data}
    ancestors = ["projects/1", "organizations/2"]
    return asset(name=IN_A_CLUSTER, asset_type=asset_type, resource=resource, ancestors=ancestors)


@pytest.mark.parametrize(
    ("asset_type", "version", "api_version"),
    [("k8s.io/Namespace", "v1", "v1"), ("apps/Deployment", "v1", "apps/v1")],
)
def test_an_asset_in_a_cluster_is_reviewed_as_its_object(asset_type, version, api_version):
    (found,) = GCP.documents(cluster_asset(asset_type, version), "file.json")

    assert found.target == "admission.k8s.gatekeeper.sh"
    assert found.name == IN_A_CLUSTER
    assert found.value["apiVersion"] == api_version
    assert found.value["kind"] == asset_type.partition("/")[2]
    path = {"validator.forsetisecurity.org/ancestorPath": "organizations/2/projects/1"}
    assert found.value["metadata"] == {"name": "web", "annotations": {"a": "b", **path}}


def test_policies_for_a_cluster_are_asked_about_what_an_inventory_has_of_it():
    policies = Client(targets=TARGETS, drivers=[RegoDriver()])
    policies.add_template(template())
    policies.add_template(template("OfAssets", target={"target": GCP.name}))
    kinds = [{"apiGroups": [""], "kinds": ["Namespace"]}]
    policies.add_constraint(constraint(match={"kinds": kinds}))
    policies.add_constraint(constraint("OfAssets"))

    def kinds_found(value):
        (document,) = GCP.documents(value, "file.json")
        return [one.constraint.kind for one in policies.snapshot.review(document).results]

    assert kinds_found(cluster_asset()) == ["K8sDeny"]
    assert kinds_found(cluster_asset("k8s.io/Pod")) == []
    assert kinds_found(asset()) == ["OfAssets"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (cluster_asset("Namespace"), 'of form "<group>/<kind>"'),
        (cluster_asset(version=None), r"resource\.version field not found"),
        (cluster_asset(metadata=7), r"resource\.data\.metadata must be an object"),
    ],
)
def test_an_asset_that_is_no_object_after_all_is_reported(broken, message):
    with pytest.raises(ReviewError, match=message):
        list(GCP.documents(broken, "file.json"))
