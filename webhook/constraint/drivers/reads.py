"""Finds what a template, and each of its constraints, depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.constraint.drivers import references
from webhook.constraint.drivers.cel_source import read_source
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator, modules_of
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import CEL, REGO
from webhook.rego.errors import RegoErrors

if TYPE_CHECKING:
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.template import Code, Template
    from webhook.reads.read_set import PolicyReads
    from webhook.rego.program import Compiled

_ENTRY = (references.ENTRY, references.RULE)


def dependencies_of_evaluator(
    evaluator: Evaluator, template: Template, parameters: Any
) -> PolicyReads | None:
    """Return what the evaluations of a template's evaluator depend on; it may have code of two engines."""
    # Here and not above: who has no template in CEL shall not pay for it.
    from webhook.constraint.drivers.cel_evaluation import CelEvaluator  # noqa: PLC0415

    engine = REGO if isinstance(evaluator, RegoEvaluator) else CEL
    if engine == CEL and not isinstance(evaluator, CelEvaluator):
        return None
    code = tuple(one for one in template.code if one.engine == engine)
    return dependencies_of(replace(template, code=code), parameters)


def dependencies_of(template: Template, parameters: Any = None) -> PolicyReads | None:
    """Return what evaluations of a template depend on, with these parameters where some are given.

    None where its engine is none of ours, or its code cannot be used.
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


def _of_rego(code: Code, parameters: Any) -> PolicyReads:
    # Here and not above: the compiler is not needed to serve what is compiled already.
    from webhook.rego.program import specialise  # noqa: PLC0415
    from webhook.rego.reads import read  # noqa: PLC0415

    compiled = _compiled(code)
    if parameters is not None and not specialise(compiled, parameters):
        compiled = _compiled(code)
    return read(compiled.tree, compiled.builtins, _ENTRY).dependencies


def _compiled(code: Code) -> Compiled:
    from webhook.rego.program import compile_rules  # noqa: PLC0415  # see above

    return compile_rules(modules_of(code.source), RegoDriver().options)
