"""Finds the faults of policies before they are applied.

Templates are compiled and constraints checked as in admission. Each is tried on sample objects of
its kinds (:mod:`webhook.policies.samples`) within a budget: a policy that exceeds it there would
exceed it everywhere. An error of evaluation on a sample is a warning, since a real object may have
the missing field; a message that is no text is an error.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint, enforcement, template
from webhook.constraint.containment import of_evaluation
from webhook.constraint.entry import ELSEWHERE, Entry
from webhook.constraint.errors import (
    ConstraintFrameworkError,
    InvalidTemplate,
    MissingEngine,
    PolicyError,
    ReviewError,
)
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets import admission
from webhook.external_data.exchange import ProviderResponse
from webhook.policies.advice import advice_on_constraint, advice_on_template
from webhook.policies.group_advice import advice_on_groups
from webhook.policies.problem import FAULT, OVERRUN, Problem
from webhook.policies.provider_calls import advice_on_calls
from webhook.policies.samples import NAMESPACE, samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.constraint.client import Client
    from webhook.constraint.constraint import Constraint

TRIAL_SECONDS: Final = 2.0
"""The time for all trials of a call, in seconds: an admission waits for them."""

_NOTHING_KNOWN: Final = ProviderResponse((), (), 200)
"""The answer of every provider in a trial: no provider is called."""

_DEFAULT_NAMESPACE: Final = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE, "labels": {"kubernetes.io/metadata.name": NAMESPACE}},
}


def is_policy(document: Mapping[str, Any]) -> bool:
    """Returns whether the document is validated here: a template or a constraint."""
    gvk = gvk_of(document)
    return gvk.group_kind == (template.GROUP, template.KIND) or constraint.is_constraint(gvk)


def validate(
    client: Client, documents: Iterable[Mapping[str, Any]], budget_seconds: float
) -> list[Problem]:
    """Adds templates and constraints to a client, and returns their faults.

    The client may have others, which these replace or belong to; refused ones are not added.
    ``budget_seconds`` is the limit of each evaluation.
    """
    ordered = sorted(documents, key=lambda item: constraint.rank(gvk_of(item)))
    problems: list[Problem] = []
    tried: set[tuple[str, str]] = set()
    for document in ordered:
        kind, name = gvk_of(document).kind, name_of(document)
        try:
            _add(client, document)
        except MissingEngine as error:
            problems.append(Problem(kind, name, "warning", error.code, str(error)))
        except InvalidTemplate as error:
            problems.append(Problem(kind, name, "error", error.code, str(error)))
        except ConstraintFrameworkError as error:
            problems.append(Problem(kind, name, "error", "invalid", str(error)))
        else:
            tried.add((kind, name))
            if kind == template.KIND and (why := client.elsewhere(name)):
                problems.append(Problem(kind, name, "warning", ELSEWHERE, why))
    until = time.monotonic() + TRIAL_SECONDS
    for entry in client.snapshot.entries:
        of_template = (template.KIND, entry.template.name) in tried
        if of_template:
            problems += [*advice_on_template(entry), *advice_on_calls(entry.template)]
        for item in entry.constraints:
            if item.broken is None and (of_template or item.key in tried):
                problems += _try(entry, item, budget_seconds, until)
                if entry.target.name == admission.NAME:
                    problems += advice_on_constraint(item)
    return [*problems, *advice_on_groups(client.snapshot, tried)]


def _add(client: Client, document: Mapping[str, Any]) -> None:
    if not constraint.is_constraint(gvk_of(document)):
        client.add_template(document)
        return
    enforcement.validate(document)
    client.add_constraint(document)


def _try(entry: Entry, item: Constraint, seconds: float, until: float) -> Iterator[Problem]:
    """Evaluates each sample, and returns the problems, each kind once."""
    messages: set[str] = set()
    spec = item.document.get("spec") or {}
    for sample in samples(spec.get("match")):
        seconds_left = until - time.monotonic()
        if seconds_left <= 0:
            return  # The trial is best effort; earlier trials were within bounds.
        shown = f"on a sample {sample['kind']}"
        try:
            _evaluate(entry, item, sample, min(seconds, seconds_left))
        except PolicyError as error:
            if error.overrun and seconds_left < seconds:
                return  # It had less than it may take.
            if str(error) in messages:
                continue
            messages.add(str(error))
            if error.overrun:
                message = f"does not end within its budget {shown}: {error}"
                yield Problem(item.kind, item.name, "error", OVERRUN, message)
                return
            message = f"fails {shown}: {error}"
            if error.bug is None:
                severity: Literal["error", "warning"] = "error" if error.no_verdict else "warning"
                yield Problem(item.kind, item.name, severity, "evaluation", message)
            else:
                yield Problem(item.kind, item.name, "error", FAULT, message)
        except ReviewError:
            continue


def _evaluate(entry: Entry, item: Constraint, sample: dict[str, Any], seconds: float) -> None:
    namespaces = {NAMESPACE: _DEFAULT_NAMESPACE}
    value = AugmentedObject(sample, _DEFAULT_NAMESPACE, operation="CREATE")
    review = entry.target.handle_review(value, namespaces)
    if review is None or entry.evaluator is None:
        return
    try:
        limits = Limits(budget=Budget.of(seconds), known=lambda _: _NOTHING_KNOWN)
        state = entry.evaluator.begin(limits, {})
        entry.evaluator.evaluate(entry.given(item), entry.evaluator_input(review), state)
    except MemoryError:
        raise  # the caller sets the limit
    except Exception as raised:  # any fault affects this policy only
        raise of_evaluation(raised) from raised
