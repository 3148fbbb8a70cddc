"""What is asked of the table of kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.api.resource import Resource
from webhook.constraint import kind_schemas
from webhook.policy_kinds.table import CONSTRAINTS, POLICY_KINDS, TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.policy_kinds.kind import Part, PolicyKind, Role


def _with_role(*roles: Role) -> tuple[PolicyKind, ...]:
    return tuple(row for row in POLICY_KINDS if row.role in roles)


def _groups(rows: tuple[PolicyKind, ...]) -> frozenset[str]:
    return frozenset(row.group for row in rows)


TEMPLATE: Final = TEMPLATES.gvk

EXTENSIONS: Final = _with_role("extension")
"""Policies that are neither templates nor constraints; each fills a part of a policy set."""

EXTENSION_GROUPS: Final = _groups(EXTENSIONS)

GROUPS: Final = _groups(POLICY_KINDS)

BESIDE_POLICIES: Final = _groups(_with_role("configuration", "extension"))
"""The groups of what stands in files beside templates and constraints."""

PARTS: Final[tuple[Part, ...]] = tuple(dict.fromkeys(row.part for row in EXTENSIONS if row.part))

STATUS_KINDS: Final = tuple(dict.fromkeys(row.status for row in POLICY_KINDS if row.status))
"""The kinds of status objects."""

_GROUP_NAMES: Final = {
    row.group: f"{row.part.name}s" if row.part else row.group
    for row in _with_role("configuration", "extension")
}
_BY_KIND: Final = {(row.group, row.kind): row for row in POLICY_KINDS}
_BY_NAME: Final = {row.kind: row for row in EXTENSIONS}


def kind_of(gvk: GroupVersionKind) -> PolicyKind | None:
    """The row of a kind, of whatever version; None for a kind that is no policy's."""
    row = _BY_KIND.get((gvk.group, gvk.kind))
    return CONSTRAINTS if row is None and gvk.group == CONSTRAINTS.group else row


def kind_of_document(document: Mapping[str, Any]) -> PolicyKind | None:
    """The row of an object's kind."""
    return kind_of(gvk_of(document))


def constraint_gvk(kind: str) -> GroupVersionKind:
    """The constraints of a kind."""
    return CONSTRAINTS.gvk._replace(kind=kind)


def constraints_of(kind: str) -> Resource:
    """Where the constraints of a kind are served, whatever its case."""
    return Resource(constraint_gvk(kind), kind.lower(), namespaced=False)


def extension_named(kind: str) -> PolicyKind:
    """The row of an extension's kind; no two of them share a name."""
    return _BY_NAME[kind]


def is_extension(document: Mapping[str, Any]) -> bool:
    """Whether this is a policy beside templates and constraints, or is meant to be one."""
    return gvk_of(document).group in EXTENSION_GROUPS


def effectless(document: Mapping[str, Any]) -> list[str]:
    """What of an object has no effect, and nobody would miss; nothing is said of other groups'.

    A misspelt kind is one that an API server does not know.
    """
    gvk = gvk_of(document)
    row = kind_of(gvk)
    if row is None:
        known = _GROUP_NAMES.get(gvk.group)
        return [] if known is None else [f"{gvk} is no kind of {known}"]
    faults = [] if row.schema is None else kind_schemas.spec_faults(document, row.schema)
    return [*faults, *row.faults(document)]
