"""Several targets of one template: constraints may match by the fields of any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.constraint.errors import InvalidTemplate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.target import CompiledMatch, Target


class SeveralTargets:
    """Matches by the fields of several targets, each of which sees only its own.

    Raises :class:`~webhook.constraint.errors.InvalidTemplate` if two targets define a field
    differently.
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = tuple(targets)
        self._fields: list[dict[str, Any]] = []
        self._all: dict[str, Any] = {}
        for target in self._targets:
            fields = target.match_schema().get("properties", {})
            for name, schema in fields.items():
                if self._all.setdefault(name, schema) != schema:
                    raise InvalidTemplate(
                        f"invalid ConstraintTemplate: target {target.name} means something else by "
                        f"spec.match.{name} than another of its targets"
                    )
            self._fields.append(fields)

    def match_schema(self) -> dict[str, Any]:
        """Returns the schema of ``spec.match`` with the fields of all targets."""
        return {"type": "object", "properties": self._all}

    def spec_schema(self) -> Mapping[str, Any]:
        """Returns the schema of the other fields of ``spec``."""
        schema: dict[str, Any] = {}
        for target in self._targets:
            schema.update(target.spec_schema())
        return schema

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Checks a constraint by each target; raises InvalidConstraint."""
        spec = constraint.get("spec")
        match = spec.get("match") if isinstance(spec, dict) else None
        for number, target in enumerate(self._targets):
            seen = constraint
            if isinstance(spec, dict) and isinstance(match, dict):
                seen = {**constraint, "spec": {**spec, "match": self._own(number, match)}}
            target.validate_constraint(seen)

    def compile_match(self, target: Target, match: Mapping[str, Any]) -> CompiledMatch:
        """Compiles a match for one of the targets; raises InvalidConstraint."""
        return target.compile_match(self._own(self._targets.index(target), match))

    def _own(self, number: int, match: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields that a target sees: its own, and those that no target knows."""
        fields = self._fields[number]
        return {
            name: value for name, value in match.items() if name in fields or name not in self._all
        }
