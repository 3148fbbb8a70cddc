"""Built-ins that the compiler calls, and those about the engine itself.

The compiler rewrites ``print``, template strings and test cases into calls of the ``internal.``
built-ins. A term becomes the set of its values there, by a comprehension around it: a term without a
value is an empty set. Behaviour from OPA's v1/topdown/print.go, template_string.go, trace.go,
test.go and runtime.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import EvaluationError
from webhook.rego.location import NOWHERE
from webhook.rego.run.text import printed_text
from webhook.rego.run.values import RegoSet, Value, ordered, type_name
from webhook.rego.types import ANY, BOOLEAN, SET, STRING, array_of, object_of


def printed(context: Context, operands: list[Value]) -> Iterator[list[str]]:
    """Yields the texts of the operands, once for each combination of their values.

    There are three cases of an operand: a set gives each of its values, and ``<undefined>`` where it
    is empty; an array or object is an error, for the compiler makes none; a scalar gives its text.
    """
    choices: list[list[str]] = []
    for operand in operands:
        if type(operand) is RegoSet:
            choices.append([printed_text(x) for x in ordered(operand)] or ["<undefined>"])
        elif type_name(operand) in {"array", "object"}:
            raise EvaluationError(
                "eval_internal_error", f"illegal argument type: {type_name(operand)}"
            )
        else:
            choices.append([printed_text(operand)])
    return _combinations(context, choices)


def _combinations(context: Context, choices: list[list[str]]) -> Iterator[list[str]]:
    if not choices:
        yield []
        return
    for first in choices[0]:
        for rest in _combinations(context, choices[1:]):
            context.charge(1 + len(first) // 8)
            yield [first, *rest]


@builtin("print", result=None, variadic=ANY)
def print_(*_: Value) -> bool:
    """Declares ``print`` for type checks: the compiler rewrites or drops every call of it."""
    return True


@builtin("internal.print", array_of(SET), result=None, context=True)
def internal_print(context: Context, operands: list[Value]) -> bool:
    """Passes each line to the caller. Generated code prints directly if it knows the location."""
    if context.print_ is not None:
        for line in printed(context, operands):
            context.print_(NOWHERE, " ".join(line))
    return True


@builtin("internal.template_string", array_of(ANY), result=STRING, context=True)
def template_string(context: Context, operands: list[Value]) -> str:
    """Joins the parts of a template string; raises ``eval_conflict_error`` for several results."""
    joined = ""
    for count, parts in enumerate(printed(context, operands)):
        if count:
            raise EvaluationError(
                "eval_conflict_error", "template-strings must not produce multiple outputs"
            )
        joined = "".join(parts)
    return joined


@builtin("internal.test_case", array_of(ANY), result=None)
def name_test_case(_: list[Value]) -> bool:
    """Does nothing: OPA names the case of a test to its tracer, and there is none here."""
    return True


@builtin("trace", STRING, result=BOOLEAN)
def trace(_: str) -> bool:
    """Does nothing: OPA leaves a note for its tracer, and there is none here."""
    return True


@builtin("opa.runtime", result=object_of(STRING, ANY), context=True, deterministic=False)
def opa_runtime(context: Context) -> dict[str, Value]:
    """Returns the configuration and environment that the caller gave the engine."""
    return context.runtime
