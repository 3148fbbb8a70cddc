"""Warnings in statuses about CEL expressions that are accepted but probably wrong.

A template is warned about if the API server would stop its expressions for their cost. A constraint
is warned about if the template's expressions do not fit the types of the kinds that it names. The
types come from the cluster's OpenAPI documents.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import GroupKind, GroupVersionKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.errors import InvalidTemplate
from webhook.controllers.apply.openapi import KindTypes
from webhook.controllers.keeper import Keeper
from webhook.controllers.object_faults import TEMPLATES, ObjectFaults
from webhook.controllers.status.context import WARNINGS
from webhook.generation.policy import read_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.cel.check.objects import ObjectType
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.drivers.cel_source import CelSource
    from webhook.controllers.generate.statuses import Statuses
    from webhook.generation.plan import Enforced
    from webhook.log import Logger

LOOK_SECONDS: Final = 300.0
"""How often the OpenAPI documents of the cluster are compared with the known ones."""

_ALL: Final = "warnings"
"""The only key of the work queue: the warnings of all expressions are settled together."""

Types = dict["GroupVersionKind", "ObjectType"]


class _CheckedTemplate(NamedTuple):
    """A template's CEL, None without valid CEL, and the warnings about its cost."""

    document: Mapping[str, Any]
    source: CelSource | None
    warnings: list[Json]


class _CheckedConstraint(NamedTuple):
    """A constraint's CEL and the types of its kinds, and the warnings that they give."""

    source: CelSource
    types: Types
    warnings: list[Json]


class ExpressionKeeper:
    """Checks CEL expressions and reports warnings for statuses; :meth:`run` in a task of its own.

    What is unchanged since the last check is not checked again.
    """

    def __init__(
        self,
        client: ClusterClient,
        log: Logger,
        *,
        notify: Callable[[Statuses], None],
        object_faults: ObjectFaults | None = None,
    ) -> None:
        """``notify`` takes the status fields, ``object_faults`` unforeseen errors."""
        self._types = KindTypes(client)
        self._log = log
        self._notify = notify
        self._keeper: Keeper[str] = Keeper(
            "expressions", self._settle, object_faults or ObjectFaults(log), retry_seconds=0.8
        )
        self._templates: Mapping[str, Mapping[str, Any]] = {}
        self._constraints: Mapping[tuple[str, str], Enforced] = {}
        self._checked_templates: dict[str, _CheckedTemplate] = {}
        self._checked_constraints: dict[tuple[str, str], _CheckedConstraint] = {}

    def follow(
        self,
        templates: Mapping[str, Mapping[str, Any]],
        constraints: Mapping[tuple[str, str], Enforced],
    ) -> None:
        """Takes the policies that are in force by now."""
        self._templates, self._constraints = templates, constraints
        self._keeper.add(_ALL)

    async def run(self) -> None:
        """Checks and reports until cancelled."""
        await self._keeper.run()

    async def _settle(self, key: str) -> None:
        try:
            await self._check()
        except (ApiError, ApiUnreachable) as error:
            self._log.warning(
                "schemas of kinds cannot be read from the API server; trying again",
                error=str(error),
            )
            self._keeper.retry(key)
        else:
            self._keeper.settled(key, LOOK_SECONDS)

    async def _check(self) -> None:
        self._checked_templates = {
            name: self._check_template(name, template) for name, template in self._templates.items()
        }
        statuses: Statuses = {
            (TEMPLATES, name): {WARNINGS: template.warnings}
            for name, template in self._checked_templates.items()
            if template.warnings
        }
        named = {
            key: (source, kinds)
            for key, constraint in self._constraints.items()
            if (source := self._source_of(key)) and (kinds := named_kinds(constraint.document))
        }
        known = await self._types.look({kind for _, kinds in named.values() for kind in kinds})
        constraints = {}
        for key, (source, kinds) in named.items():
            types = {gvk: of for gvk, of in known.items() if gvk.group_kind in kinds}
            constraints[key] = self._check_constraint(key, source, types)
            if warnings := constraints[key].warnings:
                statuses[key] = {WARNINGS: warnings}
            await asyncio.sleep(0)  # other tasks run between two constraints
        self._checked_constraints = constraints
        self._notify(statuses)

    def _check_template(self, name: str, document: Mapping[str, Any]) -> _CheckedTemplate:
        """Checks a template's cost; an invalid template is reported elsewhere, with the place."""
        known = self._checked_templates.get(name)
        if known is not None and known.document is document:
            return known
        try:
            code = read_code(document)
        except InvalidTemplate:
            code = None
        if code is None:
            return _CheckedTemplate(document, None, [])
        # Imported here: a cluster without templates in CEL shall not load the CEL engine.
        from webhook.generation.cost_warnings import cost_warnings  # noqa: PLC0415

        return _CheckedTemplate(document, code.source, cost_warnings(code.source))

    def _source_of(self, key: tuple[str, str]) -> CelSource | None:
        template = self._checked_templates.get(key[0].lower())
        return None if template is None else template.source

    def _check_constraint(
        self, key: tuple[str, str], source: CelSource, types: Types
    ) -> _CheckedConstraint:
        known = self._checked_constraints.get(key)
        if known is not None and known.source is source and known.types == types:
            return known
        from webhook.generation.type_warnings import type_warnings  # noqa: PLC0415  # as above

        return _CheckedConstraint(source, types, type_warnings(source, types))


def named_kinds(constraint: Mapping[str, Any]) -> frozenset[GroupKind]:
    """Returns the kinds that a constraint's match names. Entries with a ``*`` are left out."""
    listed = ((constraint.get("spec") or {}).get("match") or {}).get("kinds") or ()
    named = set()
    for entry in listed:
        groups, kinds = entry.get("apiGroups") or ("*",), entry.get("kinds") or ("*",)
        if "*" not in groups and "*" not in kinds:
            named |= {GroupKind(group, kind) for group in groups for kind in kinds}
    return frozenset(named)
