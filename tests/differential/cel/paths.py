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


_READ: Final = (
    "object.m", "object.any.l", "object.any.l[0]", "object.any['l']", "object.?m", "object.?m.value()", "object.any.?l[0]",
    "object[?'m'].orValue({})", "object.any.l.first()", "object.any.l.first().value()", "object.any.l.reverse()[0]",
    "object.any.l.slice(0, 1)[0]", "object.any.l.filter(i, true)[0]", "object.any.l.map(i, i)[0]", "(object.any.l + [])[0]",
    "([] + object.any.l)[0]", "{'a': object.any}.a.l", "[object.any][0].l", "[object.any][0]", "dyn(object.m)", "dyn(object).m",
    "(object.t ? object : dyn({'m': dyn([])})).m", "(object.f ? object.m : dyn([1]))", "(object.t ? object.m : object.l)",
    "optional.of(object.any).optMap(o, o.l).value()", "optional.of(object.any).optMap(o, o)", "object.mixed[dyn(6u)]",
    "optional.of(object.any).value().l", "optional.of(object.any).or(optional.none()).value()", "[object.any.l].flatten()[0]",
    "{'a': object.any}.transformMap(k, v, v).a", "{'a': object.any}.transformMap(k, v, v.l).a", "object.any.l.distinct()[0]",
    "object.any.transformMap(k, v, v).l", "object.any.transformMapEntry(k, v, {k: v}).l", "object.mixed[6u]", "object.mixed[6.0]",
    "object.any.l.sortBy(i, 1)[0]", "[object.any.l].flatten(1)[0]", "[[object.any.l]].flatten(2)[0].k", "[dyn({'x': [1]})][0].x", "[[1]][0]", "[object.i]", "[1, 2].map(i, i)", "{'a': 1}", "object",
    "request.userInfo.groups", "namespaceObject.metadata.labels", "params.spec", "request", "optional.of(object.any)",
    "[?object.?any][0]", "[?object.?any][0].l", "{?'a': object.?any}.a.l", "[object.?any].unwrapOpt()[0].x", "[object.any].last()",
    "[object.any].map(i, i.l)[0]", "[object].map(i, i.any)[0]", "[object.any.l].map(i, i[0])[0]", "{'k': object.any}[?'k'].l",
    "(object.t ? [object.any][0] : object).l", "object.any.l.exists(i, true) ? object.any : object", "dyn(int)", "dyn(quantity('1'))",
)  # fmt: skip
_FOUND: Final = (
    "R in {R: 1}", "[R].map(x, x in {x: 1})", "[R].map(x, x in {R: 1})", "optional.of(R).optMap(x, x in {x: 1})",
    "{'a': R}.transformList(k, v, v in {v: 1})", "[{'a': R}].map(l, l.a in {l.a: 1})", "[[R]].map(l, l[0] in {l[0]: 1})",
    "[[R]].map(l, l.reverse()[0] in {l[0]: 1})", "[R].map(x, dyn(x)).map(y, y in {y: 1})", "[{R: 1}].map(m, R in m)",
    "[R].filter(x, true).map(y, y in {y: 1})", "([R] + [R]).map(x, x in {x: 1})", "[{R: 1}].map(m, m.map(k, k in m))",
    "[R].map(x, (object.t ? x : x) in {x: 1})", "[dyn(R)].map(x, x.x in {x.x: 1})", "[R].map(x, [x][0] in {x: 1})",
    "[R].sortBy(x, x in {x: 1} ? 1 : 2)", "dyn(R).l in {dyn(R).l: 1}", "[dyn(R)].map(x, x.l in {x.l: 1})", "{R: 1, R: 2}.size()",
    "[.object].map(.object, .object.m in {.object.m: 1})", "dyn(R).map(x, x in {x: 1})", "dyn(R).all(x, y, y in {y: 1})", "[{dyn(R): 1}].map(m, dyn(R).map(x, x in m))",
    "[R].map(x, optional.of(x).value() in {x: 1})", "[R].map(x, {'a': x}.?a.value() in {x: 1})", "[[R]].map(l, l.first().value() in {l[0]: 1})",
    "{'k': R}.transformMapEntry(k, v, {v: 1}).map(m, m == R)", "[[R].map(x, {x: x})].map(l, l[0].map(k, k in l[0]))",
)  # fmt: skip


def identities() -> Iterator[str]:
    """Whether a list, a map or an optional that is read is the one that was read before, as a key."""
    for found, read in itertools.product(_FOUND, _READ):
        yield found.replace(
            "R", f"({read})" if "?" in read.replace(".?", "").replace("[?", "") else read
        )
