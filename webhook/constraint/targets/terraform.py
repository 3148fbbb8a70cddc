"""Terraform plans: each resource change is a review.

The target has config-validator's name (pkg/tftarget), so that its template libraries run
unmodified: ``input.review`` is one entry of the plan's ``resource_changes``, and ``spec.match`` has
``addresses`` and ``excludedAddresses``, globs over the parts of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from webhook.constraint.errors import InvalidConstraint, ReviewError
from webhook.constraint.review import Document
from webhook.constraint.targets.documents import DocumentTarget
from webhook.constraint.targets.path_globs import LIST_SCHEMA, compile_globs, patterns

NAME: Final = "validation.resourcechange.terraform.cloud.google.com"

_PART: Final = re.compile(r"[\w.\-\[\]]+", re.ASCII)
_FIELDS: Final = (("name", str), ("address", str), ("change", dict), ("type", str))
"""The fields of a resource change with their types, in the order of config-validator's checks."""


class TerraformTarget(DocumentTarget):
    """Reviews the output of ``terraform show -json PLAN``."""

    name = NAME

    def match_schema(self) -> dict[str, Any]:
        """Returns the schema of ``spec.match``."""
        return {
            "type": "object",
            "properties": {"addresses": LIST_SCHEMA, "excludedAddresses": LIST_SCHEMA},
        }

    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Returns a test of a change's address."""
        included, excluded = (
            _addresses(match, field) for field in ("addresses", "excludedAddresses")
        )
        globs = compile_globs(included, excluded, ".")
        return lambda change: globs(change.value["address"])

    def documents(self, value: Any, name: str) -> Iterator[Document]:
        """Yields the plan's resource changes by address, or a single change."""
        for number, change in enumerate(_changes(value, name)):
            for field, kind in _FIELDS:
                if type(change) is not dict or type(change.get(field)) is not kind:
                    raise ReviewError(f"{name}: resource_changes[{number}]: no {field}")
            yield Document(change, change["address"], NAME, name)


def _changes(value: Any, name: str) -> list[Any]:
    plan: dict[str, Any] = value if type(value) is dict else {}
    changes = plan.get("resource_changes")
    if type(changes) is list:
        return changes
    if changes is None and "change" in plan:
        return [plan]
    if changes is None and "format_version" in plan and "planned_values" in plan:
        return []  # A plan that changes nothing leaves the field out.
    raise ReviewError(
        f"{name}: no Terraform plan: expected what `terraform show -json PLAN` prints, "
        "with resource_changes"
    )


def _addresses(match: Mapping[str, Any], field: str) -> list[str] | None:
    globs = patterns(match, field)
    for pattern in globs or ():
        for number, part in enumerate(pattern.split(".")):
            if part not in ("*", "**") and not _PART.search(part):
                raise InvalidConstraint(
                    f"invalid glob in spec.match.{field}: unexpected item {part} element "
                    f"{number} in {pattern}"
                )
    return globs
