"""Keys of every kind behind operands of every form: paths, conditionals, macros and optionals."""

import itertools
from collections.abc import Iterator
from typing import Final

_OPERANDS: Final = (
    "object", "object.any", "dyn(object.any)", "object.?any", "object.?nope", "dyn(object.mixed)",
    "dyn(optional.none())", "dyn(optional.of(object.any))", "dyn(optional.of(optional.of(object.any)))",
    "dyn({'x': dyn(optional.of({'y': 1, 'x': [2]})), 'l': dyn([optional.of({'x': 1})])})",
    "dyn([optional.of([1, 2]), dyn({'x': optional.of({'x': 3})})])", "dyn({1: 'a', 0u: dyn({'x': 'y'}), true: [3]})",
    "dyn(optional.of(type(1)))", "dyn(optional.of(quantity('1')))", "dyn(quantity('1'))", "object.nope.x",
    "optional.of(object.any)", "optional.of(optional.of(object.any))", "dyn(optional.ofNonZeroValue([object.any]))",
)  # fmt: skip
_FORMS: Final = (
    "OK", "(object.t ? O : dyn(1))K", "(object.f ? dyn(optional.none()) : O)K",
    "(object.t ? (object.f ? dyn(1) : dyn(O)) : object)K", "(object.t ? (object.i > 0 ? O : object) : object)K",
    "[O].map(i, iK)", "[O].map(i, (object.t ? i : object)K)", "optional.of(1).optMap(o, O)K",
    "optional.of(1).optFlatMap(o, optional.of(O))K", "optional.of(O).optMap(o, oK)", "(object.f ? O : optional.none())K",
    "has(OK.x)", "(object.t ? has(OK.x) : false)", "dyn(object.t ? has(OK.x) : dyn(1))", "[object.any][has(OK.x) ? 0 : 1]",
    "{true: 'y', 'x': 'x', 1: 1}[(object.t ? OK : 1)]", "{'a': 1}[object.f ? 'a' : OK]",
)  # fmt: skip
_KEYS: Final = (
    ".x", ".?x", "['x']", "[?'x']", "[dyn('x')]", "[?dyn('x')]", "[object.m.a == 1 ? 'x' : 'y']", "[0]", "[?0]", "[object.i]",
    "[?object.zero]", "[1u]", "[?0u]", "[-1]", "[1.0]", "[?true]", "[dyn(null)]", "[?dyn(b'x')]", "[object.ints]",
    "[dyn(optional.of(0))]", "[?object.?i]", "[object.nope]", "[?(object.t ? dyn(0) : dyn('x'))]", ".l", "[?'l']",
)  # fmt: skip


def paths() -> Iterator[str]:
    """Each form of each operand behind none of the keys, each, and each two."""
    for form, operand in itertools.product(_FORMS, _OPERANDS):
        for first, second in itertools.product(("", *_KEYS), repeat=2):
            if first or not second:
                yield form.replace("O", operand, 1).replace("K", first + second)
