"""Policies validated on top of those in force, each template with what belongs to it tried before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint
from webhook.constraint.errors import InvalidTemplate
from webhook.policies.validation import Problem, validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.client import Client
    from webhook.constraint.snapshot import Snapshot
    from webhook.trials.trials import Trials

    Document = Mapping[str, Any]

CONSTRAINTS_MAX: Final = 100
"""Constraints in force with which a template is tried; here all of them are, within its budget."""


def validate_tried(
    client: Client, documents: Iterable[Document], seconds: float, trials: Trials
) -> list[Problem]:
    """What is wrong with templates and constraints that are put into a client.

    It is what :func:`~webhook.policies.validation.validate` finds; but what goes beyond the bounds
    of a trial this process does not touch.
    """
    problems: list[Problem] = []
    rest: list[Document] = []
    snapshot = client.snapshot
    for group in _by_template(documents).values():
        try:
            trials.documents(with_belongings(group, snapshot), seconds)
        except InvalidTemplate as error:
            problems += [
                Problem(gvk_of(one).kind, name_of(one), "error", error.code, str(error))
                for one in group
            ]
        else:
            rest += group
    return problems + validate(client, rest, seconds)


def _by_template(documents: Iterable[Document]) -> dict[str, list[Document]]:
    by_template: dict[str, list[Document]] = {}
    for one in documents:
        by_template.setdefault(_template_of(one), []).append(one)
    return by_template


def _template_of(document: Document) -> str:
    """The name of the template that a document is, or belongs to."""
    gvk = gvk_of(document)
    return gvk.kind.lower() if gvk.group == constraint.GROUP else name_of(document)


def with_belongings(group: list[Document], snapshot: Snapshot) -> list[Document]:
    """With the template in force of a constraint, or the constraints in force of a template."""
    name = _template_of(group[0])
    entries = (*snapshot.entries, *snapshot.spare)
    entry = next((one for one in entries if one.template.name == name), None)
    if entry is None:
        return group
    if all(gvk_of(one).group == constraint.GROUP for one in group):
        return [entry.template.document, *group]
    own = {(gvk_of(one).kind, name_of(one)) for one in group}
    others = [one.document for one in entry.constraints if one.key not in own]
    return [*group, *others[:CONSTRAINTS_MAX]]
