"""The check of generated code tells what is wrong with it: a check that cannot fail proves nothing."""

import pytest

from tests.verified_code import UnverifiedError, verify
from webhook.rego.check.tree import Tree
from webhook.rego.write import generate
from webhook.rego.write.expression import name
from webhook.rego.write.statement import Line, Return, WrittenFunction
from webhook.rego.write.unit import Unit

GIVEN = {*generate.NAMESPACE, *generate.NAMESPACE["__builtins__"], "L"}


def function(*lines: str) -> str:
    return "def q(S):\n" + "\n".join(f"    {line}" for line in lines)


SOUND = {
    "a walrus that the rest of an and needs": (
        "if (v1 := S[0]) is not U and v1 == 1:",
        "    return v1",
        "return U",
    ),
    "a walrus in what the condition decides": (
        "if (v1 if (v1 := S[0]) is not U else None) and v1:",
        "    return v1",
    ),
    "a walrus below not": ("if not ((v1 := S[0]) is U):", "    return v1"),
    "both branches of try": (
        "try: v1 = S[0].get('a', U)",
        "except AttributeError: v1 = path(S[0], 'a')",
        "return v1",
    ),
    "what leaves the function needs no value": (
        "if S[0]:",
        "    v1 = 1",
        "else:",
        "    return U",
        "return v1",
    ),
    "an inner function that shares": (
        "v1 = False",
        "def v2():",
        "    nonlocal v1",
        "    v1 = True",
        "v2()",
        "return v1",
    ),
}

UNSOUND = {
    "a walrus on one operand of or": (
        "may be read before it is assigned",
        ("if S[1] and (v1 := S[0]) is not U and v1 == 1 or v1 == 2:", "    return U"),
    ),
    "a walrus of an or": (
        "may be read before it is assigned",
        ("if S[1] or (v1 := S[0]) is not U:", "    return v1"),
    ),
    "a walrus on one branch of a condition": (
        "may be read before it is assigned",
        ("if (v1 := S[0]) if S[1] else S[2]:", "    return v1"),
    ),
    "what a loop assigns, after it": (
        "may be read before it is assigned",
        ("for v1 in S[0]:", "    v2 = v1", "return v2"),
    ),
    "what one branch assigns": (
        "may be read before it is assigned",
        ("if S[0]:", "    v1 = 1", "return v1"),
    ),
    "what try assigns, in except": (
        "may be read before it is assigned",
        ("try: v1 = S[0]", "except AttributeError: v2 = v1"),
    ),
    "what an inner function does not share": (
        "may be read before it is assigned",
        ("v1 = 1", "def v2():", "    v1 = v1", "v2()"),
    ),
    "a name that nobody gives": ("an unknown name", ("return v1",)),
    "a name of Python's": ("an unknown name", ("return open",)),
    "a name that hides another": ("hides", ("values = 1",)),
    "an attribute": ("an attribute of another kind", ("return S.__class__",)),
    "an import": ("a statement of another kind", ("import os",)),
    "a lambda": ("an expression of another kind", ("return lambda: 1",)),
    "a chain": ("a chain of comparisons", ("return 1 < S[0] < 2",)),
    "bytes": ("a constant of another kind", ("return b''",)),
    "a loop with else": ("a loop with else", ("for v1 in S[0]:", "    pass", "else: pass")),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_code_passes(name):
    verify(function(*SOUND[name]), GIVEN)


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_code_is_reported(name):
    fault, lines = UNSOUND[name]
    with pytest.raises(UnverifiedError, match=fault):
        verify(function(*lines), GIVEN)


def test_whatever_is_generated_here_is_verified():
    unit = Unit(Tree(), {}, frozenset(), frozenset(), "1.22")
    lines: list[Line] = [Return(1, value=name("open"))]
    unit.functions.append(WrittenFunction("q", ("S",), lines, settled=True))
    with pytest.raises(UnverifiedError, match="open"):
        generate.generate(unit)
