"""Admission of exceptions: whether they are valid, and whether their author has the right.

The author needs the verb ``except`` on each constraint that the exception names; the API server's
authorizer is asked. So the owners of policies decide who may make exceptions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import Json, object_of
from webhook.exceptions.exception import GROUP, KINDS, InvalidException, PolicyException
from webhook.exceptions.permission import access_to, closed_by, denied, fault_of_times
from webhook.exceptions.reading import read_exception
from webhook.exceptions.state import missing_constraints
from webhook.server.preparation import AccessAnswer, AccessReader, Awaiting
from webhook.server.submission import Inadmissible, brings_spec

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.snapshot import Snapshot

RIGHTS_SECONDS: Final = 5.0
"""The deadline of all authorization checks for one author."""


def missing_right(
    request: AdmissionRequest, rights: AccessReader, accesses: Sequence[Json], until: float
) -> Generator[Awaiting, None, AccessAnswer]:
    """Returns the first of these rights that the author of a request lacks."""
    seconds = min(RIGHTS_SECONDS, until - time.monotonic())
    user = object_of(request.document.get("userInfo"))
    future = rights.lacking(user, accesses, seconds)
    yield Awaiting([future], until)
    return future.result() if future.done() else AccessAnswer(fault="no answer in time")


def exception_of(request: AdmissionRequest) -> dict[str, Any] | None:
    """Returns the exception of a request; None if there is none or it is unchanged."""
    if request.kind.group != GROUP or request.kind.kind not in KINDS:
        return None
    return request.object if brings_spec(request) else None


def check_exception(
    request: AdmissionRequest,
    document: Mapping[str, Any],
    snapshot: Snapshot,
    rights: AccessReader | None,
    longest_seconds: float,
    until: float,
) -> Generator[Awaiting, None, Inadmissible | None]:
    """Returns why a readable exception is not admitted; None if it is.

    If the authorizer cannot be asked the exception is refused, because failing open would skip
    policies.
    """
    item = read_exception(document)
    broken = (constraint for constraint, _ in snapshot.broken)
    fault = fault_of_times(item, time.time(), longest_seconds) or closed_by(
        item, (*snapshot.constraints, *broken)
    )
    if fault is not None:
        return Inadmissible(fault.code, _named(item, fault.message))
    if rights is None:
        return None  # Policies come from files: exceptions in the cluster do not count.
    named = tuple(dict.fromkeys(item.constraints))
    accesses = [access_to(kind, name) for kind, name in named]
    answer = yield from missing_right(request, rights, accesses, until)
    if answer.fault:
        why = f"the API server did not say whether {request.username} may create it: {answer.fault}"
        return Inadmissible(503, _named(item, why))
    if answer.lacks is not None:
        refused = denied(request.username, *named[answer.lacks])
        return Inadmissible(refused.code, _named(item, refused.message))
    return None


def unknown_constraints(request: AdmissionRequest, snapshot: Snapshot) -> str:
    """Returns the constraints of an exception that do not exist yet, for a warning; empty for none."""
    document = exception_of(request)
    if document is None:
        return ""
    try:
        item = read_exception(document)
    except InvalidException:
        return ""  # one that stays as it was
    known = {constraint.key: constraint for constraint in snapshot.constraints}
    known |= {constraint.key: constraint for constraint, _ in snapshot.broken}
    missing = missing_constraints(item, known)
    return f"there is no constraint {', '.join(missing)} yet" if missing else ""


def _named(item: PolicyException, message: str) -> str:
    return f"{item.excuse.title}: {message}"
