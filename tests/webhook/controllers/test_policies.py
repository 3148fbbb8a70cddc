"""Templates and constraints of a cluster: what is enforced, what is said of it, and when."""

import copy

import pytest

from tests.webhook.controllers.bench import (
    BROKEN,
    CONSTRAINT_STATUS,
    INGRESS,
    KIND,
    TEMPLATE_STATUS,
    Bench,
    constraint,
    requiring_ingress,
    template,
)
from webhook.api.revision import digest_of
from webhook.constraint import schema


@pytest.fixture
def bench():
    return Bench()


def test_a_template_and_its_constraint_are_enforced_and_said_to_be(bench):
    bench.apply([template()], [constraint()])

    assert bench.enforced == ["all"]
    assert bench.controller.kinds == {KIND}
    assert bench.status(TEMPLATE_STATUS) == {
        "id": "waddle-abc",
        "templateUID": "t",
        "operations": ["webhook"],
        "observedGeneration": 1,
        "activeGeneration": 1,
        "activeDigest": digest_of(template()),
        "since": "time 1",
    }
    assert bench.status(CONSTRAINT_STATUS) == {
        "id": "waddle-abc",
        "constraintUID": "c",
        "operations": ["webhook"],
        "observedGeneration": 1,
        "enforced": True,
        "activeGeneration": 1,
        "activeDigest": digest_of(constraint()),
        "since": "time 1",
    }


def test_a_template_s_schema_is_checked_once_when_it_is_applied(bench, monkeypatch):
    checked = []

    def create_crd(template, target):
        checked.append(template.name)
        return made(template, target)

    made = schema.create_crd
    monkeypatch.setattr(schema, "create_crd", create_crd)
    bench.apply([template()])
    assert checked == ["k8salways"]
    assert list(bench.controller.crds) == ["k8salways.constraints.gatekeeper.sh"]


def test_nothing_is_said_before_the_snapshot_is_published(bench):
    bench.controller.template("k8salways", template())

    assert bench.controller.statuses == {}


def test_an_unchanged_object_leaves_its_status_as_it_was(bench):
    bench.apply([template()], [constraint()])
    before = copy.deepcopy(dict(bench.controller.statuses))
    bench.apply([template()], [constraint()])

    assert bench.controller.statuses == before


def test_a_template_that_breaks_keeps_its_last_good_revision_in_force(bench):
    bench.apply([template()], [constraint()])
    bench.apply([template(BROKEN, generation=2)])

    assert bench.enforced == ["all"]
    status = bench.status(TEMPLATE_STATUS)
    assert (status["observedGeneration"], status["activeGeneration"]) == (2, 1)
    assert status["errors"][0]["code"] == "ingest_error"
    assert "rego_parse_error" in status["errors"][0]["message"]
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True
    assert list(bench.controller.faults().values()) == [True]


def test_a_template_broken_from_the_start_leaves_its_constraint_unenforced(bench):
    bench.apply([template(BROKEN)], [constraint()])

    assert bench.enforced == []
    status = bench.status(CONSTRAINT_STATUS)
    assert status["enforced"] is False
    assert "missing ConstraintTemplate" in status["errors"][0]["message"]
    assert list(bench.controller.faults().values()) == [False, False]  # nothing stays


def test_what_is_found_as_policies_are_applied_is_reported_but_for_what_is_missing(bench):
    bench.apply([template(BROKEN)], [constraint()])
    (found,) = bench.controller.take_generation_faults()
    assert (found.name, found.verdict) == ("k8salways", "refused")
    assert "rego_parse_error" in found.message
    bench.apply([template(generation=2)])
    assert bench.controller.take_generation_faults() == []


def test_a_constraint_that_came_before_its_template_is_enforced_with_it(bench):
    bench.apply([], [constraint()])
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is False
    bench.apply([template()])

    assert bench.enforced == ["all"]
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True


def test_a_repaired_template_enforces_its_constraints_again(bench):
    bench.apply([template(BROKEN)], [constraint()])
    bench.apply([template(generation=2)])

    assert bench.enforced == ["all"]
    assert "errors" not in bench.status(TEMPLATE_STATUS)
    assert "errors" not in bench.status(CONSTRAINT_STATUS)


def test_a_constraint_that_breaks_keeps_its_last_good_revision(bench):
    bench.apply([template()], [constraint()])
    broken = constraint(generation=2)
    broken["spec"]["match"] = {"scope": 7}
    bench.apply([], [broken])

    assert bench.enforced == ["all"]
    status = bench.status(CONSTRAINT_STATUS)
    assert (status["observedGeneration"], status["activeGeneration"]) == (2, 1)
    assert status["enforced"] is True
    assert status["errors"][0]["message"].startswith("could not cache constraint: ")


def test_deleted_objects_leave_neither_policy_nor_status(bench):
    bench.apply([template()], [constraint()])
    bench.apply([], [None])
    assert bench.enforced == []
    assert set(bench.controller.statuses) == {TEMPLATE_STATUS}
    bench.apply([None])

    assert bench.controller.statuses == {}
    assert bench.controller.kinds == frozenset()


def test_a_deleted_template_takes_its_constraints_along(bench):
    bench.apply([template()], [constraint()])
    bench.apply([None])

    assert bench.enforced == []
    assert bench.controller.statuses == {}


def test_a_template_of_another_name_takes_over_no_kind_and_takes_none_along(bench):
    """It creates nothing; its namesake's constraints stay enforced and followed."""
    bench.apply([template()], [constraint()])
    misnamed = template(uid="other")
    misnamed["metadata"]["name"] = "k8snever"

    bench.controller.template("k8snever", misnamed)
    bench.controller.published()
    assert bench.controller.kind("k8snever") is None
    assert bench.status("waddle--abc-k8snever")["errors"]
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True

    bench.controller.template("k8snever", None)
    bench.apply(constraints=[constraint(generation=2)])
    assert bench.enforced == ["all"]
    assert bench.controller.kinds == {KIND}
    assert bench.status(CONSTRAINT_STATUS)["observedGeneration"] == 2


def test_a_template_made_anew_between_two_looks_shows_nothing_of_the_old_one(bench):
    """Another object of the same name that is broken has no last good revision."""
    bench.apply([template()], [constraint()])
    bench.apply([template(BROKEN, uid="another")])

    assert bench.enforced == []
    status = bench.status(TEMPLATE_STATUS)
    assert (status["templateUID"], status["activeGeneration"]) == ("another", 0)
    assert bench.status(CONSTRAINT_STATUS) is None


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_template_is_withheld_until_the_data_it_needs_is_synced(bench, quote):
    bench.apply([template(annotations=requiring_ingress(quote))], [constraint()])
    assert bench.enforced == []
    status = bench.status(TEMPLATE_STATUS)
    assert status["missingData"] == [
        {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"}
    ]
    assert status["errors"][0]["code"] == "missing_data"
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is False

    bench.controller.synced({INGRESS})
    bench.apply()
    assert bench.enforced == ["all"]
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True

    bench.controller.synced(set())
    bench.apply()
    assert bench.enforced == []
    assert bench.status(CONSTRAINT_STATUS)["activeGeneration"] == 0


def test_an_annotation_that_cannot_be_read_is_the_templates_fault(bench):
    annotations = {"metadata.gatekeeper.sh/requires-sync-data": "[[{]"}
    bench.apply([template(annotations=annotations)])

    assert "requires-sync-data" in bench.status(TEMPLATE_STATUS)["errors"][0]["message"]


def test_readiness_waits_for_templates_and_then_for_their_constraints(bench):
    bench.tracker.expect("ConstraintTemplate", ["k8salways"])
    bench.apply([template()])
    assert not bench.tracker.satisfied  # the list of constraints is not known yet
    bench.tracker.expect(f"{KIND}.constraints.gatekeeper.sh", ["all"])
    bench.apply([], [constraint()])

    assert bench.tracker.satisfied


def test_a_broken_template_does_not_hold_readiness_back(bench):
    bench.tracker.expect("ConstraintTemplate", ["k8salways"])
    bench.apply([template(BROKEN)])
    bench.tracker.expect(f"{KIND}.constraints.gatekeeper.sh", [])

    assert bench.tracker.satisfied


def test_a_broken_template_holds_readiness_back_when_configured_to():
    bench = Bench(wait_for_broken=True)
    bench.tracker.expect("ConstraintTemplate", ["k8salways"])
    bench.apply([template(BROKEN)])
    bench.tracker.expect(f"{KIND}.constraints.gatekeeper.sh", [])

    assert not bench.tracker.satisfied
    assert "rego_parse_error" in bench.tracker.awaited()[0].error


def test_a_template_deleted_while_awaited_does_not_hang_readiness(bench):
    bench.tracker.expect("ConstraintTemplate", ["k8salways"])
    bench.apply([template()])
    bench.apply([None])

    assert bench.tracker.satisfied
