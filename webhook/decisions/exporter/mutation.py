"""Records of mutations: who changed an object and how, who could not, and who would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.decisions.exporter.admission import admission_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.decisions.exporter.admission import ReviewOutcome
    from webhook.serving.recorder import MutationReviewed

POINT: Final = "mutation.gatekeeper.sh"
"""The name of the webhook, as in the configuration that asks it."""


def mutation_record(
    decision_id: str,
    reviewed: MutationReviewed,
    outcome: ReviewOutcome,
    *,
    include_objects: bool = False,
) -> dict[str, Any]:
    """The record of what mutators did about one request.

    ``mutation.patch`` leads from the object that came to the one that is reviewed next, without
    the annotations that say so.
    """
    record = admission_record(
        decision_id, reviewed.request, None, outcome, include_objects=include_objects
    )
    record["enforcementPoint"] = POINT
    for name in ("policyDigest", "policyRevision"):
        del record[name]
    mutated, preview = reviewed.mutated, reviewed.preview
    document: dict[str, Any] = {}
    if mutated is not None:
        if reviewed.patch:
            document["iterations"] = mutated.iterations
            document["passes"] = [list(map(str, one)) for one in mutated.passes]
            document["patch"] = list(reviewed.patch.operations)
        if mutated.skipped:
            document["skipped"] = _skipped(mutated.skipped)
    if preview is not None:
        document["preview"] = list(map(str, preview.mutators))
        document["previewPatch"] = list(preview.patch)
        if preview.skipped:
            document["previewSkipped"] = _skipped(preview.skipped)
        if preview.fault:
            document["previewFault"] = preview.fault
    record["mutation"] = document
    return record


def _skipped(faults: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"mutator": name, "message": fault} for name, fault in faults.items()]
