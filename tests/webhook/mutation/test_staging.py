"""A mutator at its stage of a roll-out."""

from typing import Any

import pytest

from tests.webhook.mutation.documents import assign
from webhook.constraint.rollout import ANNOTATION
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.mutator import staged
from webhook.mutation.reading import read_mutator


def mutator(text: str, **annotations: str) -> dict[str, Any]:
    """A mutator of generation 2 with a roll-out."""
    found = assign("a", "spec.x", 1)
    found["metadata"] |= {"generation": 2, "annotations": {ANNOTATION: text, **annotations}}
    return found


def record(action: str, generation: int = 2) -> dict[str, Any]:
    """A status that says which stage was begun last."""
    steps = [{"action": action, "since": "2026-11-22T00:00:00Z"}]
    return {"rollout": {"observedGeneration": generation, "steps": steps, "state": "Progressing"}}


@pytest.mark.parametrize(
    ("status", "is_preview"),
    [
        (None, True),
        (record("preview"), True),
        (record("enforce"), False),
        (record("enforce", generation=1), True),
        ({"rollout": "nonsense"}, True),
    ],
    ids=["nothing recorded", "previewed", "enforced", "of the generation before", "nonsense"],
)
def test_a_mutator_is_previewed_until_its_record_says_that_it_is_enforced(
    status: Any, is_preview: bool
) -> None:
    document = mutator("preview after=1h")
    assert read_mutator(staged(document, status)).is_preview is is_preview


def test_an_aborted_roll_out_and_an_own_word_are_previews() -> None:
    for annotation in ({"waddle.dev/rollout-abort": "true"}, {"waddle.dev/mode": "preview"}):
        document = mutator("preview after=1h", **annotation)
        assert read_mutator(staged(document, record("enforce"))).is_preview


def test_without_a_cluster_that_keeps_its_stage_it_is_applied() -> None:
    assert not read_mutator(mutator("preview after=1h")).is_preview


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warn after=1h", "a stage begins with preview"),
        ("preview quiet=1h", "ends by time"),
        ("preview soon", "expected after=DURATION"),
        ("preview, preview", "stricter"),
    ],
)
def test_a_roll_out_that_cannot_be_followed_refuses_the_mutator(text: str, message: str) -> None:
    with pytest.raises(InvalidMutator, match=message):
        read_mutator(mutator(text))
