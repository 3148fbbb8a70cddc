"""Small policies made of parts at random, and inputs that touch them."""

import random
from typing import Any

from tests.differential.agreement import Question

SCALARS = ("1", "2", "0", "-1", "1.5", '"a"', '"b"', '""', "true", "false", "null")
PATHS = ("input.a", "input.b", "input.a.b", "input.xs", "input.o", "data.d.x", "data.d.ys")
DOCUMENTS = ("q", "s", "o", "g(1)", 'g("a")', "o.a", "o[_]", "s[_]", "data.t.q")
INFIX = ("==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|")
FUNCTIONS = (
    *("count", "sum", "max", "min", "sort", "upper", "lower", "to_number", "is_string"),
    *("is_array", "array.reverse", "object.keys", "type_name", "json.marshal", "abs", "round"),
    *("trim_space", "floor", "product"),
)
FUNCTIONS_2 = (
    *("array.concat", "startswith", "contains", "split", "concat", "object.get"),
    *(
        "object.union",
        "format_int",
        "numbers.range",
        "regex.match",
        "endswith",
        "trim",
        "json.filter",
    ),
)


class Maker:
    """Makes terms and bodies over the variables in scope."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0

    def fresh(self) -> str:
        """A name not used before."""
        self.count += 1
        return f"v{self.count}"

    def term(self, depth: int, names: list[str]) -> str:
        """A term of any kind."""
        chance = self.chance
        kind = chance.randrange(16 if depth > 0 else 5)
        if kind < 2:
            return chance.choice(SCALARS)
        if kind < 4 or not depth:
            return chance.choice((*PATHS, *names, *names))
        if kind == 4:
            return chance.choice(DOCUMENTS)
        if kind == 5:
            inner = [self.term(depth - 1, names) for _ in range(chance.randrange(3))]
            return f"[{', '.join(inner)}]"
        if kind == 6:
            inner = [self.term(depth - 1, names) for _ in range(1 + chance.randrange(2))]
            return f"{{{', '.join(inner)}}}"
        if kind == 7:
            return f'{{"a": {self.term(depth - 1, names)}, "k": {self.term(depth - 1, names)}}}'
        if kind < 10:
            left, right = self.unknown(depth - 1, names), self.unknown(depth - 1, names)
            return f"({left} {chance.choice(INFIX)} {right})"
        if kind == 10:
            return f"{chance.choice(FUNCTIONS)}({self.unknown(depth - 1, names)})"
        if kind == 11:
            name = chance.choice(FUNCTIONS_2)
            third = ", null" if name == "object.get" else ""
            args = f"{self.unknown(depth - 1, names)}, {self.unknown(depth - 1, names)}"
            return f"{name}({args}{third})"
        if kind < 14:
            return self._comprehension(depth, names)
        return f"{chance.choice((*PATHS, *names))}[{chance.choice(('_', '0', *SCALARS, *names))}]"

    def unknown(self, depth: int, names: list[str]) -> str:
        """A term whose type is mostly not known at load, so that more policies load."""
        if self.chance.random() < 0.25:
            return self.term(depth, names)
        return self.chance.choice((*PATHS, *names))

    def _comprehension(self, depth: int, names: list[str]) -> str:
        own = list(names)
        body = self.body(depth - 1, own)
        kind = self.chance.randrange(3)
        if kind == 0:
            return f"[{self.operand(own)} | {body}]"
        if kind == 1:
            return f"{{{self.operand(own)} | {body}}}"
        return f"{{{self.operand(own)}: {self.operand(own)} | {body}}}"

    def operand(self, names: list[str]) -> str:
        """A term before a bar, which binds tighter than operators."""
        return self.chance.choice((*SCALARS, *names, *names, *names))

    def body(self, depth: int, names: list[str]) -> str:
        """Literals, to whose variables ``names`` grows."""
        return "; ".join(self.literal(depth, names) for _ in range(1 + self.chance.randrange(3)))

    def literal(self, depth: int, names: list[str]) -> str:
        """Returns a literal."""
        chance = self.chance
        kind = chance.randrange(13)
        known = list(names)
        if kind < 3:
            name = self.fresh()
            text = f"{name} := {self.term(depth, known)}"
            names.append(name)
            return text
        if kind < 5:
            name = self.fresh()
            text = f"some {name} in {self.unknown(depth, known)}"
            names.append(name)
            return text
        if kind == 5:
            key, name = self.fresh(), self.fresh()
            text = f"some {key}, {name} in {self.unknown(depth, known)}"
            names += [key, name]
            return text
        if kind == 6:
            return f"not {self.term(depth, known)}"
        if kind == 7:
            name = self.fresh()
            inner = self.term(max(depth - 1, 0), [*known, name])
            return f"every {name} in {self.unknown(depth, known)} {{ {name} != {inner} }}"
        if kind == 8:
            value = self.term(max(depth - 1, 0), known)
            return f"{self.term(depth, known)} with input.a as {value}"
        if kind == 9:
            return f"{self.unknown(depth, known)} in {self.unknown(depth, known)}"
        if kind == 10:
            return f"{self.unknown(depth, known)} = {self.term(depth, known)}"
        left, right = self.unknown(depth, known), self.unknown(depth, known)
        return f"{left} {chance.choice(INFIX[:6])} {right}"


def policy(chance: random.Random) -> Question:
    """A module with rules of each kind, of which one is asked for."""
    make = Maker(chance)
    rules = ["package t"]
    names: list[str] = []
    rules.append(f"q := {make.term(1, [])}" if chance.random() < 0.3 else "q := input.b")
    body = _below(make.body(1, names)) if chance.random() < 0.3 else "some x in input.xs"
    member = chance.choice(names or ["1"]) if body != "some x in input.xs" else "x"
    rules.append(f"s contains {member} if {{ {body} }}")
    rules.append('o.a := 1\no.b := input.b if input.a\no[k] := 3 if some k in ["c", input.b]')
    rules.append('g(x) := x if x == 1\ng(x) := "other" if x != 1')
    for _ in range(1 + chance.randrange(2)):
        names = []
        text = make.body(2, names)
        value = make.operand(names)
        if chance.random() < 0.3:
            rules.append(f"p := {value} if {{ {text} }} else := {make.operand([])} if input.a")
        else:
            rules.append(f"p := {value} if {{ {text} }}")
    if chance.random() < 0.3:
        rules.append(f"default p := {chance.choice(SCALARS)}")
    values: tuple[Any, ...] = (
        1,
        2,
        "a",
        "b",
        True,
        None,
        [1, "a"],
        {"b": 1},
        [],
        {},
        [[1], {"a": 2}],
    )
    input_value = {name: chance.choice(values) for name in ("a", "b", "xs", "o")}
    if chance.random() < 0.5:
        input_value["xs"] = [chance.choice(values) for _ in range(3)]
    data = {"d": {"x": chance.choice(values), "ys": [chance.choice(values) for _ in range(2)]}}
    return Question(
        ("\n".join(rules),), "data.t.p = x", input=input_value, has_input=True, data=data
    )


def _below(body: str) -> str:
    """The body without what would make the rules depend on one another in a circle."""
    for name in ("o[_]", "s[_]", "o.a", "data.t.q", "g(1)", 'g("a")'):
        body = body.replace(name, "input.o")
    return body
