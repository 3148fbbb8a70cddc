"""Estimates the highest cost of a call without its operands, and the size of its result.

k8s.io/apiserver, pkg/cel/library/cost.go (EstimateCallCost); cel-go, ext/lists.go, ext/sets.go and
checker/cost.go (functionCost). Each estimate is for one form of a function.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.cel.check.estimates import (
    ANY_SIZE,
    CHARACTER,
    LIST,
    MESSAGE,
    MOST,
    PATTERN,
    Path,
    Size,
    SizedOperand,
    by_factor,
    plus,
    product_of,
    sum_of,
    times,
)
from webhook.cel.check.types import STRING
from webhook.cel.syntax.ast import Constant
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.cel.check.environment import Overload

CallCost: TypeAlias = "tuple[int, Size | None]"
"""The highest cost, and the size of the result where it is known."""

ONCE: Final[CallCost] = (1, None)

_ADDRESS: Final[Size] = (4, 16)
"""The bytes of an address."""

_AUTHORIZATION = 350_000
"""So much that an expression may ask for two."""

_FORMAT_PATTERN = 128
_FORMAT_NAME = 64


@dataclass(frozen=True, slots=True)
class CallToCost:
    """A call by one overload of its function; ``declared`` is the declared size at a path."""

    function: str
    overload: Overload
    target: SizedOperand | None
    args: Sequence[SizedOperand]
    declared: Callable[[Path], Size | None]

    @property
    def subject(self) -> SizedOperand:
        """The target, or the first operand."""
        return self.args[0] if self.target is None else self.target

    def items_size(self) -> Size | None:
        """Returns the size of the target's items; None if it is no list."""
        if self.target is None or not self.target.type.parts:
            return None
        path = self.target.path
        if path is None:
            return ANY_SIZE
        return self.declared(Path([*path.names, "@items"], path.length + 1)) or ANY_SIZE


def call_cost(call: CallToCost) -> CallCost:
    """Estimate the cost of a call beside its operands."""
    estimate = _ESTIMATES.get(call.function)
    estimated = None if estimate is None else estimate(call)
    return ONCE if estimated is None else estimated


def _allocating(factor: float, size: Size) -> CallCost:
    return plus(by_factor(size[1], factor), 1 + LIST), size


def _integer(operand: SizedOperand, otherwise: int) -> int:
    value = operand.node.value if isinstance(operand.node, Constant) else None
    return max(0, value) if type(value) is int else otherwise


def _slice(call: CallToCost) -> CallCost:
    end = _integer(call.args[1], call.subject.size[1])
    length = (end - _integer(call.args[0], 0)) & MOST
    return _allocating(1, (length, length))


def _range(call: CallToCost) -> CallCost:
    length = _integer(call.args[0], MOST)
    return _allocating(1, (length, length))


def _reverse(call: CallToCost) -> CallCost:
    return _allocating(1, call.subject.size)


def _flatten(call: CallToCost) -> CallCost:
    depth = _integer(call.args[0], MOST) if call.args else 1
    return _allocating(depth, call.subject.size)


def _distinct(call: CallToCost) -> CallCost:
    return _allocating(2, product_of(call.subject.size, call.subject.size))


def _sort(call: CallToCost) -> CallCost:
    """Returns the cost of a sort, by items or keys: each is compared with each."""
    size = (call.args[0] if call.args else call.subject).size
    of = call.overload.args[-1].parts[0].name
    factor = 2 + CHARACTER if of in {"string", "bytes"} else 2
    return _allocating(factor, product_of(size, size))


def _sets(factor: int) -> Callable[[CallToCost], CallCost]:
    def estimate(call: CallToCost) -> CallCost:
        compared = product_of(call.args[0].size, call.args[1].size)
        return plus(by_factor(compared[1], factor), 1), None

    return estimate


def _selector(call: CallToCost) -> CallCost:
    """Returns a selector's text: the shortest requirement has two characters."""
    most = call.args[0].size[1]
    requirements = by_factor(by_factor(most, 0.5), LIST + MESSAGE)
    return plus(plus(LIST, by_factor(most, CHARACTER)), requirements), None


def _whole_list(call: CallToCost) -> CallCost | None:
    """Cost a walk through all items, with their texts; or through a text."""
    if call.target is None:
        return None
    items = call.items_size()
    if items is None:
        return by_factor(call.target.size[1], CHARACTER), None
    is_text = call.target.type.parts[0].name in {"string", "bytes"}
    turn = plus(1, by_factor(items[1], CHARACTER)) if is_text else 1
    return times(call.target.size[1], turn), None


def _includes(call: CallToCost) -> CallCost | None:
    """Returns the cost of a walk through all items; only the size is known if it may be no list."""
    if call.target is not None and call.items_size() is None:
        return call.target.size[1], None
    return _whole_list(call)


def _through(factor: float, *, keeps_size: bool = False) -> Callable[[CallToCost], CallCost]:
    """Returns an estimate by the size of the call's subject, a text."""

    def estimate(call: CallToCost) -> CallCost:
        size = call.subject.size
        return by_factor(size[1], factor), size if keeps_size else None

    return estimate


def _through_first(call: CallToCost) -> CallCost:
    return by_factor(call.args[0].size[1], CHARACTER), None


def _replace(call: CallToCost) -> CallCost:
    size, (old_least, old_most), new = (
        operand.size for operand in (call.subject, call.args[0], call.args[1])
    )
    if old_least == 0:
        most, kept_most = plus(size[1], 1), size[1]
    elif new[1] <= old_least:
        most, kept_most = 0, size[1]
    else:
        most, kept_most = _share(size[1], old_least), 0
    if old_most == 0:
        least, kept_least = plus(size[0], 1), size[0]
    elif old_most <= new[0]:
        least, kept_least = 0, size[0]
    else:
        least, kept_least = _share(size[0], old_most), 0
    result = sum_of(product_of((least, most), new), (kept_least, kept_most))
    return by_factor(size[1], 2 * CHARACTER), result


def _share(whole: int, of: int) -> int:
    return min(math.ceil(float(whole) / float(of)), MOST)


def _split(call: CallToCost) -> CallCost:
    most = call.subject.size[1]
    cost = by_factor(most, 2 * CHARACTER)
    if len(call.args) > 1:
        limit = call.args[1].node
        if isinstance(limit, Constant) and type(limit.value) is int:
            most = limit.value & MOST
    return cost, (0, most)


def _join(call: CallToCost) -> CallCost:
    items, listed = call.items_size(), call.subject.size
    size = (0, 0) if items is None else product_of(listed, items)
    if call.args:
        between = (max(0, listed[0] - 1), max(0, listed[1] - 1))
        size = sum_of(size, product_of(call.args[0].size, between))
    return by_factor(size[1], CHARACTER), size


def _searched(call: CallToCost) -> int:
    text = by_factor(plus(call.subject.size[1], 1), CHARACTER)
    return times(text, by_factor(call.args[0].size[1], PATTERN))


def _find(call: CallToCost) -> CallCost:
    return _searched(call), (0, call.subject.size[1])


def _matches(call: CallToCost) -> CallCost | None:
    return None if call.target is None else (_searched(call), None)


def _ip(call: CallToCost) -> CallCost:
    return ONCE if call.target is not None else _through_first(call)


def _contains_address(beside: int) -> Callable[[CallToCost], CallCost]:
    compared = plus(by_factor(sum_of(_ADDRESS, _ADDRESS)[1], CHARACTER), beside)

    def estimate(call: CallToCost) -> CallCost:
        is_text = call.overload.args[1] == STRING
        return plus(compared, _through_first(call)[0]) if is_text else compared, None

    return estimate


def _validate(call: CallToCost) -> CallCost:
    return by_factor(_through_first(call)[0], _FORMAT_PATTERN * PATTERN), None


def _equals(call: CallToCost) -> CallCost:
    first, other = call.args
    if first.type == other.type:
        match first.type.name:
            case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
                return ONCE
            case "kubernetes.NamedFormat":
                return by_factor(_FORMAT_NAME, CHARACTER), None
            case "kubernetes.URL":
                return by_factor((other.computed or (1, 1))[1], CHARACTER), None
            case name if name.startswith("kubernetes.authorization."):
                return ONCE
    return _compared(call)


def _compared(call: CallToCost) -> CallCost:
    """Cost a comparison to the end of the shorter operand."""
    return by_factor(min(arg.size[1] for arg in call.args), CHARACTER), None


def _ordered(call: CallToCost) -> CallCost | None:
    return _compared(call) if call.overload.args[0].name in {"string", "bytes"} else None


def _bytes(call: CallToCost) -> CallCost | None:
    least, most = call.args[0].size
    is_text = call.overload.args[0].name == "string"
    return (by_factor(most, CHARACTER), (least, most * 4 & MOST)) if is_text else None


def _string(call: CallToCost) -> CallCost | None:
    least, most = call.args[0].size
    is_bytes = call.overload.args[0].name == "bytes"
    return (by_factor(most, CHARACTER), (least // 4, most)) if is_bytes else None


def _quote(call: CallToCost) -> CallCost:
    least, most = call.args[0].size
    return by_factor(most, CHARACTER), (least + 2 & MOST, most * 2 + 2 & MOST)


def _member(call: CallToCost) -> CallCost | None:
    return (call.args[1].size[1], None) if call.overload.args[1].name == "list" else None


def _contains(call: CallToCost) -> CallCost:
    text = by_factor(call.subject.size[1], CHARACTER)
    return times(text, by_factor(call.args[0].size[1], CHARACTER)), None


def _add(call: CallToCost) -> CallCost | None:
    of = call.overload.args[0].name
    size = sum_of(call.args[0].size, call.args[1].size)
    if of == "list":
        return 1, size
    return (by_factor(size[1], CHARACTER), size) if of in {"string", "bytes"} else None


_ESTIMATES: Final[dict[str, Callable[[CallToCost], CallCost | None]]] = {
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort,
    "includes": _includes,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "check": lambda _: (_AUTHORIZATION, None),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "matches": _matches,
    "ip": _ip,
    "ip.isCanonical": _through(2 * CHARACTER),
    "containsIP": _contains_address(0),
    "containsCIDR": _contains_address(by_factor(_ADDRESS[1], CHARACTER) + 1),
    "validate": _validate,
    "_==_": _equals,
    "_!=_": _compared,
    "bytes": _bytes,
    "string": _string,
    "strings.quote": _quote,
    "format": _through(CHARACTER),
    "@in": _member,
    "contains": _contains,
    "_+_": _add,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _whole_list),
    **dict.fromkeys(
        ("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"),
        _through(CHARACTER, keeps_size=True),
    ),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _through_first),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _through_first),
    **dict.fromkeys(("startsWith", "endsWith"), _through_first),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
}
