"""Facts from other parts about templates and constraints, for their statuses.

Each ``take`` returns the objects whose facts have changed, by constraint kind (or TEMPLATES) and
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint import constraint as constraints
from webhook.controllers.object_faults import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.controllers.generate.statuses import Statuses

WARNINGS: Final = "expressionWarnings"
"""The field with warnings about a policy's code."""


class StatusContext:
    """The current breakers, CRDs that are not established, and generated policies."""

    def __init__(self) -> None:
        self._breakers: Mapping[tuple[str, str], BreakerView] = {}
        self._unestablished: Mapping[str, str] = {}
        self._generated: Statuses = {}
        self._warnings: Statuses = {}
        self._lost: Mapping[str, str] = {}

    def take_breakers(
        self, breakers: Mapping[tuple[str, str], BreakerView]
    ) -> set[tuple[str, str]]:
        """Constraints that took too long, by kind and name."""
        before, self._breakers = self._breakers, breakers
        return {key for key in {*before, *breakers} if before.get(key) != breakers.get(key)}

    def take_unestablished(self, crds: Mapping[str, str]) -> set[tuple[str, str]]:
        """Returns the constraint CRDs that are not established, by name, with the reason."""
        before, self._unestablished = self._unestablished, crds
        return {
            (TEMPLATES, crd.removesuffix(f".{constraints.GROUP}"))
            for crd in {*before, *crds}
            if before.get(crd) != crds.get(crd)
        }

    def take_generated(self, statuses: Statuses) -> set[tuple[str, str]]:
        """Takes the statuses of generated policies and bindings."""
        before, self._generated = self._generated, statuses
        return {key for key in {*before, *statuses} if before.get(key) != statuses.get(key)}

    def take_warnings(self, statuses: Statuses) -> set[tuple[str, str]]:
        """Takes the warnings about expressions."""
        before, self._warnings = self._warnings, statuses
        return {key for key in {*before, *statuses} if before.get(key) != statuses.get(key)}

    def take_lost(self, lost: Mapping[str, str]) -> set[tuple[str, str]]:
        """Takes what templates found without a message, by the template's name."""
        before, self._lost = self._lost, lost
        changed = {name for name in {*before, *lost} if before.get(name) != lost.get(name)}
        return {(TEMPLATES, name) for name in changed}

    def breaker(self, kind: str, name: str) -> BreakerView | None:
        """A constraint's."""
        return self._breakers.get((kind, name))

    def no_crd(self, template: str) -> str:
        """Returns why a template's constraint CRD is not established; empty if it is."""
        return self._unestablished.get(f"{template}.{constraints.GROUP}", "")

    def fields(self, group: str, name: str) -> Json:
        """Returns the fields about generated objects and about a policy's code."""
        key = group, name
        fields = self._generated.get(key, {}) | self._warnings.get(key, {})
        lost = self._lost.get(name) if group == TEMPLATES else None
        if not lost:
            return fields
        warning = {"fieldRef": "spec.targets", "warning": lost}
        return fields | {WARNINGS: [*fields.get(WARNINGS, ()), warning]}
