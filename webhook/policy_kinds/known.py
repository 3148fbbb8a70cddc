"""Queries of the table of kinds, for other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import is_answer
from webhook.api.gvk import gvk_of
from webhook.api.resource import Resource
from webhook.constraint import kind_schemas
from webhook.policy_kinds.kind import extension_key
from webhook.policy_kinds.table import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_KINDS,
    ANSWERS,
    CONSTRAINT_GROUPS,
    CONSTRAINTS,
    KYVERNO_KINDS,
    KYVERNO_POLICIES,
    POLICY_KINDS,
    TEMPLATES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.policy_kinds.kind import ExtensionKey, Part, PolicyKind, PolicyPart, Role


def _with_role(*roles: Role) -> tuple[PolicyKind, ...]:
    return tuple(row for row in POLICY_KINDS if row.role in roles)


def _groups(rows: tuple[PolicyKind, ...]) -> frozenset[str]:
    return frozenset(row.group for row in rows)


TEMPLATE: Final = TEMPLATES.gvk

EXTENSIONS: Final = _with_role("extension")
"""Policies that are neither templates nor constraints; each fills a part of a policy set."""

EXTENSION_GROUPS: Final = _groups(EXTENSIONS)

GROUPS: Final = _groups(POLICY_KINDS)

OPTIONAL_GROUPS: Final = EXTENSION_GROUPS | {CONSTRAINT_GROUPS.group, *_groups(KYVERNO_KINDS)}
"""The groups of kinds whose CRDs an installation beside Gatekeeper, or an older one, may lack."""

BESIDE_POLICIES: Final = _groups(_with_role("configuration", "extension"))
"""The groups of the kinds that files have beside templates and constraints."""

PARTS: Final[tuple[Part, ...]] = tuple(dict.fromkeys(row.part for row in EXTENSIONS if row.part))

PARTS_OF_FILES: Final = (*PARTS, ADMISSION_POLICIES, KYVERNO_POLICIES)
"""The parts, and those that only commands over files fill."""

STATUS_KINDS: Final = tuple(dict.fromkeys(row.status for row in POLICY_KINDS if row.status))
"""The kinds of status objects."""

_GROUP_NAMES: Final = {
    row.group: f"{row.part.name}s" if row.part else row.group
    for row in _with_role("configuration", "extension")
}
_FOREIGN: Final = (*ADMISSION_POLICY_KINDS, *KYVERNO_KINDS)
_BY_KIND: Final = {(row.group, row.kind): row for row in (*POLICY_KINDS, *_FOREIGN)}
_BY_NAME: Final = {row.name: row for row in (*EXTENSIONS, *_FOREIGN)}


_READ_ELSEWHERE: Final = frozenset({("waddle.dev", "VerificationPolicy")})
"""Kinds of these groups that no review uses: only the provider of images reads them."""


def kind_of(gvk: GroupVersionKind) -> PolicyKind | None:
    """Returns the row of a kind, of any version; None for a kind other than policies."""
    row = _BY_KIND.get((gvk.group, gvk.kind))
    return CONSTRAINTS if row is None and gvk.group == CONSTRAINTS.group else row


def kind_of_document(document: Mapping[str, Any]) -> PolicyKind | None:
    """Returns the row of an object's kind."""
    return kind_of(gvk_of(document))


def part_of(gvk: GroupVersionKind) -> Part | None:
    """Returns the part that objects of a kind fill; None for none."""
    row = kind_of(gvk)
    return None if row is None else row.part


def constraint_gvk(kind: str) -> GroupVersionKind:
    """Returns the kind of constraints, or of groups, with its group and version."""
    is_group = kind == CONSTRAINT_GROUPS.kind
    return CONSTRAINT_GROUPS.gvk if is_group else CONSTRAINTS.gvk._replace(kind=kind)


def constraints_of(kind: str) -> Resource:
    """Returns the resource of a kind's constraints, whatever the kind's case; or of groups."""
    if kind.lower() == CONSTRAINT_GROUPS.kind.lower():
        return CONSTRAINT_GROUPS.resource
    return Resource(constraint_gvk(kind), kind.lower(), namespaced=False)


def foreign_parts() -> dict[Part, PolicyPart]:
    """Returns empty parts for API server and Kyverno policies, for commands that review by them."""
    return {part: part.make() for part in (ADMISSION_POLICIES, KYVERNO_POLICIES)}


def kyverno_parts(mode: str) -> dict[Part, PolicyPart]:
    """Returns the empty part of Kyverno's policies for a replica that reviews by them.

    ``mode`` is ``off``, ``enforce``, or ``audit``, which does not apply to admissions.
    """
    if mode == "off":
        return {}
    from webhook.policy_kinds.parts import KyvernoPart  # noqa: PLC0415  # loads patterns

    return {KYVERNO_POLICIES: KyvernoPart(enforced=mode == "enforce")}


def extension_named(kind: str) -> PolicyKind:
    """Returns the row of an extension's kind; extension kinds have unique names."""
    return _BY_NAME[kind]


def key_of_extension(document: Mapping[str, Any]) -> ExtensionKey:
    """Returns the key of a policy other than templates and constraints."""
    row = kind_of_document(document)
    assert row is not None
    return row.name, extension_key(document, namespaced=row.namespaced)[1]


def is_extension(document: Mapping[str, Any]) -> bool:
    """Returns whether this is, or is meant as, a policy beside templates and constraints."""
    gvk = gvk_of(document)
    row = kind_of(gvk)
    if row is ANSWERS:
        return is_answer(document)
    if row is None:
        return gvk.group in EXTENSION_GROUPS and gvk.group_kind not in _READ_ELSEWHERE
    return row.role == "extension"


def is_beside_policies(gvk: GroupVersionKind) -> bool:
    """Whether files have this kind beside templates and constraints: other policies, or Configs."""
    return gvk.group in BESIDE_POLICIES or is_foreign_policy(gvk)


def is_admission_policy(gvk: GroupVersionKind) -> bool:
    """Whether this is an API server policy, or a binding of one."""
    return kind_of(gvk) in ADMISSION_POLICY_KINDS


def is_foreign_policy(gvk: GroupVersionKind) -> bool:
    """Returns whether reviews use this API server or Kyverno policy."""
    return kind_of(gvk) in _FOREIGN


def effectless(document: Mapping[str, Any]) -> list[str]:
    """Returns faults of fields without effect in an object; none for objects of other groups.

    A misspelt kind is a fault too, as API servers do not know it.
    """
    gvk = gvk_of(document)
    row = kind_of(gvk)
    if row is None:
        known = None if gvk.group_kind in _READ_ELSEWHERE else _GROUP_NAMES.get(gvk.group)
        return [] if known is None else [f"{gvk} is not a kind of {known}"]
    faults = []
    if row.schema is not None:
        faults += kind_schemas.spec_faults(document, row.schema)
        faults += kind_schemas.unknown_fields(document, row.schema)
    return [*faults, *row.faults(document)]
