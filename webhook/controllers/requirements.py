"""The synced data that a template requires.

The annotation ``metadata.gatekeeper.sh/requires-sync-data`` is a list of requirements. Each is a
list of alternatives, each a set of groups, versions and kinds. One of a requirement's kinds must be
synced. Gatekeeper reads the annotation only offline. Here a template is evaluated only while its
requirements hold: without the data its verdicts would be wrong but look right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode
from webhook.api.gvk import GroupVersionKind
from webhook.constraint.errors import InvalidTemplate

ANNOTATION: Final = "metadata.gatekeeper.sh/requires-sync-data"

Requirements = tuple[frozenset[GroupVersionKind], ...]
"""All requirements must hold; each holds if one of its kinds is synced."""


def read_requirements(template: Mapping[str, Any]) -> Requirements:
    """The requirements of a template; raises :class:`InvalidTemplate` for a broken annotation."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(ANNOTATION)
    if text is None:
        return ()
    try:
        # The library encodes the list in quotes, on separate lines.
        return tuple(_alternatives(clauses) for clauses in decode(text.strip('\n" ')))
    except (DecodeError, TypeError, KeyError, AttributeError) as error:
        raise InvalidTemplate(f"annotation {ANNOTATION} cannot be read: {error}") from None


def _alternatives(clauses: list[dict[str, list[str]]]) -> frozenset[GroupVersionKind]:
    return frozenset(
        GroupVersionKind(*names)
        for clause in clauses
        for names in product(clause["groups"], clause["versions"], clause["kinds"])
    )


def missing(
    requirements: Requirements, synced: Collection[GroupVersionKind]
) -> tuple[frozenset[GroupVersionKind], ...]:
    """Returns the requirements of which no kind is synced."""
    return tuple(kinds for kinds in requirements if kinds.isdisjoint(synced))


def missing_text(requirements: Requirements) -> str:
    """Name the data that a template waits for, in a line."""
    kinds_text = "; ".join(" or ".join(str(gvk) for gvk in sorted(kinds)) for kinds in requirements)
    return f"not evaluated until its data is synced: {kinds_text}"
