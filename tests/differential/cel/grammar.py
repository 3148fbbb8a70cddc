"""Expressions by chance, of a wanted type by the table of overloads; now and then of another."""

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from tests.differential.cel.texts import READ
from tests.differential.cel.values import PATHS
from webhook.cel.check import types
from webhook.cel.check.environment import Overload, accepted_functions
from webhook.cel.check.types import Type

SIMPLE: Final = (types.INT, types.STRING, types.BOOL, types.DOUBLE, types.UINT, types.DYN)
PLAIN: Final = (types.INT, types.STRING, types.BOOL)
KEYS: Final = (*PLAIN, types.STRING, types.UINT, types.DOUBLE, types.DYN)

MIXED: Final = (
    "dyn(1)", "dyn(1u)", "dyn(1.0)", "dyn(-0.0)", "dyn(0)", "dyn(true)", "dyn('1')", "dyn(0u)",
    "dyn(9007199254740993)", "dyn(9007199254740992.0)", "dyn(18446744073709551615u)",
    "dyn(9223372036854775807)", "dyn(9223372036854775808.0)", "dyn(-9223372036854775808)",
    "dyn(0.0/0.0)", "dyn(b'a')", "dyn(null)", "dyn('a')", "dyn([1])", "dyn({'a': 1})",
)  # fmt: skip
"""Numbers that are equal and of different types, and what is no key, nobody knows which."""

LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "0x1F"),
    "uint": ("0u", "1u", "3u", "18446744073709551615u"),
    "double": (
        "0.0", "1.0", "1.5", "-2.5", "1e300", "1e-3", "(0.0/0.0)", "(1.0/0.0)", "1e21", "5e-324",
        "(0.1 + 0.2)", "123456789.125", "-0.0", "1e-7", "999999.9999999",
    ),
    "bool": ("true", "false"),
    "string": (
        "''", "'a'", "'abc'", "'12'", "'b'", "','", "'ä☃'", "'A-b'", "r'^a.*$'", "'%s-%d'", "'x y'",
        "'10.0.0.1'", "'10.0.0.0/8'", "'1.2.3'", "'1h'", "'2024-01-01T00:00:00Z'", "'500m'", "'true'",
        "'https://a.b/c?d=e'", "'dns1123Label'", "'%v'", "'%.2f|%x|%e'", "'UTC'", "'02:30'", "'a/b'",
        r"'\u00e9\x41\101\n\U0001F600'", "\"it's\"", "'''a'b'''", r'r"\n"',
    ),
    "bytes": ("b''", "b'abc'", "b'\\xff\\x00'", "b'é'", r"b'\101\n'", "br'\\x'"),
    "null_type": ("null",),
    "google.protobuf.Duration": ("duration('1h30m')", "duration('-5s')", "duration('0s')"),
    "google.protobuf.Timestamp": (
        "timestamp('2024-02-29T12:30:45Z')", "timestamp('1969-12-31T23:59:59.999+01:00')",
        "timestamp(0)",
    ),
    "kubernetes.Quantity": ("quantity('1.5Gi')", "quantity('100m')", "quantity('-3')"),
    "kubernetes.URL": ("url('https://u@h.example:80/p?q=1')", "url('/rel')"),
    "kubernetes.Semver": ("semver('1.2.3')", "semver('2.0.0-rc.1')"),
    "kubernetes.NamedFormat": ("format.dns1123Label()", "format.uuid()", "format.date()"),
    "net.IP": ("ip('10.0.0.1')", "ip('::1')", "ip('2001:db8::1')"),
    "net.CIDR": ("cidr('10.0.0.0/8')", "cidr('2001:db8::/32')"),
}  # fmt: skip

MACROS: Final = (
    "all", "exists", "exists_one", "map", "map3", "filter", "all2", "exists2", "existsOne2",
    "transformList", "transformList4", "transformMap", "transformMapEntry", "optMap", "optFlatMap",
    "sortBy", "has",
)  # fmt: skip


@cache
def overloads() -> tuple[tuple[str, Overload], ...]:
    """Every overload that needs no authorizer."""
    return tuple(
        (name, one)
        for name, listed in accepted_functions().items()
        for one in listed
        if not any("authorization" in str(of) for of in (*one.args, one.result))
        and not name.startswith(("@sort", "cel.@"))
    )


def bound(free: Type, to: Type, known: dict[Type, Type]) -> bool:
    """Whether an overload's type can be this one; what its parameters are then is added."""
    if free.free:
        return known.setdefault(free, to) == to
    if free.is_dyn or to.is_dyn:
        return free.is_dyn == to.is_dyn
    return (
        free.name == to.name
        and len(free.parts) == len(to.parts)
        and all(bound(one, other, known) for one, other in zip(free.parts, to.parts, strict=True))
    )


def filled(of: Type, known: dict[Type, Type]) -> Type:
    """An overload's type with its parameters."""
    if of.free:
        return known[of]
    return Type(of.name, tuple(filled(part, known) for part in of.parts), message=of.message)


class Grammar:
    """Makes expressions from one source of chance."""

    def __init__(self, chance: random.Random, *, strange: float = 0.06) -> None:
        """``strange`` is how often an operand is of another type than it should be."""
        self.chance = chance
        self.strange = strange
        self.scope: list[tuple[str, Type]] = []
        self.names = 0

    def expression(self, depth: int) -> str:
        """Any expression."""
        return self.of(self.any_type(2), depth)

    def any_type(self, depth: int) -> Type:
        """A type, with parts."""
        pick = self.chance.random()
        if depth and pick < 0.12:
            return types.list_of(self.any_type(depth - 1))
        if depth and pick < 0.2:
            return types.map_of(self.chance.choice(KEYS), self.any_type(depth - 1))
        if depth and pick < 0.26:
            return types.optional_of(self.any_type(depth - 1))
        if pick < 0.75:
            return self.chance.choice(SIMPLE)
        name = self.chance.choice(tuple(LITERALS))
        return types.NULL if name == "null_type" else Type(name)

    def of(self, result_type: Type, depth: int) -> str:
        """An expression of a type, nearly always."""
        chance = self.chance
        if chance.random() < self.strange:
            result_type = self.any_type(1)
        if depth <= 0:
            return self.leaf(result_type)
        pick = chance.random()
        if pick < 0.1:
            return self.leaf(result_type)
        if result_type.is_dyn and chance.random() < 0.35:
            return f"dyn({self.of(self.any_type(1), depth - 1)})"
        if result_type.name in {"list", "map"} and chance.random() < 0.15:
            return self.literal(result_type, depth - 1)
        if chance.random() < 0.03:
            return f"{self.chain(depth - 1)}.orValue({self.of(result_type, depth - 1)})"
        if pick < 0.28:
            made = self.macro(result_type, depth)
            if made is not None:
                return made
        if pick < 0.34:
            test, then, other = (
                self.of(one, depth - 1) for one in (types.BOOL, result_type, result_type)
            )
            return f"({test} ? {then} : {other})"
        return self.call(result_type, depth)

    # --- leaves -------------------------------------------------------------------------------

    def leaf(self, result_type: Type) -> str:
        """A literal, a variable, a field."""
        chance = self.chance
        seen = dict(self.scope)  # of two of one name the inner one
        fitting = [name for name, of in seen.items() if of == result_type or of.is_dyn]
        if fitting and chance.random() < 0.6:
            name = chance.choice(fitting)
            return name if chance.random() < 0.8 else f"dyn({name})"
        if result_type.is_dyn and chance.random() < 0.3:
            return chance.choice(MIXED)
        if result_type.is_dyn or chance.random() < 0.15:
            return self.field()
        if result_type.name in {"list", "map"}:
            return self.literal(result_type, 0)
        if result_type.name == "optional_type":
            part = self.leaf(result_type.parts[0])
            return chance.choice(
                (f"optional.of({part})", "optional.none()", f"optional.ofNonZeroValue({part})")
            )
        if result_type.name == "type":
            return chance.choice(("int", "string", "type(1)", "list", "null_type"))
        listed = LITERALS.get(result_type.name)
        return chance.choice(listed) if listed else self.field()

    def literal(self, result_type: Type, depth: int) -> str:
        """A list or a map, some of what is in it there or not."""
        chance = self.chance
        of = result_type.parts[-1]
        key = result_type.parts[0]
        is_mixed = chance.random() < 0.4  # a dyn may stand beside any type
        shown = (lambda text: f"dyn({text})") if is_mixed else (lambda text: text)
        parts = []
        for _ in range(chance.randrange(4)):
            if chance.random() < 0.06:
                part = self.of(types.optional_of(types.DYN if is_mixed else of), depth)
                mark = "?"
            else:
                part, mark = shown(self.of(of, depth)), ""
            if result_type.name == "map":
                part = f"{shown(self.of(key, 0))}: {part}"
            parts.append(f"{mark}{part}")
        return f"[{', '.join(parts)}]" if result_type.name == "list" else f"{{{', '.join(parts)}}}"

    def chain(self, depth: int) -> str:
        """A path with a question mark somewhere."""
        chance = self.chance
        path = self.field() if chance.random() < 0.7 else f"({self.of(types.DYN, depth)})"
        path += chance.choice((".?x", ".?a", "[?0]", "[?'a']", f"[?{self.leaf(types.DYN)}]"))
        for _ in range(chance.randrange(3)):
            path += chance.choice((".x", ".?y", "[0]", "[?1]", ".a", "['k']", ".?l", "[?'z']"))
        return path

    def field(self) -> str:
        """A field of a variable, there or not."""
        chance = self.chance
        root = chance.choices(tuple(PATHS), weights=(6, 4, 1, 1, 1))[0]
        path = chance.choice(PATHS[root])
        found = f"{root}.{path}"
        pick = chance.random()
        if pick < 0.06:
            found = f"{root}.?{path}"
        elif pick < 0.1:
            found = f"{found}.x"
        elif pick < 0.14:
            found = f"{found}[0]"
        elif pick < 0.18:
            found = f"{found}['a']"
        return found

    # --- calls --------------------------------------------------------------------------------

    def call(self, result_type: Type, depth: int) -> str:
        """A call of an overload that gives the type."""
        listed = _fitting(result_type)
        if not listed:
            return self.leaf(result_type)
        name, overload = self.chance.choice(listed)
        known: dict[Type, Type] = {}
        bound(overload.result, result_type, known)
        for free in overload.free:
            known.setdefault(free, self.chance.choice(SIMPLE))
        args = [self.of(filled(one, known), depth - 1) for one in overload.args]
        if name == "lists.range":  # of 2^63 the oracle would never make an end
            args = [self.chance.choice(("0", "1", "3", "-1", "14", "40", "size(object.ints)"))]
        for at, of in enumerate(overload.args):
            read = READ.get((name, at))
            if read and of == types.STRING and self.chance.random() < 0.5:
                args[at] = self.text(self.chance.choice(read))
        if name == "format" and self.chance.random() < 0.7:
            args[1] = self.shown(depth - 1)
        return written(name, args, member=overload.member)

    def text(self, of: str) -> str:
        """A text as it is, known before the expression is run or not."""
        literal = json.dumps(of, ensure_ascii=False)
        if self.chance.random() < 0.2 and "'" not in of:
            literal = f"r'{of}'"
        return literal if self.chance.random() < 0.6 else f"({literal} + object.empty)"

    def shown(self, depth: int) -> str:
        """A list of what a text is to show."""
        parts = [self.of(self.any_type(2), depth) for _ in range(self.chance.randrange(1, 4))]
        return f"[{', '.join(f'dyn({part})' for part in parts)}]"

    # --- macros -------------------------------------------------------------------------------

    def macro(self, result_type: Type, depth: int) -> str | None:
        """A macro that gives the type; None where there is none."""
        chance = self.chance
        if result_type.name == "bool":
            kind = chance.choice(
                ("all", "exists", "exists_one", "all2", "exists2", "existsOne2", "has")
            )
        elif result_type.name == "list":
            kind = chance.choice(
                ("map", "map3", "filter", "transformList", "transformList4", "sortBy")
            )
        elif result_type.name == "map":
            kind = chance.choice(("transformMap", "transformMap4", "transformMapEntry"))
        elif result_type.name == "optional_type":
            kind = chance.choice(("optMap", "optFlatMap", "select"))
        else:
            return None
        return self._macro(kind, result_type, depth - 1)

    def _macro(self, kind: str, result_type: Type, depth: int) -> str:
        chance = self.chance
        if kind == "has":
            return f"has({self.field().split('[')[0].split('.?')[0]}.{chance.choice('axs')})"
        if kind == "select":
            return f"{self.of(types.DYN, depth)}.?{chance.choice(('a', 'x', 'app', 'i'))}"
        item = chance.choice(SIMPLE)
        if kind in {"filter", "sortBy"}:
            item = result_type.parts[0]
        if kind in {"optMap", "optFlatMap"}:
            target = self.of(types.optional_of(item), depth)
            result = result_type if kind == "optFlatMap" else result_type.parts[0]
            return f"{target}.{kind}({self._bound([item], lambda: self.of(result, depth))})"
        over_map = chance.random() < 0.3 and kind not in {"filter", "sortBy"}
        key = chance.choice(KEYS)
        of = types.map_of(key, item) if over_map else types.list_of(item)
        if chance.random() < 0.35:
            of = types.DYN
            key = item = types.DYN
        target = self.of(of, depth)
        one = [key if over_map else item]
        two = [key if over_map else types.INT, item]
        test = lambda: self.of(types.BOOL, depth)  # noqa: E731
        part = result_type.parts[-1] if result_type.parts else types.BOOL
        value = lambda: self.of(part, depth)  # noqa: E731
        match kind:
            case "all" | "exists" | "exists_one" | "filter":
                within = self._bound(one, test)
            case "all2" | "exists2" | "existsOne2":
                within = self._bound(two, test)
            case "map":
                within = self._bound(one, value)
            case "map3":
                within = self._bound(one, test, value)
            case "sortBy":
                within = self._bound(one, lambda: self.of(chance.choice(PLAIN), depth))
            case "transformList" | "transformMap":
                within = self._bound(two, value)
            case "transformList4" | "transformMap4":
                within = self._bound(two, test, value)
            case _:
                entry = lambda: f"{{{self.of(result_type.parts[0], depth)}: {value()}}}"  # noqa: E731
                if chance.random() < 0.2:
                    entry = lambda: self.of(types.DYN, depth)  # noqa: E731
                within = self._bound(two, entry)
        return f"{target}.{kind.rstrip('234')}({within})"

    def _bound(self, of: Sequence[Type], *bodies: Callable[[], str]) -> str:
        """Names and bodies that may use them."""
        names = []
        for one in of:
            self.names += 1
            hidden = [name for name, _ in self.scope] if self.chance.random() < 0.05 else []
            hidden = (
                self.chance.choice((hidden, ["size", "int", "request", "type"])) if hidden else []
            )
            names.append((self.chance.choice(hidden) if hidden else f"v{self.names}", one))
        self.scope += names
        made = [body() for body in bodies]
        del self.scope[len(self.scope) - len(names) :]
        return ", ".join([*(name for name, _ in names), *made])


@cache
def _fitting(result_type: Type) -> tuple[tuple[str, Overload], ...]:
    return tuple((name, one) for name, one in overloads() if bound(one.result, result_type, {}))


_OPERATORS: Final = {
    "_[?_]": "{}[?{}]", "_[_]": "{}[{}]", "!_": "!({})", "-_": "-({})", "@in": "({} in {})",
    "_?_:_": "({} ? {} : {})",
}  # fmt: skip


def written(name: str, args: Sequence[str], *, member: bool) -> str:
    """A call as a policy writes it."""
    if name in _OPERATORS:
        return _OPERATORS[name].format(*args)
    if name.startswith("_") and name.endswith("_"):
        return f"({args[0]} {name.strip('_')} {args[1]})"
    if member:
        target = args[0] if not args[0].startswith("-") else f"({args[0]})"
        return f"{target}.{name}({', '.join(args[1:])})"
    return f"{name}({', '.join(args)})"
