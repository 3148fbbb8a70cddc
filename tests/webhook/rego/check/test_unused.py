"""Errors of strict mode about unused names."""

import pytest

from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module

HINT = "(hint: use _ (wildcard variable) instead)"
RULES = {
    "import data.foo\nimport data.bar as b\nimport rego.v1\np if { b.x }": [
        "import data.foo unused"
    ],
    "import input.a as b\np := {1 | b[_]}": [],
    "import data.a\np if { x == 1 }": ["import data.a unused", "var x is unsafe"],
    "p := 1 if { y := 2 }": ["assigned var y unused"],
    "p := y if { y := 2 }": [],
    "p := [1 | [z, _] := input.x]": ["assigned var z unused"],
    "p if { every z in [1] { z == 1; w := 2 } }": ["assigned var w unused"],
    "p[v] := 1 if { v := 1 }\nq contains w if w := 1": [],
    "f(x, y) := 1 if { x }": [f"unused argument y. {HINT}"],
    "f([x, {`a`: y}], _) := x": [f"unused argument y. {HINT}"],
    "f(x) := 1 if { false } else := 2 if { x }\ng(x) := 1 if { true } else := x": [],
}


@pytest.mark.parametrize("rules", RULES)
def test_strict_mode_tells_imports_arguments_and_assignments_that_nothing_uses(rules: str):
    modules = [parse_module(f"package a\n{rules}\n", "a.rego", "v1")]
    found = []
    try:
        compile_modules(modules, options=CompileOptions(strict=True))
    except RegoErrors as errors:
        found = [error.message for error in errors.errors]
    assert found == RULES[rules]


def test_an_unused_key_of_every_is_reported_where_the_body_begins():
    module = parse_module(
        "package a\np if {\n\tevery k, v in input.xs {\n\t\tv == 1\n\t}\n}", "f.rego"
    )
    with pytest.raises(RegoErrors) as raised:
        compile_modules([module])

    (error,) = raised.value.errors
    assert (error.location.row, error.message) == (4, "declared var k unused")
