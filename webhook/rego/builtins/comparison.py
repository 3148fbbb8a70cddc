"""Built-ins that compare: equality, and OPA's order of all values.

Documented in OPA's reference under "Comparison"; behaviour from
v1/topdown/comparison.go. The compiler turns most ``eq``
(unification) and ``assign`` into assignments. Those that it leaves compare, as declared here.
"""

from __future__ import annotations

from webhook.rego.builtins.registry import builtin
from webhook.rego.run.values import Value, compare
from webhook.rego.run.values import equal as values_equal
from webhook.rego.types import ANY, BOOLEAN


@builtin("eq", ANY, ANY, result=BOOLEAN, infix="=")
@builtin("assign", ANY, ANY, result=BOOLEAN, infix=":=")
@builtin("equal", ANY, ANY, result=BOOLEAN, infix="==")
def equal(a: Value, b: Value) -> bool:
    """Returns whether both are the same value."""
    return values_equal(a, b)


@builtin("neq", ANY, ANY, result=BOOLEAN, infix="!=")
def neq(a: Value, b: Value) -> bool:
    """Returns whether the values differ."""
    return not values_equal(a, b)


@builtin("lt", ANY, ANY, result=BOOLEAN, infix="<")
def lt(a: Value, b: Value) -> bool:
    """Returns whether ``a`` sorts before ``b``."""
    return compare(a, b) < 0


@builtin("lte", ANY, ANY, result=BOOLEAN, infix="<=")
def lte(a: Value, b: Value) -> bool:
    """Returns whether ``a`` sorts before ``b`` or is equal."""
    return compare(a, b) <= 0


@builtin("gt", ANY, ANY, result=BOOLEAN, infix=">")
def gt(a: Value, b: Value) -> bool:
    """Returns whether ``a`` sorts after ``b``."""
    return compare(a, b) > 0


@builtin("gte", ANY, ANY, result=BOOLEAN, infix=">=")
def gte(a: Value, b: Value) -> bool:
    """Returns whether ``a`` sorts after ``b`` or is equal."""
    return compare(a, b) >= 0
