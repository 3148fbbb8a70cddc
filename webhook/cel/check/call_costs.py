"""What a call of a function costs at most beside its operands, and how large its result is.

k8s.io/apiserver, pkg/cel/library/cost.go (EstimateCallCost); cel-go, ext/lists.go, ext/sets.go and
checker/cost.go (functionCost). One of several forms of a function is asked at a time.
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
"""What it costs, and the size of the result where it is known."""

ONCE: Final[CallCost] = (1, None)

_ADDRESS: Final[Size] = (4, 16)
"""The bytes of an address."""

_AUTHORIZATION = 350_000
"""So much that an expression may ask for two."""

_FORMAT_PATTERN = 128
_FORMAT_NAME = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """A call by one form of its function; ``declared`` is the declared size at a path."""

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
        """The size of the target's items; None for what is no list."""
        if self.target is None or not self.target.type.parts:
            return None
        path = self.target.path
        if path is None:
            return ANY_SIZE
        return self.declared(Path([*path.names, "@items"], path.length + 1)) or ANY_SIZE


def call_cost(asked: Asked) -> CallCost:
    """What a call costs beside its operands."""
    estimate = _ESTIMATES.get(asked.function)
    estimated = None if estimate is None else estimate(asked)
    return ONCE if estimated is None else estimated


def _allocating(factor: float, size: Size) -> CallCost:
    return plus(by_factor(size[1], factor), 1 + LIST), size


def _integer(operand: SizedOperand, otherwise: int) -> int:
    value = operand.node.value if isinstance(operand.node, Constant) else None
    return max(0, value) if type(value) is int else otherwise


def _slice(asked: Asked) -> CallCost:
    end = _integer(asked.args[1], asked.subject.size[1])
    length = (end - _integer(asked.args[0], 0)) & MOST
    return _allocating(1, (length, length))


def _range(asked: Asked) -> CallCost:
    length = _integer(asked.args[0], MOST)
    return _allocating(1, (length, length))


def _reverse(asked: Asked) -> CallCost:
    return _allocating(1, asked.subject.size)


def _flatten(asked: Asked) -> CallCost:
    depth = _integer(asked.args[0], MOST) if asked.args else 1
    return _allocating(depth, asked.subject.size)


def _distinct(asked: Asked) -> CallCost:
    return _allocating(2, product_of(asked.subject.size, asked.subject.size))


def _sort(asked: Asked) -> CallCost:
    """By items or keys: each is compared with each."""
    size = (asked.args[0] if asked.args else asked.subject).size
    of = asked.overload.args[-1].parts[0].name
    factor = 2 + CHARACTER if of in {"string", "bytes"} else 2
    return _allocating(factor, product_of(size, size))


def _sets(factor: int) -> Callable[[Asked], CallCost]:
    def estimate(asked: Asked) -> CallCost:
        compared = product_of(asked.args[0].size, asked.args[1].size)
        return plus(by_factor(compared[1], factor), 1), None

    return estimate


def _selector(asked: Asked) -> CallCost:
    """A selector's text: the shortest requirement has two characters."""
    most = asked.args[0].size[1]
    requirements = by_factor(by_factor(most, 0.5), LIST + MESSAGE)
    return plus(plus(LIST, by_factor(most, CHARACTER)), requirements), None


def _whole_list(asked: Asked) -> CallCost | None:
    """Through all items, with their texts; or through a text."""
    if asked.target is None:
        return None
    items = asked.items_size()
    if items is None:
        return by_factor(asked.target.size[1], CHARACTER), None
    is_text = asked.target.type.parts[0].name in {"string", "bytes"}
    turn = plus(1, by_factor(items[1], CHARACTER)) if is_text else 1
    return times(asked.target.size[1], turn), None


def _includes(asked: Asked) -> CallCost | None:
    """Through all items; of what may be no list nothing is known but its size."""
    if asked.target is not None and asked.items_size() is None:
        return asked.target.size[1], None
    return _whole_list(asked)


def _through(factor: float, *, keeps_size: bool = False) -> Callable[[Asked], CallCost]:
    """Through the text that is asked about."""

    def estimate(asked: Asked) -> CallCost:
        size = asked.subject.size
        return by_factor(size[1], factor), size if keeps_size else None

    return estimate


def _through_first(asked: Asked) -> CallCost:
    return by_factor(asked.args[0].size[1], CHARACTER), None


def _replace(asked: Asked) -> CallCost:
    size, (old_least, old_most), new = (
        one.size for one in (asked.subject, asked.args[0], asked.args[1])
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


def _split(asked: Asked) -> CallCost:
    most = asked.subject.size[1]
    cost = by_factor(most, 2 * CHARACTER)
    if len(asked.args) > 1:
        limit = asked.args[1].node
        if isinstance(limit, Constant) and type(limit.value) is int:
            most = limit.value & MOST
    return cost, (0, most)


def _join(asked: Asked) -> CallCost:
    items, listed = asked.items_size(), asked.subject.size
    size = (0, 0) if items is None else product_of(listed, items)
    if asked.args:
        between = (max(0, listed[0] - 1), max(0, listed[1] - 1))
        size = sum_of(size, product_of(asked.args[0].size, between))
    return by_factor(size[1], CHARACTER), size


def _searched(asked: Asked) -> int:
    text = by_factor(plus(asked.subject.size[1], 1), CHARACTER)
    return times(text, by_factor(asked.args[0].size[1], PATTERN))


def _find(asked: Asked) -> CallCost:
    return _searched(asked), (0, asked.subject.size[1])


def _matches(asked: Asked) -> CallCost | None:
    return None if asked.target is None else (_searched(asked), None)


def _ip(asked: Asked) -> CallCost:
    return ONCE if asked.target is not None else _through_first(asked)


def _contains_address(beside: int) -> Callable[[Asked], CallCost]:
    compared = plus(by_factor(sum_of(_ADDRESS, _ADDRESS)[1], CHARACTER), beside)

    def estimate(asked: Asked) -> CallCost:
        is_text = asked.overload.args[1] == STRING
        return plus(compared, _through_first(asked)[0]) if is_text else compared, None

    return estimate


def _validate(asked: Asked) -> CallCost:
    return by_factor(_through_first(asked)[0], _FORMAT_PATTERN * PATTERN), None


def _equals(asked: Asked) -> CallCost:
    one, other = asked.args
    if one.type == other.type:
        match one.type.name:
            case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
                return ONCE
            case "kubernetes.NamedFormat":
                return by_factor(_FORMAT_NAME, CHARACTER), None
            case "kubernetes.URL":
                return by_factor((other.computed or (1, 1))[1], CHARACTER), None
            case name if name.startswith("kubernetes.authorization."):
                return ONCE
    return _compared(asked)


def _compared(asked: Asked) -> CallCost:
    """To the end of the shorter of two."""
    return by_factor(min(one.size[1] for one in asked.args), CHARACTER), None


def _ordered(asked: Asked) -> CallCost | None:
    return _compared(asked) if asked.overload.args[0].name in {"string", "bytes"} else None


def _bytes(asked: Asked) -> CallCost | None:
    least, most = asked.args[0].size
    is_text = asked.overload.args[0].name == "string"
    return (by_factor(most, CHARACTER), (least, most * 4 & MOST)) if is_text else None


def _string(asked: Asked) -> CallCost | None:
    least, most = asked.args[0].size
    is_bytes = asked.overload.args[0].name == "bytes"
    return (by_factor(most, CHARACTER), (least // 4, most)) if is_bytes else None


def _quote(asked: Asked) -> CallCost:
    least, most = asked.args[0].size
    return by_factor(most, CHARACTER), (least + 2 & MOST, most * 2 + 2 & MOST)


def _member(asked: Asked) -> CallCost | None:
    return (asked.args[1].size[1], None) if asked.overload.args[1].name == "list" else None


def _contains(asked: Asked) -> CallCost:
    text = by_factor(asked.subject.size[1], CHARACTER)
    return times(text, by_factor(asked.args[0].size[1], CHARACTER)), None


def _add(asked: Asked) -> CallCost | None:
    of = asked.overload.args[0].name
    size = sum_of(asked.args[0].size, asked.args[1].size)
    if of == "list":
        return 1, size
    return (by_factor(size[1], CHARACTER), size) if of in {"string", "bytes"} else None


_ESTIMATES: Final[dict[str, Callable[[Asked], CallCost | None]]] = {
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
