"""Validates policies on top of those in force; each template is first tried with its constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.encoding import is_same_json
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint, template
from webhook.constraint.errors import InvalidTemplate
from webhook.policies.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.constraint.client import Client
    from webhook.constraint.entry import Entry
    from webhook.constraint.snapshot import Snapshot
    from webhook.trials.trials import Trials

    PolicyDocument = Mapping[str, Any]

CONSTRAINTS_MAX: Final = 100
"""Constraints in force with which a template is tried; here all of them are, within its budget."""


class Submitted(NamedTuple):
    """The faults of a policy that is being admitted, and the template that was used."""

    problems: list[Problem]
    newer: Client | None = None
    """A client with the current template of the API server; None if that in force was used."""


def validate_submitted(
    make_in_force: Callable[[], Client],
    document: PolicyDocument,
    seconds: float,
    trials: Trials,
    template_now: Callable[[str], PolicyDocument | None],
) -> Submitted:
    """Finds the faults of a template or constraint that is being admitted.

    A constraint may seem faulty because its template, or a change of it, has not arrived here yet.
    So before a refusal ``template_now`` reads the current template from the API server, None for
    none. If it differs, the constraint is validated with it.
    """
    client = make_in_force()
    submitted = Submitted(validate_tried(client, [document], seconds, trials))
    if gvk_of(document).group != constraint.GROUP or not _are_errors(submitted.problems):
        return submitted
    name = _template_of(document)
    in_force, now = _entry(client.snapshot, name), template_now(name)
    if now is None or (
        in_force is not None
        and is_same_json(in_force.template.document.get("spec"), now.get("spec"))
    ):
        return submitted
    newer = make_in_force()
    newer.remove_template(name)  # Its other constraints do not matter here.
    problems = validate_tried(newer, [now, document], seconds, trials)
    of_template = [problem for problem in problems if problem.kind == template.KIND]
    if in_force is not None and _are_errors(of_template):
        return submitted  # It will not be enforced: the last good one is.
    return Submitted(problems, newer)


def validate_tried(
    client: Client, documents: Iterable[PolicyDocument], seconds: float, trials: Trials
) -> list[Problem]:
    """Finds the faults of templates and constraints that are put into a client.

    The result is that of :func:`~webhook.policies.validation.validate`; but this process does not
    evaluate policies that exceeded the limits of a trial.
    """
    # Imported here: advice on policies takes 5 ms of a start.
    from webhook.policies.validation import validate  # noqa: PLC0415

    problems: list[Problem] = []
    rest: list[PolicyDocument] = []
    snapshot = client.snapshot
    for group in _by_template(documents).values():
        try:
            trials.documents(with_belongings(group, snapshot), seconds)
        except InvalidTemplate as error:
            problems += [
                Problem(gvk_of(document).kind, name_of(document), "error", error.code, str(error))
                for document in group
            ]
        else:
            rest += group
    return problems + validate(client, rest, seconds)


def _are_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _entry(snapshot: Snapshot, template_name: str) -> Entry | None:
    """Returns a template in force, with its constraints."""
    entries = (*snapshot.entries, *snapshot.spare)
    return next((entry for entry in entries if entry.template.name == template_name), None)


def _by_template(documents: Iterable[PolicyDocument]) -> dict[str, list[PolicyDocument]]:
    by_template: dict[str, list[PolicyDocument]] = {}
    for document in documents:
        by_template.setdefault(_template_of(document), []).append(document)
    return by_template


def _template_of(document: PolicyDocument) -> str:
    """Returns the name of the template that a document is, or belongs to."""
    gvk = gvk_of(document)
    return gvk.kind.lower() if gvk.group == constraint.GROUP else name_of(document)


def with_belongings(group: list[PolicyDocument], snapshot: Snapshot) -> list[PolicyDocument]:
    """Adds the template in force of a constraint, or the constraints in force of a template."""
    entry = _entry(snapshot, _template_of(group[0]))
    if entry is None:
        return group
    if all(gvk_of(document).group == constraint.GROUP for document in group):
        return [entry.template.document, *group]
    identities = {(gvk_of(document).kind, name_of(document)) for document in group}
    others = [
        constraint.document for constraint in entry.constraints if constraint.key not in identities
    ]
    return [*group, *others[:CONSTRAINTS_MAX]]
