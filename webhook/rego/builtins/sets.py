"""Built-ins on sets; the difference is :func:`webhook.rego.builtins.arithmetic.minus`.

Documented in OPA's reference under "Sets"; behaviour from v1/topdown/sets.go and binary.go.
"""

from __future__ import annotations

from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.run.values import RegoSet, ordered
from webhook.rego.types import SET, set_of

SETS = set_of(SET)


@builtin("and", SET, SET, result=SET, infix="&", context=True)
def and_(context: Context, x: RegoSet, y: RegoSet) -> RegoSet:
    """Returns the members of both sets."""
    context.charge(len(x))
    return x.intersection(y)


@builtin("or", SET, SET, result=SET, infix="|", context=True)
def or_(context: Context, x: RegoSet, y: RegoSet) -> RegoSet:
    """Returns the members of either set."""
    context.charge(len(x) + len(y))
    return x.union(y)


@builtin("set_diff", SET, SET, result=SET, deprecated=True)
def set_diff(x: RegoSet, y: RegoSet) -> RegoSet:
    """Returns the members of ``x`` that ``y`` lacks."""
    return x.difference(y)


def _require_sets(sets: RegoSet) -> list[RegoSet]:
    members = ordered(sets)
    for member in members:
        if type(member) is not RegoSet:
            wrong_operand(1, member, "set")
    return members


@builtin("intersection", SETS, result=SET, context=True)
def intersection(context: Context, sets: RegoSet) -> RegoSet:
    """Returns the members that all sets have; an empty set where there is none."""
    members = _require_sets(sets)
    result = members[0] if members else RegoSet()
    for member in members[1:]:
        context.charge(len(result))
        result = result.intersection(member)
    return result


@builtin("union", SETS, result=SET, context=True)
def union(context: Context, sets: RegoSet) -> RegoSet:
    """Returns the members of all sets together."""
    members = _require_sets(sets)
    context.charge(sum(map(len, members)))
    return RegoSet(item for member in members for item in member)
