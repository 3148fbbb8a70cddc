"""Policies in force after a restart, and requests for an older revision."""

import copy

import pytest

from tests.webhook.controllers.bench import (
    BROKEN,
    CONSTRAINT_STATUS,
    INGRESS,
    KIND,
    REGO,
    TEMPLATE_STATUS,
    Bench,
    constraint,
    requiring_ingress,
    template,
)
from webhook.api.revision import ROLLBACK, digest_of, read_revision, revision_object
from webhook.controllers.object_faults import TEMPLATES
from webhook.controllers.revisions.revisions import InForce, newest_first, surplus, target_of

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}


class Kept:
    """Revisions in memory."""

    def __init__(self, *documents):
        self.revisions = []
        for document in documents:
            self.keep(document)

    def keep(self, document):
        """Keep an object as it is."""
        self.revisions.append(read_revision(revision_object(document, digest_of(document))))

    def of(self, uid):
        """Returns the revisions of an object."""
        return [item for item in self.revisions if item.uid == uid]

    def refusal(self, document, digest):
        """None is known."""
        del document, digest
        return ""


def bench(*documents, **options):
    return Bench(revisions=Kept(*documents), **options)


def rolled_back(document, to):
    document = copy.deepcopy(document)
    document["metadata"]["annotations"] = {ROLLBACK: to}
    return document


def saying(message, generation=1):
    return template(f'package always\nviolation[{{"msg": "{message}"}}] {{ true }}', generation)


def source(found):
    """The Rego that is in force."""
    (entry,) = found.client.snapshot.entries
    return entry.template.document["spec"]["targets"][0]["rego"]


def test_a_template_that_is_broken_at_the_start_has_its_last_good_revision():
    found = bench(saying("one"), saying("two", 2))
    found.apply([template(BROKEN, generation=3)], [constraint()])

    assert found.enforced == ["all"]
    assert '"two"' in source(found)
    status = found.status(TEMPLATE_STATUS)
    assert (status["observedGeneration"], status["activeGeneration"]) == (3, 2)
    assert status["activeDigest"] == digest_of(saying("two", 2))
    assert status["activeRevision"].startswith("k8salways-2-")
    assert status["errors"][0]["code"] == "ingest_error"
    assert found.status(CONSTRAINT_STATUS)["enforced"] is True
    assert found.controller.not_newest["template", "earlier"] == 1


def test_a_kept_revision_that_is_broken_by_now_leaves_the_one_before_it():
    """As after an upgrade, or with another set of built-in functions."""
    found = bench(saying("one"), template("package always\nviolation[{", 2))
    found.apply([template(BROKEN, generation=3)])

    assert found.status(TEMPLATE_STATUS)["activeGeneration"] == 1


def test_a_constraint_that_is_broken_at_the_start_has_its_last_good_revision():
    broken = constraint(generation=2, action="dryrun")
    broken["spec"]["match"] = {"scope": 7}
    found = bench(constraint())
    found.apply([template()], [broken])

    assert found.enforced == ["all"]
    assert found.client.snapshot.constraints[0].enforcement_action == "deny"
    status = found.status(CONSTRAINT_STATUS)
    assert (status["observedGeneration"], status["activeGeneration"]) == (2, 1)
    assert status["enforced"] is True
    assert "scope" in status["errors"][0]["message"]


def test_a_constraint_that_its_template_refuses_by_now_is_enforced_as_it_was():
    """The template's new schema would not have taken it out of force in a running replica."""
    old = constraint()
    old["spec"]["parameters"] = {"word": 7}
    stricter = template()
    stricter["spec"]["crd"]["spec"]["validation"] = {"openAPIV3Schema": SCHEMA}
    without, found = bench(), bench(old)
    without.apply([stricter], [old])
    found.apply([stricter], [old])

    assert without.enforced == []
    assert found.enforced == ["all"]
    assert "word" in found.status(CONSTRAINT_STATUS)["errors"][0]["message"]


def test_revisions_of_another_object_of_the_name_do_not_count():
    found = bench(template(uid="before"))
    found.apply([template(BROKEN)], [constraint()])

    assert found.enforced == []
    assert found.status(TEMPLATE_STATUS)["activeGeneration"] == 0
    assert found.controller.not_newest["template", "none"] == 1


def test_a_template_with_a_last_good_revision_does_not_hold_readiness_back():
    """Even where broken ones do: it is enforced."""
    found = bench(template(), wait_for_broken=True)
    found.tracker.expect(TEMPLATES, ["k8salways"])
    found.apply([template(BROKEN, generation=2)], [constraint()])
    found.tracker.expect(f"{KIND}.constraints.gatekeeper.sh", ["all"])

    assert found.tracker.satisfied


def test_a_last_good_revision_keeps_the_constraint_s_kind_and_crd():
    """A template that names another kind is refused, and its constraints are watched on."""
    renamed = template(generation=2)
    renamed["spec"]["crd"]["spec"]["names"]["kind"] = "Other"
    found = bench(template())
    found.apply([renamed], [constraint()])

    assert found.controller.kinds == {KIND}
    assert set(found.controller.crds) == {"k8salways.constraints.gatekeeper.sh"}
    assert found.enforced == ["all"]


def test_the_annotation_asks_for_a_revision_and_its_removal_for_the_spec():
    kept = Kept(saying("one"), saying("two", 2))
    for revision in ("1", kept.revisions[0].name):
        found = Bench(revisions=kept)
        found.apply([saying("two", 2)], [constraint()])
        found.apply([rolled_back(saying("two", 2), revision)])
        assert '"one"' in source(found)
        status = found.status(TEMPLATE_STATUS)
        assert (status["observedGeneration"], status["activeGeneration"]) == (2, 1)
        assert status["rolledBackTo"] == revision
        assert "errors" not in status
        assert found.controller.not_newest["template", "rollback"] == 1

        found.apply([saying("two", 2)])
        assert '"two"' in source(found)
        assert "rolledBackTo" not in found.status(TEMPLATE_STATUS)


def test_a_roll_back_to_what_is_not_kept_is_an_error_and_the_spec_is_enforced():
    """So that replicas that start now do as those that run."""
    found = bench(saying("one"))
    found.apply([rolled_back(saying("two", 2), "7")], [constraint()])

    assert '"two"' in source(found)
    status = found.status(TEMPLATE_STATUS)
    assert status["errors"] == [
        {
            "code": "missing_revision",
            "message": f"annotation {ROLLBACK}: there is no revision '7'; kept generations: 1",
        }
    ]
    assert status["activeGeneration"] == 2


def test_a_revision_that_comes_later_is_rolled_back_to_then():
    kept = Kept()
    found = Bench(revisions=kept)
    found.apply([rolled_back(saying("two", 2), "1")], [constraint()])
    assert '"two"' in source(found)
    kept.keep(saying("one"))
    found.controller.revised([(TEMPLATES, "k8salways"), (KIND, "unknown"), ("Unknown", "x")])
    found.apply()

    assert '"one"' in source(found)


def test_without_the_annotation_a_broken_spec_has_the_newest_good_revision_again():
    """Not that which was rolled back to: a replica that starts now would not know of it."""
    found = bench(saying("one"), saying("two", 2))
    found.apply([rolled_back(template(BROKEN, 3), "1")], [constraint()])
    assert '"one"' in source(found)
    found.apply([template(BROKEN, 3)])

    assert '"two"' in source(found)
    assert found.status(TEMPLATE_STATUS)["activeGeneration"] == 2


def test_a_constraint_is_rolled_back_too():
    found = bench(constraint(action="dryrun"))
    found.apply([template()], [rolled_back(constraint(generation=2), "1")])

    assert found.client.snapshot.constraints[0].enforcement_action == "dryrun"
    assert found.status(CONSTRAINT_STATUS)["rolledBackTo"] == "1"


def test_a_kept_revision_is_withheld_until_its_own_data_is_synced():
    found = bench(template(annotations=requiring_ingress()))
    found.apply([template(BROKEN, generation=2)], [constraint()])
    assert found.enforced == []
    codes = [item["code"] for item in found.status(TEMPLATE_STATUS)["errors"]]
    assert codes == ["ingest_error", "missing_data"]

    found.controller.synced({INGRESS})
    found.apply()
    assert found.enforced == ["all"]

    found.controller.synced(set())
    found.apply()
    assert found.enforced == []


def test_what_is_in_force_is_reported_once_for_each_change():
    found = bench()
    found.apply([template()], [constraint()])
    good = found.controller.take_good()
    assert {key: item.generation for key, item in good.items()} == {
        (TEMPLATES, "k8salways"): 1,
        (KIND, "all"): 1,
    }
    assert found.controller.take_good() == {}
    found.apply([template(BROKEN, generation=2)])
    assert found.controller.take_good()[TEMPLATES, "k8salways"].generation == 1
    found.apply([None])
    assert found.controller.take_good() == {(TEMPLATES, "k8salways"): None, (KIND, "all"): None}


def generations(found):
    return [item.generation for item in found]


@pytest.mark.parametrize(
    ("active", "rollback", "dropped"),
    [(4, "", [2, 1]), (1, "", [2]), (4, "2", [1]), (4, "9", [2, 1])],
)
def test_what_is_in_force_or_asked_for_is_never_dropped(active, rollback, dropped):
    documents = [saying(f"number {number}", number) for number in (1, 2, 3, 4)]
    kept = Kept(*documents)
    document = documents[active - 1]

    found = surplus(kept.revisions, InForce(document, digest_of(document)), rollback, 2)
    assert generations(found) == dropped
    assert generations(newest_first(kept.revisions)) == [4, 3, 2, 1]


def test_of_two_revisions_of_a_generation_the_later_is_meant():
    """An annotation that decides may change without the generation."""
    early, late = (
        read_revision(
            made | {"metadata": made["metadata"] | {"creationTimestamp": f"2026-01-0{day}"}}
        )
        for day, made in enumerate(
            (revision_object(item, digest_of(item)) for item in (template(REGO), saying("late"))), 1
        )
    )
    assert target_of("1", [late, early]) is late


def test_what_is_of_a_generation_to_come_is_not_enforced():
    """After a restore of etcd a revision may be of one that the object has not reached."""
    found = bench(saying("good"), saying("another history", 7))
    found.apply([template(BROKEN, generation=2)])
    assert '"good"' in source(found)

    found = bench(saying("good"), saying("another history", 7))
    found.apply([rolled_back(template(BROKEN, generation=2), "7")])
    assert '"good"' in source(found)
    assert "there is no revision '7'" in found.status(TEMPLATE_STATUS)["errors"][0]["message"]
