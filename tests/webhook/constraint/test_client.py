"""The client: what it accepts, what it refuses, and what stays in force meanwhile."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import (
    client,
    constraint,
    echo_template,
    pod,
    template,
)
from webhook.constraint.errors import (
    CompileError,
    InvalidConstraint,
    InvalidData,
    InvalidTemplate,
    MissingTemplate,
)
from webhook.constraint.review import AugmentedObject


def messages(subject, obj=None, **options):
    found = subject.snapshot.review(AugmentedObject(obj or pod()), **options)
    assert not found.faults
    return [result.msg for result in found.results]


def changed(document, **fields):
    document["spec"] |= fields
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "not a ConstraintTemplate"),
        (
            {**template(), "apiVersion": "templates.gatekeeper.sh/v2"},
            'unsupported version "v2", supported: v1, v1beta1, v1alpha1',
        ),
        (
            changed(template(), targets=None),
            'field "targets" not specified in ConstraintTemplate spec',
        ),
        (
            changed(template(), targets=[]),
            "no targets specified: ConstraintTemplate must specify one target",
        ),
        (changed(template(), targets=[{}]), "target name must not be empty"),
        (
            changed(template(), targets=[{"target": "x"}]),
            'target "x" not recognized, known targets [admission.k8s.gatekeeper.sh json]',
        ),
        (
            changed(template(), crd={}),
            'ConstraintTemplate "k8sdeny" does not specify CRD Kind',
        ),
        (
            {**template(), "metadata": {"name": "x"}},
            (
                "the ConstraintTemplate's name \"x\" is not equal to the lowercase of CRD's Kind: "
                '"k8sdeny"'
            ),
        ),
        (template(target={"operations": ["READ"]}), 'unsupported value "READ"'),
        (template(target={"libs": "x"}), "spec.targets[0].libs must be an array of strings"),
        ({**template(), "spec": "x"}, "spec must be an object"),
    ],
)
def test_a_template_that_is_none_is_refused_naming_what_is_wrong(document, message):
    with pytest.raises(InvalidTemplate) as refusal:
        client().add_template(document)

    assert str(refusal.value).startswith("invalid ConstraintTemplate: ")
    assert message in str(refusal.value)


def test_a_template_without_source_for_any_driver_is_refused_naming_the_drivers():
    document = template(rego="", target={"code": [{"engine": "CEL", "source": {}}]})

    with pytest.raises(InvalidTemplate) as refusal:
        client().add_template(document)

    assert (
        str(refusal.value)
        == "no language driver is installed that handles this constraint template: "
        'available drivers: map[Echo:2 Rego:1], wanted ""'
    )


def test_the_first_driver_that_a_template_has_source_for_takes_it():
    rego = {"rego": 'package p\nviolation[{"msg": "rego"}] { true }'}
    code = [{"engine": "Echo", "source": ["echo"]}, {"engine": "Rego", "source": rego}]

    subject = client(template(rego="", target={"code": code}), constraint())

    assert messages(subject) == ["rego"]


def test_rego_of_the_legacy_field_takes_the_place_of_a_source():
    rego = {"rego": 'package p\nviolation[{"msg": "source"}] { true }'}
    code = [{"engine": "Rego", "source": rego}]

    assert messages(client(template(target={"code": code}), constraint())) == ["no"]


def test_a_source_says_its_version_of_rego():
    v1 = 'package p\nviolation contains {"msg": "v1"} if { true }'
    code = [{"engine": "Rego", "source": {"rego": v1, "version": "v1"}}]
    subject = client(template(rego="", target={"code": code}), constraint())

    assert messages(subject) == ["v1"]
    with pytest.raises(CompileError, match="rego_parse_error"):
        client(template(rego=v1))


def test_libraries_are_there_for_the_template():
    rego = (
        "package p\nimport data.lib.words\n"
        'violation[{"msg": msg}] { msg := words.shout(input.review.object.metadata.name) }'
    )
    library = 'package lib.words\nshout(x) = y { y := sprintf("%v!", [upper(x)]) }'

    assert messages(client(template(rego=rego, target={"libs": [library]}), constraint())) == [
        "WEB!"
    ]


def test_adding_the_same_again_changes_nothing():
    subject = client(template(), constraint())
    before = subject.snapshot

    assert not subject.add_template(template())
    assert not subject.add_constraint(constraint())
    assert subject.snapshot is before


@pytest.mark.parametrize("field", ["generation", "uid"])
def test_what_changed_and_changed_back_is_known_by_its_newest_generation(field):
    """Records tell it, and an audit writes of no other."""
    subject = client(template(), constraint())
    before = subject.snapshot
    later = [template(), constraint()]
    for document in later:
        document["metadata"][field] = 3
    evaluator = before.entries[0].evaluator

    assert subject.add_template(later[0])
    assert subject.add_constraint(later[1])
    snapshot = subject.snapshot
    (entry,) = snapshot.entries
    assert entry.template.document["metadata"][field] == 3
    assert snapshot.constraints[0].document["metadata"][field] == 3
    assert (entry.evaluator, snapshot.digest) == (evaluator, before.digest)
    assert messages(subject)
    assert not subject.add_template(later[0])
    assert not subject.add_constraint(later[1])


def test_a_snapshot_taken_is_not_touched_by_later_changes():
    subject = client(template(), constraint())
    before = subject.snapshot

    subject.add_constraint(constraint(name="d"))
    subject.remove_constraint("K8sDeny", "c")

    assert [item.name for item in before.constraints] == ["c"]
    assert [item.name for item in subject.snapshot.constraints] == ["d"]


def test_a_template_that_no_longer_compiles_goes_on_enforcing():
    subject = client(template(), constraint())
    before = subject.snapshot.digest

    with pytest.raises(CompileError):
        subject.add_template(template(rego="package p\nviolation[{"))
    with pytest.raises(InvalidTemplate):
        subject.add_template(template(schema={"type": "object", "properties": {"x": {}}}))

    assert messages(subject) == ["no"]
    assert before == subject.snapshot.digest


@pytest.mark.parametrize("before", [[], [template(), constraint()]], ids=["never", "once"])
def test_a_template_that_is_refused_again_changes_nothing(before):
    """Files are looked at anew for as long as one is broken."""
    subject = client(*before)
    seen = []
    for fault in ("x", "x", "y"):
        with pytest.raises(CompileError):
            subject.add_template(template(rego=f"package p\nviolation[{{ {fault}"))
        seen.append(subject.snapshot)

    assert seen[0] is seen[1]
    assert seen[2] is not seen[1]


def test_a_constraint_that_is_refused_goes_on_enforcing():
    subject = client(template(), constraint())

    with pytest.raises(InvalidConstraint):
        subject.add_constraint(constraint(match={"kinds": "x"}))

    assert messages(subject) == ["no"]


def test_one_bad_object_leaves_the_others_alone():
    subject = client(template(), constraint())

    with pytest.raises(CompileError):
        subject.add_template(template("K8sBad", "package p\nviolation[x] { y }"))
    with pytest.raises(MissingTemplate) as missing:
        subject.add_constraint(constraint("K8sBad"))

    assert str(missing.value) == (
        'missing ConstraintTemplate: template "k8sbad" has no revision that can be used'
    )
    assert messages(subject) == ["no"]


def test_a_template_with_constraints_may_not_change_its_target():
    subject = client(template(), constraint())

    with pytest.raises(InvalidTemplate) as refusal:
        subject.add_template(template(target={"target": "json"}))

    assert (
        str(refusal.value) == "ConstraintTemplates with Constraints may not change targets: "
        "old targets [admission.k8s.gatekeeper.sh], new targets [json]"
    )


def test_a_template_replaced_keeps_its_constraints():
    subject = client(template(), constraint())

    assert subject.add_template(template(rego='package p\nviolation[{"msg": "new"}] { true }'))

    assert messages(subject) == ["new"]


def test_removing_a_template_removes_its_constraints():
    subject = client(template(), constraint(), echo_template("hi"), constraint("K8sEcho"))

    assert subject.remove_template("k8sdeny")
    assert not subject.remove_template("k8sdeny")
    assert messages(subject) == ["hi"]
    assert not subject.remove_constraint("K8sDeny", "c")
    assert client(echo_template("hi"), constraint("K8sEcho")).snapshot.digest == (
        subject.snapshot.digest
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "K8sDeny"}, "invalid Constraint: missing metadata.name"),
        ({"metadata": {"name": "c"}}, "invalid Constraint: missing kind"),
        (
            {"apiVersion": "v1", "kind": "K8sDeny", "metadata": {"name": "c"}},
            (
                'invalid Constraint: wrong API Group for Constraint "c", got "" but need '
                '"constraints.gatekeeper.sh"'
            ),
        ),
        (
            {**constraint(), "kind": "K8sDENY"},
            'invalid Constraint: wrong kind "K8sDENY" for constraint "c"; want "K8sDeny"',
        ),
        (
            {**constraint(), "apiVersion": "constraints.gatekeeper.sh/v1"},
            (
                'invalid Constraint: unsupported version "v1" for Constraint "c"; supported versions: '
                "map[v1alpha1:true v1beta1:true]"
            ),
        ),
    ],
)
def test_a_constraint_that_is_none_is_refused_with_gatekeepers_words(document, message):
    with pytest.raises(InvalidConstraint) as refusal:
        client(template()).validate_constraint(document)

    assert message == str(refusal.value)


def test_the_digest_is_that_of_the_policy_whatever_its_order_and_status():
    documents = [
        template(),
        echo_template("hi"),
        constraint(),
        constraint(name="d"),
        constraint("K8sEcho"),
    ]
    one = client(*documents)
    with_status = {**constraint(), "status": {"byPod": []}}
    with_status["metadata"] = {"name": "c", "resourceVersion": "7", "generation": 3}
    other = client(documents[1], documents[4], documents[0], documents[3], with_status)

    assert one.snapshot.digest == other.snapshot.digest
    other.add_constraint(constraint(enforcementAction="warn"))
    assert one.snapshot.digest != other.snapshot.digest


def test_data_is_the_inventory_by_scope_version_kind_and_name():
    subject = client()
    subject.add_data(pod())
    subject.add_data({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    subject.add_data(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}}
    )

    inventory = subject.snapshot.inventory
    assert inventory["namespace"]["shop"]["v1"]["Pod"]["web"]["metadata"]["name"] == "web"
    assert list(inventory["namespace"]["n"]["apps/v1"]["Deployment"]) == ["d"]
    assert list(inventory["cluster"]["v1"]["Namespace"]) == ["shop"]
    assert list(subject.snapshot.namespaces) == ["shop"]


def test_data_removed_leaves_no_empty_level_and_snapshots_alone():
    subject = client()
    subject.add_data(pod())
    before = subject.snapshot.inventory
    subject.add_data(pod("api"))
    subject.remove_data(pod())

    assert list(before["namespace"]["shop"]["v1"]["Pod"]) == ["web"]
    assert list(subject.snapshot.inventory["namespace"]["shop"]["v1"]["Pod"]) == ["api"]
    subject.remove_data(pod("api"))
    subject.remove_data(pod("unheard"))
    assert subject.snapshot.inventory == {}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"kind": "Pod", "metadata": {"name": "x"}},
            "invalid request object: resource x has no version",
        ),
        (
            {"apiVersion": "v1", "metadata": {"name": "x"}},
            "invalid request object: resource x has no kind",
        ),
    ],
)
def test_what_cannot_be_data_is_refused(document, message):
    with pytest.raises(InvalidData) as refusal:
        client().add_data(document)

    assert message == str(refusal.value)


def test_a_copy_shares_policy_and_not_data():
    subject = client(template(), constraint())
    subject.add_data(pod())
    other = subject.copy()
    other.remove_template("k8sdeny")

    assert other.snapshot.inventory == {}
    assert messages(subject) == ["no"]
    assert messages(other) == []
