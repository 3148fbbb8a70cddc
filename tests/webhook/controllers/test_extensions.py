"""Mutators and ExpansionTemplates of a cluster as one replica takes them in."""

from typing import Any

from tests.webhook.mutation.documents import assign, label
from webhook.api.pod_status import Pod
from webhook.controllers.extensions import ExtensionController
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.metrics.registry import Registry
from webhook.mutation.mutator import MutatorId
from webhook.readiness import Tracker

POD = Pod("p", "ns", "uid", ("mutation-webhook",))


def controller(registry: Registry | None = None) -> ExtensionController:
    """One that awaits nothing."""
    return ExtensionController(Tracker(lambda: 0.0), POD, registry=registry)


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


def test_a_previewed_mutator_disturbs_nobody_and_is_told_of_its_conflict() -> None:
    found = controller()
    preview = {"waddle.dev/mode": "preview"}
    found.take("Assign", "a", stored(assign("a", "spec.l[name: n].b", 1)))
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1), annotations=preview))
    assert [item.id for item in found.mutations.mutators] == [MutatorId("Assign", "a")]
    assert found.mutations.previewed == ()
    assert found.mutations.would_conflict == {
        MutatorId("Assign", "b"): (MutatorId("Assign", "a"), MutatorId("Assign", "b"))
    }
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1)))
    assert found.mutations.mutators == ()
    found.take("Assign", "b", stored(assign("b", "spec.l.b", 1), annotations=preview))
    found.take("Assign", "a", None)
    assert [item.id for item in found.mutations.previewed] == [MutatorId("Assign", "b")]


def test_a_mode_that_is_none_is_refused() -> None:
    found = controller()
    mode = {"waddle.dev/mode": "previw"}
    found.take("AssignMetadata", "a", stored(label("a", "a", "b"), annotations=mode))
    found.published()
    (status,) = found.statuses.values()
    assert status["status"]["errors"] == [
        {
            "message": "AssignMetadata a: annotation waddle.dev/mode must be enforce or preview, "
            'got "previw"'
        }
    ]
