"""A mutator at its stage of a roll-out: previewed first, and then applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.constraint.rollout import stage_of
from webhook.mutation.mutator import MODE, PREVIEW

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def staged(document: Mapping[str, Any], status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The mutator as it is to be applied: with the mode of its stage, if its roll-out has begun.

    ``status`` is the one that stands in the cluster, whatever revision the document is. A mutator
    whose own annotation says that it is previewed is.
    """
    if stage_of({**document, "status": status}) != PREVIEW:
        return document
    metadata = document["metadata"]
    return {
        **document,
        "metadata": {**metadata, "annotations": {**metadata["annotations"], MODE: PREVIEW}},
    }
