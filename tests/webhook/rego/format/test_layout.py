"""How files are laid out. What OPA says of each is asked in tests/differential/test_fmt.py."""

import pytest

from webhook.rego.errors import RegoErrors
from webhook.rego.format.module import Unformattable, formatted, lost


def v1(source: str) -> str:
    return formatted(source, "p.rego", "v1", "v1")


def body(source: str) -> str:
    """Returns the formatted text below the package."""
    return v1(f"package p\n{source}").partition("\n\n")[2]


CASES = {
    "spaces and braces": (
        "a   if{ x:=1 ;y==2}\n",
        "a if {\n\tx := 1\n\ty == 2\n}\n",
    ),
    "one line stays one line": ("a if input.x\nb if input.y\n", "a if input.x\nb if input.y\n"),
    "equals becomes an assignment": ("a = 1\n", "a := 1\n"),
    "a list on the lines it was on": (
        "a := [1,2,\n3]\n",
        "a := [\n\t1, 2,\n\t3,\n]\n",
    ),
    "an object": ('a := {"x":1,\n"y":2}\n', 'a := {\n\t"x": 1,\n\t"y": 2,\n}\n'),
    "equal elements of a set": ("a := {1, 1.0, 2}\n", "a := {1, 2}\n"),
    "operators": ("a := plus(1,2)*3\n", "a := (1 + 2) * 3\n"),
    "a minus": ("a := -input.x\n", "a := 0 - input.x\n"),
    "else where it stood": (
        "a := 1 if input.x\nelse := 2\n",
        "a := 1 if input.x\n\nelse := 2\n",
    ),
    "comments": (
        "# of a\na if { # beside\n# within\ninput.x\n# at the end\n}\n# last\n",
        "# of a\na if { # beside\n\t# within\n\tinput.x\n\t# at the end\n}\n\n# last\n",
    ),
    "modifiers": (
        "a if input.x with input.x as 1\nwith input.y as 2\n",
        "a if input.x with input.x as 1\n\twith input.y as 2\n",
    ),
    "raw strings and escapes": (
        'a := `x\\n`\nb := "\\u0041"\n',
        'a := `x\\n`\nb := "\\u0041"\n',
    ),
    "keywords in references": (
        'a := input["if"]\nb := input.if\nc := input["x"]\n',
        'a := input["if"]\nb := input.if\nc := input.x\n',
    ),
    "comprehensions": (
        "a := [x|some x in input]\nb := {x|\nsome x in input\nx>1}\n",
        "a := [x | some x in input]\nb := {x |\n\tsome x in input\n\tx > 1\n}\n",
    ),
    "templates": ('a := $"{ input.x } and { 1 }"\n', 'a := $"{input.x} and 1"\n'),
    "every": (
        "a if every x in input {x>1}\n",
        "a if every x in input { x > 1 }\n",
    ),
    "imports in order": (
        "import data.b # b\nimport data.a\n",
        "import data.a\nimport data.b # b\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_laid_out(name):
    source, expected = CASES[name]

    assert body(source) == expected
    assert body(expected) == expected


def test_a_file_of_v0_is_laid_out_for_both():
    source = "package p\ndeny[msg] { msg = input.x }\n"

    assert (
        formatted(source, "p.rego", "v0", "v0") == "package p\n\ndeny[msg] {\n\tmsg = input.x\n}\n"
    )
    both = "package p\n\nimport rego.v1\n\ndeny contains msg if msg = input.x\n"
    assert formatted(source, "p.rego", "v0", "v0v1") == both


def test_imports_that_v1_does_without_may_be_left_out():
    source = "package p\n\nimport rego.v1\n\na := 1\n"

    assert formatted(source, "p.rego", "v1", "v1", drop=True) == "package p\n\na := 1\n"
    assert v1(source) == source


def test_what_cannot_be_laid_out_is_refused():
    with pytest.raises(RegoErrors, match="package expected"):
        v1("a := 1")
    with pytest.raises(RegoErrors, match="deprecated built-in"):
        v1("package p\na := any([true])")
    with pytest.raises(Unformattable, match="plus: arity mismatch"):
        v1("package p\na := plus(1)")


LOSES = """package p

a if {
	x := f({"b": [
		# lost
		1, 2]}, 1) with input as {
		"y": 1} # beside
	x
}
"""


def test_what_a_layout_loses_is_named():
    assert lost(LOSES, "package p\n\na if {\n\tx := f(1)\n\tx\n}\n", "v1", "v1") == [
        "1 `with` modifier",
        "# lost",
        "# beside",
    ]
    assert lost(LOSES, LOSES, "v1", "v1") == []
