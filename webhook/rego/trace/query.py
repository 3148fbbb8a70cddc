"""A query of a program, evaluated step by step."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.errors import EvaluationError
from webhook.rego.program import Compiled, checked_query
from webhook.rego.trace.bodies import RewrittenRules
from webhook.rego.trace.evaluation import StepwiseEvaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.run.limits import EvaluationContext
    from webhook.rego.run.values import Value
    from webhook.rego.syntax import ast
    from webhook.rego.trace.events import StepTracer

_CALLS_MAX: Final = 200_000
"""Calls within each other: some forty for a literal, and each rule evaluates its own within others."""
_STACK_BYTES: Final = 512 << 20


class TracedProgram:
    """A program whose evaluations can be traced."""

    def __init__(self, compiled: Compiled, *, tests: bool = False) -> None:
        self._compiled = compiled
        self._bodies = RewrittenRules(compiled.rules, tests=tests)
        for path in compiled.exports:
            self._bodies.tree.add_package(path)

    def query(
        self, body: ast.Body, *, package: str = "", imports: Sequence[ast.Import] = ()
    ) -> TracedQuery:
        """A query; raises :class:`~webhook.rego.errors.RegoErrors`."""
        _, lowered, names = checked_query(self._compiled, body, package, imports)
        names = {**names, **_query_names(lowered)}
        return TracedQuery(self._compiled, self._bodies, _capturing(lowered, self._compiled), names)


class TracedQuery:
    """A query that may be followed."""

    def __init__(
        self, compiled: Compiled, bodies: RewrittenRules, body: ir.Body, names: dict[str, str]
    ) -> None:
        self._compiled = compiled
        self._bodies = bodies
        self._body = body
        self._names = names

    def __call__(  # one for each part of the world around it
        self,
        input_value: Value,
        data: dict[str, Value],
        context: EvaluationContext,
        tracer: StepTracer,
        *,
        indexing: bool = True,
        early_exit: bool = True,
    ) -> None:
        """Tells the tracer of each step of an evaluation, up to an error that ends it."""
        evaluation = StepwiseEvaluation(
            self._bodies.tree,
            self._compiled.builtins,
            input_value,
            data,
            context,
            tracer,
            indexing=indexing,
            early_exit=early_exit,
        )
        _deeply(lambda: evaluation.run(self._body, self._names))


def _query_names(body: ir.Body) -> dict[str, str]:
    names = [
        lit.out.name
        for lit in body
        if isinstance(lit, ir.Call)
        and isinstance(lit.out, ir.Var)
        and ir.is_generated(lit.out.name)
    ]
    return {name: f"__localq{number}__" for number, name in enumerate(names, 1)}


def _capturing(body: ir.Body, compiled: Compiled) -> ir.Body:
    """Returns the query with a variable for the value of each expression, as in ``opa eval``."""
    result: ir.Body = []
    captured: list[ir.Lit] = []
    for number, lit in enumerate(body):
        value = ir.Var(f"$term{number}")
        if isinstance(lit, ir.Test) and not lit.negated:
            result.append(ir.Eq(lit.term, value, lit.location, withs=lit.withs))
        elif isinstance(lit, ir.Call) and _has_result(lit, compiled):
            result.append(replace(lit, out=value))
        else:
            result.append(lit)
            continue
        captured.append(ir.Test(value, lit.location))
    return result if len(body) == 1 else [*result, *captured]


def _has_result(lit: ir.Call, compiled: Compiled) -> bool:
    if lit.out is not None or lit.negated:
        return False
    if isinstance(lit.name, str):
        builtin = compiled.builtins.get(lit.name)
        return builtin is not None and builtin.result is not None and lit.name != "equal"
    return True


def _deeply(run: Callable[[], None]) -> None:
    """Runs a function that recurs once for each literal of a path, with a large enough stack."""
    faults: list[BaseException] = []

    def begin() -> None:
        try:
            run()
        except EvaluationError:
            pass  # the answer contains the error
        except BaseException as fault:  # noqa: BLE001  # raised again below
            faults.append(fault)

    depth, stack = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_CALLS_MAX)
    try:
        thread: Any = threading.Thread(target=begin)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(depth)
        threading.stack_size(stack)
    if faults:
        raise faults[0]
