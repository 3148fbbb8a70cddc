"""``waddle check`` on the terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from webhook.cli.formats.document import as_json as document_json
from webhook.cli.formats.document import patch_lines
from webhook.cli.terminal import styled
from webhook.policies.replay import (
    Replay,
    action_document,
    action_line,
    excusal_document,
    excusal_line,
)
from webhook.printable import printable, printable_name, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cli.check.mutators import MutationChecked
    from webhook.cli.check.run import PolicyCheck
    from webhook.policies.effect import Effect
    from webhook.policies.generated import Agreement
    from webhook.policies.problem import Problem
    from webhook.reads.read_set import PolicyReads

_COLOURS = {"error": "red", "warning": "yellow"}


def as_json(checked: PolicyCheck) -> str:
    """Returns all results."""
    document: dict[str, Any] = {
        "valid": checked.ok,
        "policies": checked.policies,
        "mutators": checked.mutation.kinds.total(),
        "problems": [
            {**problem.document(), "place": place_of(checked, problem)}
            for problem in checked.problems
        ],
        "missing": checked.missing,
    }
    if checked.mutation.changes:
        document["mutated"] = [change.document() for change in checked.mutation.changes]
    if checked.cluster is not None and checked.mutation.cluster:
        document["drift"] = [
            {"kind": key.kind, "name": key.name, **effect.document()}
            for key, effect in checked.mutation.cluster.items()
        ]
    for name, effect in (("manifests", checked.manifests), ("cluster", checked.cluster)):
        if effect is not None:
            document[name] = effect.document()
    if checked.decisions is not None:
        document["decisions"] = _decisions(checked.decisions)
    if checked.generated is not None:
        document["generated"] = _generated(checked.generated)
    if checked.reads is not None:
        document["reads"] = {name: reads.document() for name, reads in checked.reads.items()}
    return document_json(document)


def _generated(agreement: Agreement) -> dict[str, Any]:
    return {
        "compared": agreement.compared,
        "leftToTheWebhook": agreement.left_to_webhook,
        "without": agreement.not_generated,
        "differences": [
            {
                "constraint": "/".join(difference.constraint),
                "request": difference.request,
                "webhook": list(difference.webhook),
                "policy": list(difference.policy),
            }
            for difference in agreement.differences
        ],
    }


def _decisions(replayed: Replay) -> dict[str, Any]:
    return {
        "replayed": replayed.replayed,
        "withoutObject": replayed.without_object,
        **replayed.document(),
        "changes": [
            {
                "id": str(change.record.get("id", "")),
                "before": change.before,
                "after": change.after,
                "added": [list(item) for item in change.added],
                "removed": [list(item) for item in change.removed],
                "actions": [action_document(item) for item in change.actions],
                "excused": [excusal_document(item) for item in change.excused],
            }
            for change in replayed.changes
        ],
    }


def as_table(checked: PolicyCheck) -> str:
    """Returns the faults, then the changes, for people."""
    lines = [
        f"{styled(problem.severity, fg=_COLOURS[problem.severity])}: "
        f"{printable(placed(checked, problem))}"
        for problem in checked.problems
    ]
    unusable = checked.unusable
    verdict = f"can be used, {len(unusable)} cannot" if unusable else "can be used"
    usable = checked.policies - len(unusable & checked.policy_keys)
    counted = [quantity(usable, "policy", "policies")] if checked.policies else []
    broken = Counter(kind for kind, _ in unusable & checked.mutation.extension_keys)
    counted += [
        quantity(number - broken[kind], kind)
        for kind, number in sorted(checked.mutation.kinds.items())
    ]
    *first, last = counted or [quantity(0, "policy", "policies")]
    lines.append(f"{' and '.join([', '.join(first), last] if first else [last])} {verdict}")
    if checked.mutation.changes:
        lines += ["", *_changes(checked.mutation)]
    for title, effect in (
        ("the manifests", checked.manifests),
        ("the cluster", checked.cluster),
    ):
        if effect is not None:
            lines += ["", *_effect(title, effect)]
    if checked.cluster is not None and checked.mutation.cluster:
        lines += ["", *_drift(checked.mutation)]
    if checked.decisions is not None:
        lines += ["", *_replayed(checked.decisions)]
    if checked.generated is not None:
        lines += ["", *_generated_lines(checked.generated)]
    if checked.reads is not None:
        lines += ["", *_read_lines(checked.reads)]
    return "\n".join(lines)


def _read_lines(reads: Mapping[str, PolicyReads]) -> list[str]:
    """Returns the paths that each policy reads, one a line."""
    lines = ["What policies read:"]
    for name, policy in reads.items():
        lines.append(f"  {printable_name(name)}")
        lines += [f"    {printable_name(line)}" for line in policy.lines]
    return lines


def place_of(checked: PolicyCheck, problem: Problem) -> str:
    """Returns the file and line of a problem's object; empty if it is from no file."""
    return checked.places.get(problem.key, "")


def placed(checked: PolicyCheck, problem: Problem) -> str:
    """Returns a problem with the file and line of its object, if it is from a file."""
    place = place_of(checked, problem)
    text = str(problem).replace(problem.name, printable_name(problem.name))
    return f"{printable_name(str(place))}: {text}" if place else text


def _changes(checked: MutationChecked) -> list[str]:
    """Returns the changes of mutators to the manifests."""
    lines = [f"Mutators change {quantity(len(checked.changes), 'object')} of the manifests:"]
    for change in checked.changes:
        lines.append(f"  {printable_name(change.object)}: by {printable_name(change.mutators)}")
        lines += patch_lines(change.patch)
    return lines


def _drift(checked: MutationChecked) -> list[str]:
    """Returns the changes of mutators to the objects of the cluster."""
    lines = ["Objects of the cluster that mutators would change at the next write:"]
    for key, effect in checked.cluster.items():
        lines.append(f"  {printable_name(f'{key.kind}/{key.name}')}: {effect.objects}")
        lines += [
            f"    {printable_name(item.object)}: {printable_name(item.message)}"
            for item in effect.examples
        ]
        if more := effect.objects - len(effect.examples):
            lines.append(f"    … and {more} more")
    return lines


def _generated_lines(agreement: Agreement) -> list[str]:
    heading = (
        f"{agreement.compared} verdicts of generated policies, {len(agreement.differences)} differ"
    )
    if agreement.left_to_webhook:
        heading += f", {agreement.left_to_webhook} leave errors to the webhook"
    lines = [f"{heading}:" if agreement.differences or agreement.not_generated else heading]
    for difference in agreement.differences:
        lines.append(
            f"  {printable_name('/'.join(difference.constraint))}: {printable_name(difference.request)}"
        )
        for source, messages in (("webhook", difference.webhook), ("policy", difference.policy)):
            outcome = printable_name("; ".join(messages)) if messages else "admits"
            lines.append(f"    {source}: {outcome}")
    lines += [
        f"  {printable_name(name)} has none: {printable_name(why)}"
        for name, why in agreement.not_generated.items()
    ]
    return lines


def _effect(title: str, effect: Effect) -> list[str]:
    objects = f"{quantity(effect.objects, 'object')} of {title}"
    if not effect.constraints:
        return [f"{objects}: the files have no constraint to review them by"]
    lines = [f"{objects}:"]
    for (kind, name), constraint in effect.constraints.items():
        now = quantity(constraint.before, "violation")
        counts = f"{now} now, {constraint.after} then (+{constraint.added} -{constraint.removed})"
        unmatched = "; it matched none of them" if constraint.matched is False else ""
        lines.append(f"  {printable_name(f'{kind}/{name}')}: {counts}{unmatched}")
        lines += [
            f"    {printable_name(item.object)}: {printable_name(item.message)}"
            for item in constraint.examples
        ]
        if more := constraint.added - len(constraint.examples):
            lines.append(f"    … and {more} more")
    lines += [
        f"  {printable_name(title)} excuses {quantity(number, 'violation')}"
        for title, number in sorted(effect.excused.items())
    ]
    return lines


def _replayed(replayed: Replay) -> list[str]:
    recorded = quantity(replayed.replayed, "recorded decision")
    lines = [f"{recorded}, {len(replayed.changes)} would be another:"]
    for change in replayed.changes:
        record = change.record
        place = str(record.get("resourceNamespace") or "")
        name = str(record.get("resourceName") or "")
        shown = f"{record.get('resourceKind', '')} {place}/{name}" if place else name
        lines.append(f"  {printable_name(shown)}: {change.before} then {change.after}")
        lines += [
            f"    + {printable_name(f'{kind}/{policy}: {text}')}"
            for kind, policy, text in change.added
        ]
        lines += [
            f"    - {printable_name(f'{kind}/{policy}: {text}')}"
            for kind, policy, text in change.removed
        ]
        explained = (*map(action_line, change.actions), *map(excusal_line, change.excused))
        lines += [f"    {printable_name(line)}" for line in explained]
    return lines + [f"  {printable_name(line)}" for line in replayed.totals()]
