"""Mutators and ExpansionTemplates of a cluster as one replica takes them in."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.webhook.mutation.documents import assign, label
from webhook.api.pod_status import Pod
from webhook.api.revision import PolicyRevision, digest_of, read_revision, revision_object
from webhook.controllers.apply.extensions import ExtensionController
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.metrics.registry import Registry
from webhook.mutation.fights import Fight
from webhook.mutation.mutator import MutatorId
from webhook.policy_kinds.table import EXPANSIONS, MUTATIONS
from webhook.readiness import Tracker

POD = Pod("p", "ns", "uid", ("mutation-webhook",))


NOW = "2026-01-01T00:00:00Z"


class Kept:
    """Kept revisions."""

    def __init__(self, *revisions: PolicyRevision) -> None:
        self._revisions = revisions

    def of(self, uid: str) -> list[PolicyRevision]:
        """Returns the revisions of an object."""
        return [item for item in self._revisions if item.uid == uid]

    def refusal(self, document: Mapping[str, Any], digest: str) -> str:
        """None is known."""
        del document, digest
        return ""


def controller(
    registry: Registry | None = None, revisions: Kept | None = None
) -> ExtensionController:
    """Returns a controller that awaits nothing."""
    return ExtensionController(
        Tracker(lambda: 0.0), POD, registry=registry, revisions=revisions, now=lambda: NOW
    )


def revision(document: dict[str, Any]) -> PolicyRevision:
    """A document as it is kept."""
    made = revision_object(document, digest_of(document))
    return read_revision(made)


def status_of(found: ExtensionController) -> dict[str, Any]:
    """The only status, without who says it."""
    found.published()
    (document,) = found.statuses.values()
    status: dict[str, Any] = dict(document["status"])
    return {name: status[name] for name in status if name not in ("id", "operations", "mutatorUID")}


def stored(document: dict[str, Any], generation: int = 1, **metadata: Any) -> dict[str, Any]:
    """A mutator as an API server has it."""
    own = {**document["metadata"], "uid": "u", "generation": generation, **metadata}
    return {**document, "metadata": own}


def test_each_version_of_a_mutator_is_counted_as_taken_in_or_refused() -> None:
    registry = Registry()
    found = controller(registry)
    found.take("AssignMetadata", "a", stored(label("a", "a", "b")))
    found.take("AssignMetadata", "a", stored(label("a", "a", "c"), 2))
    broken = label("b", "a", "b")
    broken["spec"]["location"] = "nowhere"
    found.take("AssignMetadata", "b", stored(broken))
    assert registry.counters[INGESTIONS] == {("active",): 2, ("error",): 1}
    assert sum(registry.histogram(INGESTION_DURATION, "active").counts) == 2


def test_a_mutator_that_asks_is_not_in_force_where_external_data_is_turned_off() -> None:
    """It refused each request that it matched."""
    found = ExtensionController(Tracker(lambda: 0.0), POD, external_data=False, now=lambda: NOW)
    asking = assign("a", "spec.x", 1)
    asking["spec"]["parameters"]["assign"] = {"externalData": {"provider": "images"}}
    found.take("Assign", "a", stored(asking))
    assert found.value(MUTATIONS).mutators == ()
    [error] = status_of(found)["errors"]
    assert error["message"].startswith("external data feature flag is not enabled")


def test_a_value_that_becomes_true_instead_of_1_is_a_new_version() -> None:
    registry = Registry()
    found = controller(registry)
    for generation, value in enumerate((1, True), 1):
        found.take("Assign", "a", stored(assign("a", "spec.x", value), generation))
    assert registry.counters[INGESTIONS] == {("active",): 2}


def test_a_previewed_mutator_disturbs_nobody_and_is_reported_at_its_conflict() -> None:
    found = controller()
    preview = {"waddle.dev/mode": "preview"}
    found.take("Assign", "a", stored(assign("a", "spec.l[name: n].b", 1)))
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1), annotations=preview))
    assert [item.id for item in found.value(MUTATIONS).mutators] == [MutatorId("Assign", "a")]
    assert found.value(MUTATIONS).previewed == ()
    assert found.value(MUTATIONS).would_conflict == {
        MutatorId("Assign", "b"): (MutatorId("Assign", "a"), MutatorId("Assign", "b"))
    }
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1)))
    assert found.value(MUTATIONS).mutators == ()
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1), annotations=preview))
    found.take("Assign", "a", None)
    assert [item.id for item in found.value(MUTATIONS).previewed] == [MutatorId("Assign", "b")]


def test_a_mode_that_is_none_is_refused() -> None:
    found = controller()
    mode = {"waddle.dev/mode": "previw"}
    found.take("AssignMetadata", "a", stored(label("a", "a", "b"), annotations=mode))
    assert status_of(found)["errors"] == [
        {
            "message": "AssignMetadata a: annotation waddle.dev/mode must be enforce or preview, "
            'got "previw"'
        }
    ]


def broken(generation: int = 2) -> dict[str, Any]:
    """A mutator that cannot be read, as a generation of one that could."""
    found = stored(label("a", "a", "b"), generation)
    found["spec"] = {**found["spec"], "location": "nowhere"}
    return found


def test_a_generation_that_cannot_be_used_leaves_the_one_before_in_force_and_says_so() -> None:
    found = controller()
    good = stored(label("a", "a", "b"))
    found.take("AssignMetadata", "a", good)
    assert status_of(found) == {
        "enforced": True,
        "observedGeneration": 1,
        "activeGeneration": 1,
        "activeDigest": digest_of(good),
        "since": NOW,
    }
    found.take("AssignMetadata", "a", broken())
    status = status_of(found)
    assert (status["observedGeneration"], status["activeGeneration"], status["enforced"]) == (
        2,
        1,
        False,
    )
    assert "invalid location for assignmetadata a: nowhere" in status["errors"][0]["message"]
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [1]
    assert found.faults() == {"AssignMetadata a: " + status["errors"][0]["message"]: True}


def test_after_a_restart_the_kept_generation_is_in_force_and_its_name_is_reported() -> None:
    good = stored(label("a", "a", "b"))
    kept = revision(good)
    found = controller(revisions=Kept(kept))
    found.take("AssignMetadata", "a", broken())
    status = status_of(found)
    assert (status["activeGeneration"], status["activeRevision"]) == (1, kept.name)
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [1]
    # Of another object of the same name nothing is taken.
    found.take("AssignMetadata", "a", {**broken(), "metadata": {"name": "a", "uid": "other"}})
    assert found.value(MUTATIONS).mutators == ()
    assert status_of(found)["activeGeneration"] == 0


def test_a_revision_that_comes_later_is_taken_by_whoever_waits_for_it() -> None:
    revisions = Kept()
    found = controller(revisions=revisions)
    found.take("AssignMetadata", "a", broken())
    found.published()
    assert not found.value(MUTATIONS)
    revisions._revisions = (revision(stored(label("a", "a", "b"))),)
    found.revised([("AssignMetadata", "a"), ("K8sAllowed", "a")])
    assert not found.value(MUTATIONS)
    found.revised([("AssignMetadata.mutations.gatekeeper.sh", "a")])
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [1]


def test_a_mutator_is_rolled_back_by_annotation() -> None:
    old, new = stored(label("a", "a", "b")), stored(label("a", "a", "c"), 2)
    found = controller(revisions=Kept(revision(old)))
    found.take("AssignMetadata", "a", new)
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [2]
    back = {"waddle.dev/rollback-to": "1"}
    found.take("AssignMetadata", "a", stored(label("a", "a", "c"), 2, annotations=back))
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [1]
    assert status_of(found)["rolledBackTo"] == "1"


def test_what_is_in_force_is_given_to_be_kept_with_the_group_of_its_kind() -> None:
    found = controller()
    found.take("AssignMetadata", "a", stored(label("a", "a", "b")))
    found.published()
    ((key, in_force),) = found.take_good().items()
    assert key == ("AssignMetadata.mutations.gatekeeper.sh", "a")
    assert in_force is not None
    assert in_force.generation == 1
    assert found.take_good() == {}
    found.take("AssignMetadata", "a", None)
    found.published()
    assert found.take_good() == {key: None}


def test_a_broken_expansion_template_leaves_the_one_before_in_force() -> None:
    found = controller()
    spec = {
        "applyTo": [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Deployment"]}],
        "templateSource": "spec.template",
        "generatedGVK": {"version": "v1", "kind": "Pod"},
    }
    template: dict[str, Any] = {
        "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
        "kind": "ExpansionTemplate",
        "metadata": {"name": "e", "uid": "u", "generation": 1},
        "spec": spec,
    }
    found.take("ExpansionTemplate", "e", template)
    later = {**template, "metadata": {**template["metadata"], "generation": 2}, "spec": {}}
    found.take("ExpansionTemplate", "e", later)
    assert found.value(EXPANSIONS).names == {"e"}
    assert found.faults() == {
        "ExpansionTemplate e: ExpansionTemplate e has empty source field": True
    }


def test_a_fight_is_in_the_status_for_as_long_as_it_goes_on() -> None:
    found = controller()
    found.take("AssignMetadata", "a", stored(label("a", "a", "b")))
    assert "fighting" not in status_of(found)
    mutator = MutatorId("AssignMetadata", "a")
    found.take_fights({mutator: Fight(1, "Pod shop/web", 21, 9.0)})
    assert status_of(found)["fighting"] == "Pod shop/web"
    found.take_fights({mutator: Fight(1, "Pod shop/web", 21, 10.0)})
    assert not found.published()
    found.take_fights({})
    assert "fighting" not in status_of(found)


def test_a_previewed_mutator_says_that_it_is_not_enforced() -> None:
    found = controller()
    preview = {"waddle.dev/mode": "preview"}
    found.take("AssignMetadata", "a", stored(label("a", "a", "b"), annotations=preview))
    status = status_of(found)
    assert (status["enforced"], status["preview"], status["activeGeneration"]) == (False, True, 0)
    assert "errors" not in status


def nested(levels: int) -> Any:
    """A value so many levels deep."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [300, 1_100, 9_000])
def test_a_generation_too_deep_to_be_looked_at_says_so_and_the_one_before_stays(
    levels: int,
) -> None:
    found = controller()
    found.take("Assign", "a", stored(assign("a", "spec.x", 1)))
    found.published()
    found.take("Assign", "a", stored(assign("a", "spec.x", nested(levels)), 2))
    status = status_of(found)
    assert (status["observedGeneration"], status["activeGeneration"], status["enforced"]) == (
        2,
        1,
        False,
    )
    assert "deeper than" in status["errors"][0]["message"]
    assert [item.generation for item in found.value(MUTATIONS).mutators] == [1]
    assert found.counts(MUTATIONS)[1] == 1


def test_of_a_mutator_that_was_made_anew_nothing_stays() -> None:
    found = controller()
    found.take("AssignMetadata", "a", stored(label("a", "a", "b")))
    found.take_fights({MutatorId("AssignMetadata", "a"): Fight(1, "Pod shop/web", 21, 9.0)})
    assert status_of(found)["fighting"] == "Pod shop/web"
    anew = broken(1)
    anew["metadata"]["uid"] = "other"
    found.take("AssignMetadata", "a", anew)
    status = status_of(found)
    assert (status["activeGeneration"], "fighting" in status) == (0, False)
    assert found.value(MUTATIONS).mutators == ()
    assert list(found.faults().values()) == [False]


def test_a_mutator_that_an_update_of_a_pod_would_be_refused_for_says_so() -> None:
    found = controller()
    found.take("Assign", "a", stored(assign("a", "spec.hostname", "x")))
    found.published()
    (status,) = found.statuses.values()
    (warning,) = status["status"]["warnings"]
    assert "changes spec.hostname of Pods on UPDATE" in warning
    assert status["status"]["enforced"] is True
    found.take("Assign", "a", stored(assign("a", "spec.containers[name: *].image", "x"), 2))
    found.published()
    (status,) = found.statuses.values()
    assert "warnings" not in status["status"]
