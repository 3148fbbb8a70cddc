"""Expansion: what generators imply, reviewed with them."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.webhook.constraint.policies import client, constraint, deployment, expands, template
from webhook.api.gvk import GroupVersionKind
from webhook.constraint.expansion import (
    CYCLE,
    EXCESS,
    MADE_ENTRIES_MAX,
    MUTATED_BYTES_MAX,
    RESULTANTS_MAX,
    TOO_MUCH,
    Expansion,
    ExpansionSet,
    ExpansionTemplate,
    InvalidExpansion,
    read_expansion_template,
)
from webhook.constraint.review import AugmentedObject
from webhook.review.evaluation import with_implied


def expansion(*documents):
    return Expansion([read_expansion_template(document) for document in documents])


def test_a_generator_implies_what_its_template_holds():
    (resultant,) = expansion(expands()).expand(deployment())

    assert resultant.object == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"a": "b"},
            "namespace": "shop",
            "name": "web-pod",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "Web", "uid": ""}
            ],
        },
        "spec": {"containers": []},
    }
    assert deployment()["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


def test_what_is_implied_is_never_being_deleted():
    generator = deployment()
    generator["spec"]["template"]["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    (resultant,) = expansion(expands()).expand(generator)

    assert resultant.object == expansion(expands()).expand(deployment())[0].object


def test_other_kinds_imply_nothing():
    assert expansion(expands()).expand({**deployment(), "apiVersion": "apps/v1beta1"}) == []
    assert Expansion().expand(deployment()) == []


def test_what_is_implied_may_imply_more_and_comes_after_it():
    cron = expands(
        "jobs",
        "spec.jobTemplate",
        {"group": "batch", "version": "v1", "kind": "Job"},
        {"groups": ["batch"], "versions": ["v1"], "kinds": ["CronJob"]},
    )
    job = expands("pods", applies={"groups": ["batch"], "versions": ["v1"], "kinds": ["Job"]})
    thing = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}},
    }

    found = expansion(job, cron).expand(thing)

    assert [(item.object["kind"], item.object["metadata"]["name"]) for item in found] == [
        ("Pod", "c-job-pod"),
        ("Job", "c-job"),
    ]


def chain(length):
    """Templates of which each makes what the next one expands, and an object for the first."""
    templates = [
        expands(
            f"level-{level}",
            "spec.template",
            {"group": "levels", "version": "v1", "kind": f"L{level + 1}"},
            {"groups": ["levels"], "versions": ["v1"], "kinds": [f"L{level}"]},
        )
        for level in range(length)
    ]
    content = {}
    for _ in range(length):
        content = {"spec": {"template": content}}
    return templates, {
        "apiVersion": "levels/v1",
        "kind": "L0",
        "metadata": {"name": "l"},
        **content,
    }


def test_what_is_implied_by_30_levels_is_refused_and_by_29_expanded():
    """As Gatekeeper's `maxRecursionDepth`."""
    templates, thing = chain(29)
    assert [item.object["kind"] for item in expansion(*templates).expand(thing)] == [
        f"L{level}" for level in range(29, 0, -1)
    ]

    templates, thing = chain(30)
    with pytest.raises(InvalidExpansion, match="maximum recursion depth of 30 reached"):
        expansion(*templates).expand(thing)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**expands(), "metadata": {}}, "ExpansionTemplate has empty name field"),
        (expands("x" * 64), "name must be less than 64 characters"),
        (expands(source=""), "pods has empty source field"),
        (expands(generated={"kind": ""}), "pods has empty generatedGVK field"),
        (
            expands(generated={"version": "v1", "kind": ""}),
            r"pods has empty generatedGVK\.kind field",
        ),
        (expands(applyTo=[]), "pods must specify ApplyTo"),
        (expands(applyTo=3), "pods has fields of a wrong type"),
        (
            expands(generated={"group": "apps", "version": "v1", "kind": "Deployment"}),
            "generates GVK apps/v1, Kind=Deployment, but also applies to that same GVK",
        ),
    ],
)
def test_a_template_that_is_none_is_refused(document, message):
    with pytest.raises(InvalidExpansion, match=message):
        read_expansion_template(document)


def test_templates_that_go_round_are_refused():
    kinds = ["A", "B", "C"]
    documents = [
        expands(
            f"t{number}",
            generated={"group": "", "version": "v1", "kind": kinds[(number + 1) % 3]},
            applies={"groups": [""], "versions": ["v1"], "kinds": [kinds[number]]},
        )
        for number in range(3)
    ]

    assert expansion(*documents[:2])
    with pytest.raises(InvalidExpansion, match="upserting template t2: template forms expansion"):
        expansion(*documents)


def test_a_generator_without_the_source_cannot_be_expanded():
    with pytest.raises(
        InvalidExpansion, match=r'could not find source field "spec\.template" in resource Web'
    ):
        expansion(expands()).expand({**deployment(), "spec": {}})


def test_implied_results_say_so_and_take_the_templates_action():
    subject = client(
        template(), constraint(match={"kinds": [{"kinds": ["Pod"]}], "source": "Generated"})
    ).snapshot
    parent = subject.review(AugmentedObject(deployment()))
    (resultant,) = expansion(expands(enforcementAction="warn")).expand(deployment())
    child = subject.review(AugmentedObject(resultant.object, source="Generated"))

    answer = with_implied(parent, [(resultant, child)])

    assert [(result.msg, result.enforcement_action) for result in answer.results] == [
        ("[Implied by pods] no", "warn")
    ]


def leading(name, kind, to):
    """A template from one kind to another."""
    of, made = (GroupVersionKind("", "v1", each) for each in (kind, to))
    return ExpansionTemplate(name, frozenset([of]), ("spec",), made)


def known(*templates):
    templates_known = ExpansionSet()
    for template_ in templates:
        templates_known.add(template_)
    return templates_known


def test_templates_by_which_one_object_would_imply_hundreds_are_left_out_and_say_so():
    """Two for each of 18 kinds in a row made 500,000 of one ConfigMap, and ended replicas."""
    templates = known(
        *(leading(f"t{at:02}{side}", f"K{at}", f"K{at + 1}") for at in range(18) for side in "ab")
    )
    assert set(templates.faults.values()) == {EXCESS}
    first = {"apiVersion": "v1", "kind": "K0", "metadata": {"name": "a"}}
    spec: dict = {}
    for _ in range(20):
        spec = {"spec": spec}
    assert 0 < len(templates.expansion.expand({**first, **spec})) <= RESULTANTS_MAX
    assert templates.expansion.names == templates.names - templates.faults.keys()


def test_a_chain_of_thousands_of_templates_ends_nothing():
    """The chain raised a RecursionError, and no replica followed the cluster any more."""
    templates = known(*(leading(f"t{at:04}", f"K{at}", f"K{at + 1}") for at in range(1500)))
    assert templates.expansion.names
    assert set(templates.faults.values()) == {EXCESS}


def test_once_there_are_fewer_templates_all_are_used_again():
    templates = known(*(leading(f"t{at}", "K", f"Made{at}") for at in range(RESULTANTS_MAX + 1)))
    assert len(templates.faults) == 1
    templates.remove("t0")
    assert templates.faults == {}


def test_templates_of_circles_are_those_that_lead_to_themselves():
    """One walk finds them, despite overlapping circles and templates around them."""
    chance = random.Random(7)
    for _ in range(300):
        kinds = [f"K{at}" for at in range(chance.randint(2, 7))]
        pairs = [pair for pair in itertools.permutations(kinds, 2) if chance.random() < 0.25]
        templates = [leading(f"t{at}", *pair) for at, pair in enumerate(pairs)]
        after = {kind: {to for of, to in pairs if of == kind} for kind in kinds}
        for kind in kinds:  # Warshall's closure
            for of in kinds:
                if kind in after[of]:
                    after[of] |= after[kind]
        circular = {
            one.name for one, (of, to) in zip(templates, pairs, strict=True) if of in after[to]
        }
        found = known(*templates)
        assert found.cyclic == circular
        assert {name for name, why in found.faults.items() if why == CYCLE} == circular
        if circular:
            first = min(at for at in range(len(templates)) if known(*templates[: at + 1]).cyclic)
            with pytest.raises(InvalidExpansion, match=f"upserting template t{first}: "):
                Expansion(templates)
        else:
            assert Expansion(templates).names == {one.name for one in templates}


def test_a_circle_of_thousands_of_templates_is_found_without_recursion():
    names = [f"t{at:04}" for at in range(3000)]
    templates = [
        leading(name, f"K{at}", f"K{(at + 1) % len(names)}") for at, name in enumerate(names)
    ]
    assert known(*templates).cyclic == frozenset(names)


def padded(count):
    """A Deployment whose Pods have so many fields more."""
    document = deployment()
    document["spec"]["template"] |= {f"field-{at}": at for at in range(count)}
    return document


def test_an_object_whose_resultants_hold_too_much_beside_what_they_share_is_not_expanded():
    templates = [read_expansion_template(expands(f"pods-{at}")) for at in range(10)]
    large = padded(MADE_ENTRIES_MAX // 10)

    assert len(Expansion(templates[:9]).expand(large)) == 9
    with pytest.raises(InvalidExpansion) as refused:
        Expansion(templates).expand(large)
    assert str(refused.value) == TOO_MUCH


def test_mutated_resultants_count_as_large_as_the_object_and_others_as_nothing():
    templates = Expansion([read_expansion_template(expands(f"pods-{at}")) for at in range(9)])
    size = MUTATED_BYTES_MAX // 8
    mutated = []

    def changed(document):
        mutated.append(document)
        return {**document, "spec": {}}

    assert len(templates.expand(deployment(), settled=changed, size=size // 2)) == 9
    assert len(templates.expand(deployment(), settled=lambda same: same, size=size)) == 9
    del mutated[:]
    with pytest.raises(InvalidExpansion) as refused:
        templates.expand(deployment(), settled=changed, size=size)
    assert str(refused.value) == TOO_MUCH
    assert len(mutated) == 9


def test_what_mutators_turn_into_generators_is_bounded_too():
    """Templates alone bound what they make; of a kind that mutators changed they know nothing."""
    document = deployment()
    document["spec"]["template"]["spec"]["template"] = {}
    inner = document["spec"]["template"]["spec"]

    def turned(made):
        return {**made, "apiVersion": "apps/v1", "kind": "Deployment", "spec": inner}

    inner["template"] = {"spec": inner}
    several = Expansion([read_expansion_template(expands(f"pods-{at}")) for at in range(2)])
    with pytest.raises(InvalidExpansion, match=r"recursion depth|implies more than"):
        several.expand(document, settled=turned)
