"""Decides which part of a picture a visitor may see, by their rights at the API server.

A policy needs the right to list its kind. A violation needs the right to list its source: the
policy reports of its namespace, or the constraint whose status contains it. Replicas need the right
to list Waddle's Pods.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import CONFIG, SYNC_SET
from webhook.api.gvk import gvk_of
from webhook.api.revision import GROUP as REVISION_GROUP
from webhook.console.visitor import Right
from webhook.constraint import constraint, template
from webhook.policy_kinds.known import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from webhook.console.picture import Picture, ShownPolicy, ShownViolation

TEMPLATES: Final = Right(template.GROUP, "constrainttemplates")
CONSTRAINTS: Final = Right(constraint.GROUP, "*")
REVISIONS: Final = Right(REVISION_GROUP, "policyrevisions")
CONFIGURATIONS: Final = Right("admissionregistration.k8s.io", "validatingwebhookconfigurations")

NARROW_MAX: Final = 2000
"""Namespaces and kinds checked for one page: 16 at a time within 10 s, 80 ms for each. Rows of the
rest are hidden, and the page says so."""


def has(granted: Collection[Right], right: Right) -> bool:
    """Whether a right is among these, or part of one of them."""
    if right in granted:
        return True
    everywhere = replace(right, namespace="", name="")
    return everywhere in granted or replace(everywhere, resource="*") in granted


def right_of(item: ShownPolicy) -> Right:
    """Returns the right to list a policy's kind."""
    gvk = gvk_of(item.document)
    if item.category == "template":
        return TEMPLATES
    row = kind_of(gvk)
    return Right(gvk.group, gvk.kind.lower() if row is None or not row.plural else row.plural)


def broad(picture: Picture) -> list[Right]:
    """Returns the rights to check first: those to whole kinds."""
    others = {right_of(item) for item in picture.policies if item.category != "constraint"}
    kinds = {right for kind in picture.kinds if (right := _right_of_kind(kind)) is not None}
    constraints = {kind for kind in kinds if kind.group == constraint.GROUP}
    return sorted(
        {
            *(TEMPLATES, CONSTRAINTS, REVISIONS, CONFIGURATIONS),
            *(pods(picture), reports(picture)),
            *(kinds - constraints),
            *others,
            *picture.carriers,
        },
        key=str,
    )


def narrow(picture: Picture, granted: Collection[Right]) -> tuple[list[Right], int]:
    """Returns the rights to check next, and the number of further ones left unchecked.

    They are for kinds of constraints and for sources of violations that the granted rights do not
    cover.
    """
    needed = {right_of(item) for item in picture.policies if item.category == "constraint"}
    needed |= {item.carrier for item in picture.violations or () if item.carrier is not None}
    further = sorted((right for right in needed if not has(granted, right)), key=str)
    return further[:NARROW_MAX], max(0, len(further) - NARROW_MAX)


def pods(picture: Picture) -> Right:
    """Returns the right to list replicas."""
    return Right("", "pods", picture.namespace)


def reports(picture: Picture) -> Right:
    """Returns the right to read replicas' own reports."""
    return Right("", "pods/proxy", picture.namespace, "get")


def seen(picture: Picture, granted: Collection[Right], unchecked: int = 0) -> Picture:
    """Returns the visible part of the picture; ``unchecked`` is the number of unchecked rights."""
    policies = tuple(item for item in picture.policies if has(granted, right_of(item)))
    if not has(granted, REVISIONS):
        policies = tuple(replace(item, revisions=()) for item in policies)
    violations, why = _violations(picture, granted, policies)
    sees_pods = has(granted, pods(picture))
    hidden = [
        str(right)
        for right in broad(picture)
        if not has(granted, right) and not _is_seen_in_part(right, granted)
    ]
    trouble = picture.trouble
    if unchecked:
        notice = (
            f"What you may read in {unchecked:,} more namespaces and kinds of constraints is not shown:"
            f" a page asks about {NARROW_MAX:,}. Who may list a kind in all namespaces sees all of it."
        )
        trouble = (*trouble, notice)
    return replace(
        picture,
        trouble=trouble,
        policies=policies,
        violations=violations,
        why_no_violations=why,
        pods=tuple(
            pod if has(granted, reports(picture)) else replace(pod, notes=())
            for pod in (picture.pods if sees_pods else ())
        ),
        sync=picture.sync if all(has(granted, right) for right in _of_sync(picture)) else None,
        sees_pods=sees_pods,
        faults=picture.faults if has(granted, REVISIONS) else (),
        certificates=picture.certificates if has(granted, CONFIGURATIONS) else (),
        kinds=tuple(kind for kind in picture.kinds if _is_seen(kind, granted)),
        by_key={item.key: item for item in policies},
        hidden=tuple(hidden),
    )


def _of_sync(picture: Picture) -> tuple[Right, ...]:
    """Returns the rights to see the kept fields of synced objects."""
    configs = Right(CONFIG.group, "configs", picture.namespace)
    return TEMPLATES, configs, Right(SYNC_SET.group, "syncsets")


def _violations(
    picture: Picture, granted: Collection[Right], policies: Iterable[ShownPolicy]
) -> tuple[tuple[ShownViolation, ...] | None, str]:
    """Returns the visible violations; None and the reason if none is readable."""
    if picture.violations is None:
        return None, picture.why_no_violations
    if not picture.carriers:  # violations come from statuses
        names = {f"{item.kind}/{item.name}" for item in policies}
        return tuple(violation for violation in picture.violations if violation.policy in names), ""
    carriers = {
        violation.carrier for violation in picture.violations if violation.carrier is not None
    }
    readable = {carrier for carrier in carriers if has(granted, carrier)}
    if not readable and not any(has(granted, carrier) for carrier in picture.carriers):
        kinds = ", ".join(sorted(str(carrier) for carrier in picture.carriers))
        return (
            None,
            f"you have no right to read policy reports ({kinds}) in any namespace that has some",
        )
    if len(readable) == len(carriers):
        return picture.violations, ""
    return tuple(violation for violation in picture.violations if violation.carrier in readable), ""


def _right_of_kind(row: Any) -> Right | None:
    """Returns the right to list a kind that the console follows."""
    resource = row.get("resource")
    if not isinstance(resource, str) or not resource:
        return None
    return Right(row["group"], resource, row.get("namespace", ""))


def _is_seen(row: Any, granted: Collection[Right]) -> bool:
    right = _right_of_kind(row)
    return right is not None and has(granted, right)


def _is_seen_in_part(right: Right, granted: Collection[Right]) -> bool:
    return any(
        given.group == right.group
        and (right.resource in (given.resource, "*"))
        and given.verb == right.verb
        for given in granted
    )
