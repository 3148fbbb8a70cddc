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
    "[1, 2].transformMap(.object, v, R).size()", "{'a': R}.transformMap(.request, v, v).map(m, m == R)",
    "{'k': R}.transformMapEntry(k, v, {v: 1}).map(m, m == R)", "[[R].map(x, {x: x})].map(l, l[0].map(k, k in l[0]))",
)  # fmt: skip


def identities() -> Iterator[str]:
    """Whether a list, a map or an optional that is read is the one that was read before, as a key."""
    for found, read in itertools.product(_FOUND, _READ):
        yield found.replace(
            "R", f"({read})" if "?" in read.replace(".?", "").replace("[?", "") else read
        )


_VALUES: Final = (
    "object.?any", "object.?nope", "dyn(object.?any)", "dyn(optional.none())", "optional.none()",
    "dyn(optional.of(object.any))", "dyn(optional.of(optional.of(1)))", "optional.of(optional.of(object.ints))",
    "dyn(optional.of(quantity('1')))", "optional.of(ip('::1'))", "dyn(optional.of(type(1)))", "optional.of(int)",
    "(object.t ? optional.of(optional.of(1)) : optional.none())",
    "(object.t ? dyn(optional.of(quantity('1'))) : dyn(1))", "(object.t ? optional.of(1) : optional.none())",
    "(object.t ? dyn(1) : optional.of(2))", "(object.f ? object.?any.x : object.?any.l)", "object.any.?x.y[?0]",
    "object.?any.x.nope", "optional.of(1).optMap(o, optional.of(o))", "optional.of(1).optMap(o, dyn(quantity('1')))",
    "optional.of(1).optFlatMap(o, object.?any)", "object.?i.optMap(o, o)", "object.?nope.optMap(o, o)",
    "object.?i.or(object.?nope)", "dyn(object.?nope.or(dyn(1)))", "[1, 2].first()", "object.ints.last()",
    "[].first()", "optional.ofNonZeroValue('')", "optional.ofNonZeroValue(object.any)", "dyn(1)", "object.i",
    "object.null", "object['null']", "dyn(null)", "object.nope", "(1/0)", "dyn(quantity('1'))", "type(1)",
    "dyn(has(object.?any.x))", "(object.t ? has(object.?any.x) : false)",
    "dyn(object.t ? has(object.?any.x) : dyn(1))", "[optional.of(1)][0]", "{'a': optional.of(1)}.a",
    "{'a': optional.of(1)}.?a", "[dyn(optional.of(1))].map(i, i)[0]", "[optional.of(ip('::1'))].map(i, i)[0]",
    "format.named('uuid')", "format.named('nope')", "object.t", "b'a'", "timestamp(0)",
)  # fmt: skip
_PLACES: Final = (
    "[?O]", "[?O, P]", "{'a': dyn(1), ?'b': O}", "{?'a': O, ?'b': P}", "{dyn(O): 1}", "{?dyn(O): P}", "O.orValue(P)",
    "O.or(P)", "O.or(P).orValue(1)", "O.hasValue()", "O.value()", "O.value().x", "O.optMap(v, v)",
    "O.optMap(v, [v, P])", "O.optFlatMap(v, v)", "O.optFlatMap(v, P)", "optional.of(O)", "optional.ofNonZeroValue(O)",
    "[O, P].unwrapOpt()", "optional.unwrap([O])", "O == P", "dyn(O) == P", "O != P", "O in [P]", "O in [P, dyn(1)]",
    "O in {'a': 1}", "O in {P: 1}", "object.t ? O : P", "(object.t ? O : P).hasValue()",
    "(object.t ? O : P).orValue(3)", "(object.t ? O : P).optMap(v, v)", "O || P", "O && P", "!O", "-O", "type(O)",
    "'%s'.format([O])", "'%s|%s'.format([[O], P])", "string(O)", "O + P", "[O] + [P]", "dyn(O).size()", "dyn(O) < P",
    "[O, P].map(i, i)", "[O, P].map(i, [i])", "[O, P].filter(i, i.hasValue())", "[O].all(i, i == P)",
    "[O].exists(i, i.orValue(1) == P)", "[O].transformList(k, v, v)", "{'a': O}.transformMap(k, v, v)",
    "{'a': O}.transformMapEntry(k, v, {k: v})", "[dyn(O), P].indexOf(P)", "[dyn(O), P].distinct()",
    "[O].sortBy(i, 1)", "sets.contains([O], [P])", "[dyn(O)].join()", "dyn(O).sum()", "O.?x", "O.?x.orValue(P)",
    "object[O]", "object.ints[O]", "object.ints[?O]", "{1: 2}[?dyn(O)].orValue(P)", "dyn([O, P])[0]", "[O][?0]",
    "[[O]].flatten()", "[O].first().value()", "[O].reverse()[0].hasValue()", "optional.of([O]).optMap(v, v[0])",
    "O ? P : 1", "dyn(O) ? 1 : 2", "quantity('1').add(O)", "quantity('1').compareTo(O)", "ip('::1') == O",
    "google.protobuf.Duration{?seconds: O}",
)  # fmt: skip


def optionals() -> Iterator[str]:
    """Values of every kind, most of them optional, in every place, two by two."""
    for place, one, other in itertools.product(_PLACES, _VALUES, _VALUES):
        if "P" in place or other == _VALUES[0]:
            yield place.translate({ord("O"): one, ord("P"): other})
