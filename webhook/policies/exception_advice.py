"""Probable mistakes of exceptions in files, such as one that has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from webhook.exceptions.reading import warning_of_times, warnings_of_written
from webhook.exceptions.stage import Excusing
from webhook.exceptions.state import warnings_after_reviews
from webhook.policy_kinds.known import kind_of
from webhook.policy_kinds.table import EXCEPTION_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.snapshot import Snapshot
    from webhook.policies.directory import PolicyReport
    from webhook.review.policy_set import PolicySet


def warnings_of_exceptions(policies: PolicySet, report: PolicyReport) -> Iterator[str]:
    """Yields the warnings about each usable exception of a load, with file and line."""
    excusing = next((stage for stage in policies.stages if isinstance(stage, Excusing)), None)
    if excusing is None:
        return
    broken = {fault.title for fault in report.faults}
    manifests = {
        item.title: item
        for item in report.configuration
        if kind_of(item.gvk) in EXCEPTION_KINDS and item.title not in broken
    }
    now = time.time()
    for exception in excusing.exceptions:
        if (item := manifests.get(exception.excuse.title)) is not None:
            for warning in warnings_of_written(exception, item.document, now):
                yield f"{item.place}: {item.title}: {warning}"
    for exception, warning in warnings_after_reviews(excusing, _known(policies.snapshot)):
        if (item := manifests.get(exception.excuse.title)) is not None:
            yield f"{item.place}: {item.title}: {warning}"


def warnings_of_stage(excusing: Excusing, snapshot: Snapshot) -> Iterator[str]:
    """Yields after reviews why exceptions had less effect than their texts say."""
    now = time.time()
    for exception in excusing.exceptions:
        if warning := warning_of_times(exception, now):
            yield f"{exception.excuse.title}: {warning}"
    for exception, warning in warnings_after_reviews(excusing, _known(snapshot)):
        yield f"{exception.excuse.title}: {warning}"


def _known(snapshot: Snapshot) -> dict[tuple[str, str], Constraint]:
    """Returns the constraints of a snapshot, the broken ones too."""
    listed = (*snapshot.constraints, *(constraint for constraint, _ in snapshot.broken))
    return {constraint.key: constraint for constraint in listed}
