"""Findings about objects in a common form, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.constraint.result import Responses

Finding = tuple[str, str, str]
"""Constraint as ``Kind/name``, message, and actions; of doors that do not tell actions empty.

What is excused, or weakened, has one beside with the exception in place of actions.
"""

Findings = dict[str, frozenset[Finding]]
"""By the name of the object."""

_EXCUSED_BY = "excused by "


def excusal(constraint: str, message: str, exception: str) -> Finding:
    """Returns the finding that an exception excuses or weakens a violation."""
    return constraint, message, f"{_EXCUSED_BY}{exception}"


def of_responses(responses: Responses | None) -> frozenset[Finding]:
    """Returns the findings of a review."""
    if responses is None:
        return frozenset()
    return frozenset(
        ("/".join(one.constraint.key), one.msg, ",".join(one.actions)) for one in responses.results
    ) | frozenset(
        excusal("/".join(one.constraint.key), one.msg, one.excuse.title)
        for one in (*responses.results, *responses.excused)
        if one.excuse is not None
    )


def without_excusals(findings: frozenset[Finding]) -> frozenset[Finding]:
    """Returns the findings without those excused by an exception."""
    return frozenset(one for one in findings if not one[2].startswith(_EXCUSED_BY))


def exceptions_in(findings: frozenset[Finding]) -> set[str]:
    """The exceptions that excuse something of it."""
    return {
        text.removeprefix(_EXCUSED_BY) for _, _, text in findings if text.startswith(_EXCUSED_BY)
    }
