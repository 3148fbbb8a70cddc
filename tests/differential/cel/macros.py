"""Every macro over values of every kind, its variables named as anything else is named."""

import random
import re
from collections.abc import Iterator
from typing import Final

_NAMES: Final = (
    "x", "y", ".x", "int", ".int", "list", "map", "type", "optional_type", "duration", "timestamp",
    "size", "optional", "object", ".object", "request", "quantity", "ip", "google", "kubernetes",
    "_", "self", "__result__", "@x", "x.y", "null", "true", "1", "'a'", "has(x)", "x[0]",
)  # fmt: skip
_TARGETS: Final = (
    "[1]", "['a']", "[null]", "[]", "[[]]", "[{}]", "[[1], []]", "[1u, 2u]", "[1.5]", "[[['a']]]",
    "[dyn(1)]", "[1, dyn('a')]", "[type(1)]", "[type(dyn(1))]", "[type(duration('1s'))]", "[map]",
    "[list, map]", "[object]", "[request]", "[type(request)]", "[duration('1s')]", "[quantity('1')]",
    "[ip('::1')]", "[optional.of(1)]", "[?optional.of(1)]", "[nope]", "nope", "{}", "{'a': 1}",
    "{1: 'a', 2: dyn('b')}", "1", "null", "'abc'", "object.m", "object.ints", "object.any.l",
    "object.missing", "object.?m", "object.?nope", "request.userInfo.groups", "optional.none()",
    "namespaceObject.metadata.labels", "optional.of(1)", "[1].map(x, x)", "[1].first()",
    "dyn(optional.of([1]))", "(object.ints + object.none)",
)  # fmt: skip
_BODIES: Final = (
    "N", ".N", "(N)", "-N", "!N", "N.x", "N.?x", "N.y.z", "has(N.x)", "N[0]", "N[?0]", "N()", "N.of(N)",
    "N.size()", "size(N)", "type(N)", "dyn(N)", "string(N)", "int(N)", "duration(N)", "N.value()",
    "N.hasValue()", "N.orValue(1)", "N.or(N)", "optional.of(N)", "optional.none().or(N)", "N == 1",
    "N == N", "N < N", "N + 1", "N in [1]", "N || N && N", "N ? N : N", "N && true", "N ? 1 : 2",
    "[N]", "[?N]", "[?N.?x]", "[N, 'a']", "[N, nope]", "{N: 1}", "{'a': N}", "{?'a': N}", "N{}",
    "N{a: 1}", "N{seconds: 1}", "google.protobuf.Duration{seconds: N}", "N.all(y, y)", "[N].map(N, N)",
    "[N].map(y, N + y)", "{'a': N}.transformMap(N, v, v)", "optional.of(N).optMap(N, N)", "N.sum()",
    "N.sort()", "N.join()", "N.distinct()", "N.flatten()", "N.slice(0, 1)", "sets.contains(N, [1])",
    "N.startsWith('a')", "N.matches('(')", "'a'.matches(N)", "'a'.find(string(N))", "N.format([1])",
    "'%d'.format([N])", "'%s'.format(N)", "{N: 1} == {N: 1}", "{N: N}", "int", "object", "nope", "x",
)  # fmt: skip
_OF_ONE: Final = ("all", "exists", "exists_one", "map", "filter", "sortBy", "optMap", "optFlatMap")
_OF_TWO: Final = ("all", "exists", "existsOne", "exists_one")
_TRANSFORMS: Final = ("transformList", "transformMap", "transformMapEntry")


def macros(chance: random.Random) -> Iterator[str]:
    """Expressions without end."""
    while True:
        text = _call(chance, chance.choice(_TARGETS))
        yield _call(chance, text) if chance.random() < 0.1 else text


def _call(chance: random.Random, target: str) -> str:
    names = [_name(chance) for _ in range(2)]
    bodies = [
        re.sub(r"\bN\b", lambda _: chance.choice((names[0], *names)), chance.choice(_BODIES))
        for _ in range(2)
    ]
    forms = (
        (_OF_ONE, [names[0], bodies[0]]),
        (("map",), [names[0], *bodies]),
        (_OF_TWO, [*names, bodies[0]]),
        (_TRANSFORMS, [*names, bodies[0]]),
        (_TRANSFORMS, [*names, *bodies]),
    )
    macros, operands = chance.choices(forms, weights=(10, 2, 3, 3, 2))[0]
    return f"{target}.{chance.choice(macros)}({', '.join(operands)})"


def _name(chance: random.Random) -> str:
    return chance.choice(_NAMES) if chance.random() < 0.5 else chance.choice(("x", "y", "int"))
