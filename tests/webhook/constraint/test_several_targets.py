"""A template for several targets: each is asked by its own code, and matches by its own fields."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import constraint, pod, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.declared import read_target
from webhook.constraint.targets.known import ADMISSION_ALONE, DOCUMENT_TARGETS, TARGETS

TERRAFORM = "validation.resourcechange.terraform.cloud.google.com"
ADMISSION = "admission.k8s.gatekeeper.sh"


def client(ask=None, *targets):
    return Client(targets=(*TARGETS, *targets), drivers=[RegoDriver()], reviewed_targets=ask)


def both(*names, rego="true"):
    """A template that says of each target which it is."""
    document = template()
    document["spec"]["targets"] = [
        {"target": name, "rego": f'package p\nviolation[{{"msg": "{name}"}}] {{ {rego} }}'}
        for name in names
    ]
    return document


def messages(found, value):
    return [result.msg for result in found.snapshot.review(value).results]


def change(address):
    fields = {"name": "a", "address": address, "type": "t", "change": {"actions": ["create"]}}
    (document,) = DOCUMENT_TARGETS["terraform"].documents(fields, "plan.json")
    return document


@pytest.mark.parametrize("order", [(TERRAFORM, ADMISSION), (ADMISSION, TERRAFORM)])
def test_each_target_is_asked_by_its_code_and_matches_by_its_fields(order):
    policies = client()
    policies.add_template(both(*order))
    match = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}], "excludedAddresses": ["module.**"]}
    policies.add_constraint(constraint(match=match))

    assert messages(policies, AugmentedObject(pod())) == [ADMISSION]
    assert messages(policies, AugmentedObject({**pod(), "kind": "Service"})) == []
    assert messages(policies, change("a.b")) == [TERRAFORM]
    assert messages(policies, change("module.a.b")) == []
    (entry,) = policies.snapshot.entries
    assert entry.target.name == ADMISSION, "whatever asks about a cluster finds it in front"
    assert policies.remove_constraint("K8sDeny", "c")
    assert messages(policies, change("a.b")) == []


def test_a_match_that_one_of_its_targets_refuses_is_refused():
    policies = client()
    policies.add_template(both(ADMISSION, TERRAFORM))

    with pytest.raises(InvalidConstraint, match=r"invalid glob in spec\.match\.addresses"):
        policies.add_constraint(constraint(match={"addresses": ["a.$"]}))
    with pytest.raises(InvalidConstraint, match="unknown"):
        policies.add_constraint(constraint(match={"addressess": ["a.b"]}))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((TERRAFORM, TERRAFORM), f'target "{TERRAFORM}" is named twice'),
        ((ADMISSION, "nobody's"), 'target "nobody\'s" not recognized'),
        ((ADMISSION, "names.example.com"), "means something else by spec.match.name"),
    ],
)
def test_targets_that_cannot_be_together_are_refused(names, message):
    metadata = {"name": "names.example.com"}
    declared = read_target({"metadata": metadata, "spec": {"match": {"name": {"path": "name"}}}})

    with pytest.raises(InvalidTemplate) as refusal:
        client(None, declared).add_template(both(*names))

    assert message in str(refusal.value)


def test_code_for_any_target_that_does_not_compile_breaks_the_template():
    policies = client()
    broken = both(ADMISSION, TERRAFORM)
    broken["spec"]["targets"][1]["rego"] = "package p\nviolation[{"

    with pytest.raises(InvalidTemplate):
        policies.add_template(broken)

    policies.add_template(both(ADMISSION, TERRAFORM))
    policies.add_constraint(constraint())
    with pytest.raises(InvalidTemplate):
        policies.add_template(broken)
    assert messages(policies, change("a.b")) == [TERRAFORM], "the last good revision stays"
    with pytest.raises(InvalidTemplate, match="may not change targets"):
        policies.add_template(both(ADMISSION))


def test_policies_for_targets_that_are_not_asked_about_are_checked_and_nothing_else():
    server = client(ADMISSION_ALONE)
    server.add_template(both(TERRAFORM))
    server.add_constraint(constraint())

    snapshot = server.snapshot
    assert (snapshot.entries, snapshot.constraints, snapshot.templates) == ((), (), ())
    assert list(snapshot.targets) == [ADMISSION]
    with pytest.raises(InvalidConstraint, match="invalid glob"):
        server.add_constraint(constraint(match={"addresses": ["a.$"]}))
    other = client(ADMISSION_ALONE)
    other.adopt(snapshot)
    other.validate_constraint(constraint())
    assert server.remove_template("k8sdeny")


def test_a_target_that_is_declared_anew_takes_its_templates_with_it():
    def declared(**match):
        return read_target({"metadata": {"name": "t.example.com"}, "spec": {"match": match}})

    policies = client(None, declared(images={}))
    policies.add_template(both("t.example.com"))
    policies.add_constraint(constraint(match={"images": ["a"]}))

    policies.set_target(declared(paths={}))

    assert policies.snapshot.entries == ()
    policies.add_template(both("t.example.com"))
    with pytest.raises(InvalidConstraint):
        policies.add_constraint(constraint(match={"images": ["a"]}))
