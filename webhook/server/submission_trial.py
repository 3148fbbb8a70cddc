"""Tries a policy before it is admitted, and returns the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.errors import PassingFault
from webhook.server.submission import TOO_DEEP, SubmissionFault, TriedSubmission
from webhook.trials.validation import validate_submitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.constraint.client import Client
    from webhook.policies.problem import Problem
    from webhook.trials.trials import Trials


def tried_submission(
    make_in_force: Callable[[], Client],
    document: Mapping[str, Any],
    seconds: float,
    trials: Trials,
    template_now: Callable[[str], Mapping[str, Any] | None],
) -> TriedSubmission:
    """Tries a template or constraint together with the policies in force, and returns its fault.

    The arguments are :func:`~webhook.trials.validation.validate_submitted`'s.
    """
    try:
        problems, newer = validate_submitted(make_in_force, document, seconds, trials, template_now)
    except RecursionError:
        return TriedSubmission(SubmissionFault(TOO_DEEP))
    return TriedSubmission(_fault(document, problems), newer)


def _fault(document: Mapping[str, Any], problems: Iterable[Problem]) -> SubmissionFault | None:
    """Returns the first error, with the name of its policy if it is another than the document."""
    subject = (gvk_of(document).kind, name_of(document))
    for problem in problems:
        if problem.severity == "error":
            is_subject = (problem.kind, problem.name) == subject
            message = problem.message if is_subject else str(problem)
            return SubmissionFault(message, is_passing=problem.code == PassingFault.CODE)
    return None
