"""Places of two literals after one another, and the visible part of their results.

Each place writes the rules of one question; the rule that is asked for has the name it is given.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.composition.forms import Form, shown
from tests.differential.composition.values import CONSTANTS

EACH: Final = "some i, v in input.parameters.vs"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two literals, one after the other."""

    first: Form
    second: Form
    other: Form
    """A third one, for places of more than two."""
    turn: int
    """Chooses among the ways to write each."""

    def literals(self, value: str = "v") -> tuple[str, str, str]:
        """Returns both literals as written about a value, and the visible part of their bindings.

        In every second turn the second one is about what the first one has bound.
        """
        one = _way(self.first, self.turn)
        two = _way(self.second, self.turn // 2)
        about = "x" if "@x" in one and self.turn % 2 else value
        seen = [name for name, text in (("x", one), ("y", two)) if "@x" in text]
        first, second = shown(one, value, "x", 1), shown(two, about, "y", 2)
        return first, second, "".join(f", {name}" for name in seen)

    def third(self, value: str = "v") -> tuple[str, str]:
        """The third literal, and what is seen of it."""
        text = _way(self.other, self.turn // 3)
        return shown(text, value, "z", 3), ", z" if "@x" in text else ""


def _way(form: Form, turn: int) -> str:
    return form.literals[turn % len(form.literals)]


def body(name: str, pair: Pair) -> str:
    """In the body of a rule."""
    a, b, seen = pair.literals()
    return f"{name} contains [i{seen}] if {{ {EACH}; {a}; {b} }}"


def negated(name: str, pair: Pair) -> str:
    """Returns a rule with one of the literals below ``not``."""
    a, b, _ = pair.literals()
    if pair.turn % 2 and pair.first.negatable:
        below = shown(pair.first.negatable, "v", "", 1)
        about = shown(_way(pair.second, pair.turn // 2), "v", "y", 2)
        return f"{name} contains i if {{ {EACH}; not {below}; {about} }}"
    below = pair.second.negatable
    if below:
        return f"{name} contains i if {{ {EACH}; {a}; not {shown(below, 'v', '', 2)} }}"
    return f"{name} contains i if {{ {EACH}; not {{ {a}; {b} }} }}"


def negated_function(name: str, pair: Pair) -> str:
    """In the body of a function that is called below ``not``."""
    a, b, _ = pair.literals()
    return f"{name} contains i if {{ {EACH}; not {name}f(v) }}\n{name}f(v) if {{ {a}; {b} }}"


def alternatives(name: str, pair: Pair) -> str:
    """In bodies of a function of which any may hold."""
    a, b, _ = pair.literals()
    c, _ = pair.third()
    called = f"{'not ' if pair.turn % 2 else ''}{name}f(v)"
    return (
        f"{name} contains i if {{ {EACH}; {called} }}\n"
        f"{name}f(v) if {{ {a}; {b} }}\n{name}f(v) if {{ {c} }}"
    )


def comprehension(name: str, pair: Pair) -> str:
    """In a comprehension of each kind."""
    a, b, seen = pair.literals()
    made = (
        f"[[1{seen}] | {a}; {b}]",
        f"{{[1{seen}] | {a}; {b}}}",
        f"{{[1{seen}]: 1 | {a}; {b}}}",
    )[pair.turn % 3]
    return f"{name} contains [i, made] if {{ {EACH}; made := {made} }}"


def every(name: str, pair: Pair) -> str:
    """For each of some items."""
    a, b, _ = pair.literals()
    items = ("[v0, v0]", "{v0}", '{"a": v0}', "v0")[pair.turn % 4]
    return (
        f"{name} contains i if {{ some i, v0 in input.parameters.vs; "
        f"every v in {items} {{ {a}; {b} }} }}"
    )


def else_branch(name: str, pair: Pair) -> str:
    """In a branch of ``else``, and before one."""
    a, b, _ = pair.literals()
    c, _ = pair.third()
    return (
        f"{name} contains [i, f] if {{ {EACH}; f := {name}f(v) }}\n"
        f"{name}f(v) := 1 if {{ {c}; {a} }} else := 2 if {{ {a}; {b} }} else := 3"
    )


def value_of_function(name: str, pair: Pair) -> str:
    """In the body of a function whose value is what they bind."""
    a, b, seen = pair.literals()
    return (
        f"{name} contains [i, f] if {{ {EACH}; f := {name}f(v) }}\n"
        f"{name}f(v) := [1{seen}] if {{ {a}; {b} }}"
    )


def head(name: str, pair: Pair) -> str:
    """Before the head of a partial object, or of members that are objects."""
    a, b, seen = pair.literals()
    if pair.turn % 3 == 0:
        return f"{name}[i] := [1{seen}] if {{ {EACH}; {a}; {b} }}"
    if pair.turn % 3 == 1:
        return f"{name}[i].k[j] := v if {{ {EACH}; {a}; {b}; j := [1{seen}] }}"
    return (
        f'{name} contains [i, m] if {{ some i, _ in input.parameters.vs; {name}f[{{"i": i, "m": m}}] }}\n'
        f'{name}f contains {{"i": i, "m": [1{seen}]}} if {{ {EACH}; {a}; {b} }}'
    )


def argument(name: str, pair: Pair) -> str:
    """Returns a rule with the literals' terms as operands of a function, after one another."""
    terms = [
        shown(form.term, "v", "", number)
        for number, form in enumerate((pair.first, pair.second), 1)
        if form.term
    ]
    below = "" if pair.first.term else f"{pair.literals()[0]}; "
    given = ", ".join([*terms, "v", "v"][:2])
    return (
        f"{name} contains [i, f] if {{ {EACH}; {below}f := {name}f({given}) }}\n"
        f"{name}f(a, b) := [a, b]"
    )


def replaced(name: str, pair: Pair) -> str:
    """In a document that reads an input which is another one each time."""
    value = "v" if pair.turn % 3 == 0 else "input.review.v"
    a, b, seen = pair.literals(value)
    bound = "v := input.review.v; " if value == "v" else ""
    return (
        f"{name} contains [i, f] if {{ some i, w in input.parameters.vs; "
        f"f := {name}f with input.review.v as w }}\n"
        f"{name}f contains [1{seen}] if {{ {bound}{a}; {b} }}"
    )


def of_constants(name: str, pair: Pair) -> str:
    """About items of a collection that is written out."""
    a, b, seen = pair.literals()
    items = tuple(CONSTANTS.values())[pair.turn % len(CONSTANTS)]
    return f"{name} contains [i{seen}] if {{ some i, v in {items}; {a}; {b} }}"


def of_known(name: str, pair: Pair) -> str:
    """About a value that is written out."""
    known = ("1", '"ab"', "null", '["a", 1]', '{"a": "b"}', '{"a", 1}', "true", "1.5", "{}", "[]")
    a, b, seen = pair.literals()
    return f"{name} contains [1{seen}] if {{ v := {known[pair.turn % len(known)]}; {a}; {b} }}"


def alike(name: str, pair: Pair) -> str:
    """In rules that begin alike and go on differently."""
    a, b, seen = pair.literals()
    c, other = pair.third()
    first = seen[:3] if "x" in seen else ""
    return (
        f"{name} contains [i, 1{seen}] if {{ {EACH}; {a}; {b} }}\n"
        f"{name} contains [i, 2{first}{other}] if {{ {EACH}; {a}; {c} }}\n"
        f"{name} contains [i, 3{seen}] if {{ {EACH}; {a}; {b}; v != 1 }}"
    )


def nearly_alike(name: str, pair: Pair) -> str:
    """In rules that begin with nearly the same, about variables of other names."""
    a, b, seen = pair.literals()
    other = NEARLY.sub(lambda found: _OTHERS[found[0]], a)
    last = NEARLY.sub(lambda found: _OTHERS[found[0]], b)
    c, d, _ = pair.literals("u")
    return (
        f"{name} contains [i, 1{seen}] if {{ {EACH}; {a}; {b} }}\n"
        f"{name} contains [i, 2{seen}] if {{ {EACH}; {other}; {b} }}\n"
        f"{name} contains [i, 3{seen}] if {{ {EACH}; {a}; {last} }}\n"
        f"{name} contains [j, 4{seen}] if {{ some j, u in input.parameters.vs; {c}; {d} }}\n"
        f"{name} contains [i, 5] if {{ some i, _ in input.parameters.vs; v := i; {a}; {b} }}"
    )


_OTHERS: Final = {
    '"a"': '"b"',
    '"b"': '"a"',
    "==": "!=",
    "!=": "==",
    "<": ">",
    ">": "<",
    ".a": ".b",
    "is_string": "is_number",
    "is_number": "is_string",
    "some": "some",
    "small": "large",
    "startswith": "endswith",
    "endswith": "startswith",
    "[_]": "[0]",
    "review.xs": "review.s",
}
NEARLY: Final = re.compile("|".join(map(re.escape, sorted(_OTHERS, key=len, reverse=True))))
"""Matches text that has a nearly equal replacement."""


def logic(name: str, pair: Pair) -> str:
    """Returns a rule with literals as operands of ``and`` and ``or``, and in braces of ``not``."""
    a, b, _ = pair.literals()
    c, _ = pair.third()
    literal = (
        f"{{ {a}; {b} }} or {{ {c} }}",
        f"{{ {c} }} and {{ {a}; {b} }}",
        f"not {{ {a}; {b} }}; {c}",
        f"{{ {c} }} or {{ {a}; {b} }}",
    )[pair.turn % 4]
    return f"{name} contains i if {{ {EACH}; {literal} }}"


def complete(name: str, pair: Pair) -> str:
    """In rules that must agree on one value."""
    a, b, _ = pair.literals()
    c, _ = pair.third()
    return (
        f"{name} contains [i, f] if {{ some i, w in input.parameters.vs; "
        f"f := {name}f with input.review.v as w }}\n"
        f"{name}f := 1 if {{ v := input.review.v; {a}; {b} }}\n"
        f"{name}f := 1 if {{ v := input.review.v; {c} }}\n"
        f"default {name}f := 0"
    )


def mocked(name: str, pair: Pair) -> str:
    """Returns a rule in which a function that the literals call is replaced."""
    a, b, seen = pair.literals()
    called = sorted({found for found in CALLED.findall(f"{a}; {b}") if found not in UNREPLACED})
    target = called[pair.turn % len(called)] if called else "count"
    value = ("true", "false", "1", '"ab"', "null", "input.review.s", "[]")[pair.turn % 7]
    return (
        f"{name} contains [1, f] if {{ f := {name}f with {target} as {value} }}\n"
        f"{name} contains [2, f] if {{ f := {name}f }}\n"
        f"{name}f contains [i{seen}] if {{ {EACH}; {a}; {b} }}"
    )


CALLED: Final = re.compile(r"\b([a-z_]+(?:\.[a-z_]+)*)\(")
UNREPLACED: Final = {"walk", "print", "set"}
"""Names that look like calls but must not be replaced."""

PLACES: Final[dict[str, Callable[[str, Pair], str]]] = {
    "body": body,
    "not": negated,
    "not through a function": negated_function,
    "bodies of a function": alternatives,
    "comprehension": comprehension,
    "every": every,
    "else": else_branch,
    "value of a function": value_of_function,
    "head": head,
    "argument": argument,
    "with": replaced,
    "constants": of_constants,
    "known": of_known,
    "alike": alike,
    "nearly alike": nearly_alike,
    "logic": logic,
    "complete": complete,
    "mocked": mocked,
}
