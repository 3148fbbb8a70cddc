"""Random bodies of three to eight literals that use each other's variables.

Built-ins are drawn as often as real policies use them (``frequencies``), and get operands of the
types they declare more often than not: what is undefined at once shows little.
"""

import json
import random
from typing import Final

from tests.differential.composition.frequencies import WEIGHTS
from tests.differential.composition.places import EACH
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.types import type_text

EXCLUDED: Final = (
    # Functions with effects, with another syntax, or missing in v1.
    *("assign", "eq", "print", "trace", "opa.runtime", "http.send", "net.lookup_ip_addr", "walk"),
    *(
        "any",
        "all",
        "re_match",
        "time.now_ns",
        "numbers.range",
        "rego.metadata.chain",
        "time.format",
    ),
    *("json.match_schema", "json.verify_schema", "crypto.x509.parse_certificates"),
)

INFIX: Final = {
    "equal": "==",
    "neq": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "plus": "+",
    "minus": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "internal.member_2": "in",
}

KINDS: Final = ("string", "number", "boolean", "array", "set", "object", "any")

CONSTANTS: Final = {
    "string": ('"a"', '"ab"', '"b"', '""', '"1"', '"^a"', '"%v:%v"', "input.review.a"),
    "number": ("1", "0", "2", "1.5", "-1", "input.review.one", "count(input.review.xs)"),
    "boolean": ("true", "false"),
    "array": ('["a", "b"]', "[]", "[1, 2]", "input.review.xs", "[[1]]"),
    "set": ('{"a", "b"}', "set()", "{1, 2}", "input.review.s", "members"),
    "object": ('{"a": 1}', "{}", "input.review.o", '{"a": {"b": "c"}}', "fields", "data.d"),
    "any": ("null", "input.review.v", "input.review.n", "1", '"a"', "named", "constant"),
}

FUNCTIONS: Final = (
    *("small", "either", "table", "chosen", "large", "pattern", "first", "defaulted", "agreed"),
    "looped",
)

DOCUMENTS: Final = ("members", "fields", "data.d", "data.q", "data.q.r", "deep", "input.review.o")


class Bodies:
    """Makes rules, each of a random body."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        weights = json.loads(WEIGHTS.read_text())["builtins"]
        # One more for each, and for those that are written inline and hardly ever used.
        names = {name: count + 3 for name, count in weights.items()} | dict.fromkeys(
            ("plus", "trim", "sum", "max", "abs", "json.filter", "indexof"), 3
        )
        self._builtins = [name for name in names if name not in EXCLUDED]
        self._weights = [names[name] for name in self._builtins]
        self._names: list[tuple[str, str]] = []
        self._count = 0

    def rule(self, name: str) -> str:
        """Rules of which ``name`` is asked for."""
        chance = self._chance
        self._names, self._count = [("v", "any")], 0
        literals = [self._literal() for _ in range(chance.randint(3, 8))]
        body = "; ".join(literals)
        seen = "".join(f", {known}" for known, _ in self._names if known != "v")
        shape = chance.randrange(7)
        if shape < 2:
            return f"{name} contains [i{seen}] if {{ {EACH}; {body} }}"
        if shape == 2:
            return f"{name} contains i if {{ {EACH}; not {name}f(v) }}\n{name}f(v) if {{ {body} }}"
        if shape == 3:
            return f"{name} contains [i, c] if {{ {EACH}; c := {{[1{seen}] | {body}}} }}"
        if shape == 4:
            return (
                f"{name} contains [i, f] if {{ some i, w in input.parameters.vs; "
                f"f := {name}f with input.review.v as w }}\n"
                f"{name}f contains [1{seen}] if {{ v := input.review.v; {body} }}"
            )
        if shape == 5:
            first, rest = literals[0], "; ".join(literals[1:])
            return (
                f"{name} contains [i, f] if {{ {EACH}; f := {name}f(v) }}\n"
                f"{name}f(v) := 1 if {{ {first}; v == 1 }} else := 2 if {{ {first}; {rest} }} else := 3"
            )
        return (
            f"{name} contains [i, 1{seen}] if {{ {EACH}; {body} }}\n"
            f"{name} contains [i, 2] if {{ {EACH}; {'; '.join(literals[:-1])}; v != 1 }}"
        )

    def _fresh(self, kind: str) -> str:
        self._count += 1
        name = f"x{self._count}"
        self._names.append((name, kind))
        return name

    def _operand(self, kind: str) -> str:
        """A term that probably has the kind."""
        chance = self._chance
        fitting = [name for name, known in self._names if known in (kind, "any") or kind == "any"]
        draw = chance.random()
        if fitting and draw < 0.65:
            return chance.choice(fitting[-4:])
        if draw < 0.8:
            return chance.choice(self._names)[0]
        return chance.choice(CONSTANTS[kind])

    def _literal(self) -> str:
        chance = self._chance
        way = chance.choices(_WAYS, _WAY_WEIGHTS)[0]
        return str(getattr(self, f"_{way}")())

    def _call(self) -> tuple[str, str]:
        """A call and the kind of its result."""
        name = self._chance.choices(self._builtins, self._weights)[0]
        builtin = BUILTINS[name]
        if name == "sprintf":
            template = self._chance.choice(('"%v"', '"<%s|%v>"', '"%d %v"', '"%s"', '"a%v-%v-%v"'))
            return (
                f"sprintf({template}, [{self._operand('any')}, {self._operand('any')}])",
                "string",
            )
        operands = [self._operand(_kind(type_text(one))) for one in builtin.operands]
        result = "any" if builtin.result is None else _kind(type_text(builtin.result))
        if name in INFIX:
            return f"({operands[0]} {INFIX[name]} {operands[1]})", result
        return f"{name}({', '.join(operands)})", result

    def _assigned(self) -> str:
        text, kind = self._call()
        return f"{self._fresh(kind)} := {text}"

    def _condition(self) -> str:
        return self._call()[0]

    def _negated(self) -> str:
        return f"not {self._call()[0]}"

    def _compared(self) -> str:
        text, kind = self._call()
        operator = self._chance.choice(("==", "!=", "<", ">=", "="))
        return f"{text} {operator} {self._operand(kind)}"

    def _selected(self) -> str:
        of = self._chance.choice([name for name, _ in self._names] + list(DOCUMENTS))
        step = self._chance.choice(
            (".a", '["a"]', "[0]", "[_]", f"[{self._operand('string')}]", ".b.c")
        )
        return f"{self._fresh('any')} := {of}{step}"

    def _tested(self) -> str:
        of = self._chance.choice([name for name, _ in self._names] + list(DOCUMENTS))
        return f"{'not ' if self._chance.random() < 0.4 else ''}{of}[{self._operand('any')}]"

    def _iterated(self) -> str:
        domain = self._operand(self._chance.choice(("array", "set", "object", "any")))
        if self._chance.random() < 0.3:
            key = self._fresh("any")
            return f"some {key}, {self._fresh('any')} in {domain}"
        return f"some {self._fresh('any')} in {domain}"

    def _every(self) -> str:
        domain = self._operand("array")
        self._names.append(("e", "any"))
        inner = self._condition()
        self._names.remove(("e", "any"))
        return f"every e in {domain} {{ {inner} }}"

    def _collected(self) -> str:
        domain = self._operand("array")
        self._names.append(("e", "any"))
        inner, value = self._condition(), self._operand("any")
        self._names.remove(("e", "any"))
        made, kind = self._chance.choice(
            (
                (f"[{value} | some e in {domain}; {inner}]", "array"),
                (f"{{{value} | some e in {domain}; {inner}}}", "set"),
                (f"{{e: 1 | some e in {domain}; {inner}}}", "object"),
            )
        )
        return f"{self._fresh(kind)} := {made}"

    def _constructed(self) -> str:
        one, two = self._operand("any"), self._operand("any")
        made, kind = self._chance.choice(
            (
                (f"[{one}, {two}]", "array"),
                (f"{{{one}, {two}}}", "set"),
                (f'{{"a": {one}, "b": {two}}}', "object"),
                (f'$"{{{one}}}-{{{two}}}"', "string"),
            )
        )
        return f"{self._fresh(kind)} := {made}"

    def _unified(self) -> str:
        value = self._operand(self._chance.choice(("array", "object", "any")))
        pattern = self._chance.choice(("[{0}, _]", "[1, {0}]", '{{"a": {0}}}', "[_, [{0}]]", "{0}"))
        return f"{pattern.format(self._fresh('any'))} = {value}"

    def _function(self) -> str:
        call = f"{self._chance.choice(FUNCTIONS)}({self._operand('any')})"
        if self._chance.random() < 0.5:
            return f"{'not ' if self._chance.random() < 0.5 else ''}{call}"
        return f"{self._fresh('any')} := {call}"

    def _logic(self) -> str:
        operator = self._chance.choice(("or", "and"))
        return f"{{{self._condition()}}} {operator} {{{self._condition()}}}"

    def _replaced(self) -> str:
        return f"{self._fresh('any')} := read with input.review.v as {self._operand('any')}"


_WAY_COUNTS: Final = {
    "assigned": 24,
    "condition": 20,
    "negated": 10,
    "compared": 12,
    "selected": 12,
    "tested": 5,
    "iterated": 8,
    "every": 2,
    "collected": 6,
    "constructed": 4,
    "unified": 3,
    "function": 8,
    "logic": 2,
    "replaced": 1,
}
"""The weights of literals' kinds: as in the policies, with the rare ones raised."""

_WAYS: Final = list(_WAY_COUNTS)
_WAY_WEIGHTS: Final = list(_WAY_COUNTS.values())


def _kind(text: str) -> str:
    """The kind that a type's text begins with; one of its first where it is a choice."""
    found = text.removeprefix("any<")
    for kind in KINDS:
        if found.startswith(kind):
            return kind
    return "any"
