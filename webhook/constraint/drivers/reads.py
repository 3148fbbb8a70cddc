"""Finds the reads of a template, and of each of its constraints."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.constraint.drivers import references
from webhook.constraint.drivers.cel_source import read_source
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator, modules_of
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL, REGO, Code, Template
from webhook.reads.read_set import WHOLE, PolicyReads, ReadSet
from webhook.reads.storage import NOTHING
from webhook.rego.errors import RegoErrors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.driver import Evaluator
    from webhook.reads.abstract import Abstract
    from webhook.reads.read_set import ReadPath
    from webhook.rego.program import Compiled

_ENTRY = (references.ENTRY, references.RULE)

_INVENTORY: Final = re.compile(r"inventory|\\[uUxX0-3]")
"""Code without one of these texts cannot name ``data.inventory``; escapes can write any letter."""


def dependencies_of_evaluator(
    evaluator: Evaluator, template: Template, parameters: Any
) -> PolicyReads | None:
    """Returns the dependencies of an evaluator; its template may have code for two engines."""
    engine = REGO
    if not isinstance(evaluator, RegoEvaluator):
        # Imported here: without a template in CEL the engine would cost memory.
        from webhook.constraint.drivers.cel_evaluation import CelEvaluator  # noqa: PLC0415

        if not isinstance(evaluator, CelEvaluator):
            return None
        engine = CEL
    code = tuple(source for source in template.code if source.engine == engine)
    return dependencies_of(replace(template, code=code), parameters)


def dependencies_of(template: Template, parameters: Any = None) -> PolicyReads | None:
    """Returns the dependencies of a template's evaluations, with these parameters if given.

    None if its engine is unknown or its code cannot be used.
    """
    code = next(iter(template.code), None)
    if code is None:
        return None
    try:
        if code.engine == REGO:
            return _of_rego(code, parameters)
        if code.engine == CEL:
            from webhook.constraint.drivers.cel_reads import dependencies_of_cel  # noqa: PLC0415

            return dependencies_of_cel(read_source(code.source), parameters)
    except (InvalidTemplate, RegoErrors):
        return None
    return None


class Possible(NamedTuple):
    """Whether a template can find something, and what it reads."""

    ever: bool
    given: bool
    """Whether it can with the given values of its input."""
    reads: ReadSet


def possible_violations(code: Code, given: Mapping[ReadPath, Abstract | None]) -> Possible | None:
    """Returns whether Rego can find something; None if that cannot be told.

    ``given`` has known values of the input, None for what is not there. Raises
    :class:`~webhook.rego.errors.RegoErrors`.
    """
    # Imported here: a process that only serves compiled templates does not need the compiler.
    from webhook.rego.reads import read  # noqa: PLC0415

    compiled = _compiled(code)
    node = compiled.tree.find(_ENTRY)
    assert node is not None
    branches = [id(branch) for rule in node.rules for branch in rule.branches()]
    ever, with_given = (
        read(compiled.tree, compiled.builtins, _ENTRY, values) for values in ({}, given)
    )
    if ever.dependencies.reads.whole or with_given.dependencies.reads.whole:
        return None
    return Possible(
        not ever.holding.isdisjoint(branches),
        not with_given.holding.isdisjoint(branches),
        ever.dependencies.reads,
    )


def inventory_reads(template: Template) -> ReadSet | None:
    """Returns the paths of ``data.inventory`` that a template reads, for every engine.

    None if its code cannot be used or the analysis fails.
    """
    try:
        return _inventory_reads(template)
    except Exception:  # noqa: BLE001  # callers then assume that it reads everything
        return None


def _inventory_reads(template: Template) -> ReadSet | None:
    reads = NOTHING
    for part in template.parts:
        for code in part.code:
            if _INVENTORY.search(repr(code.source)) is None:
                continue
            if part.target != admission.NAME:
                return WHOLE
            dependencies = dependencies_of(replace(part, code=(code,)))
            if dependencies is None:
                return None
            reads = reads | (dependencies.reads.at("data", "inventory") or NOTHING)
    return reads


def _of_rego(code: Code, parameters: Any) -> PolicyReads:
    # Imported here: a process that only serves compiled templates does not need the compiler.
    from webhook.rego.program import specialise  # noqa: PLC0415
    from webhook.rego.reads import read  # noqa: PLC0415

    compiled = _compiled(code)
    if parameters is not None and not specialise(compiled, parameters):
        compiled = _compiled(code)
    return read(compiled.tree, compiled.builtins, _ENTRY).dependencies


def _compiled(code: Code) -> Compiled:
    from webhook.rego.program import compile_rules  # noqa: PLC0415  # see above

    return compile_rules(modules_of(code.source), RegoDriver().options)
