"""Variables in a template string of a `some … in` pattern are not bound by it."""

import pytest

from webhook.rego.engine import compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module

# As `opa check` has it.
PATTERNS = {
    'some $"u{id}" in users': "var id is unsafe",
    'some $"u{id}" in users\nid == 1': "var id is unsafe",
    'some $"u{id}", x in users': "var id is unsafe",
    'some {$"u{id}": x} in users': "var id is unsafe",
    'some $"u{count(id)}" in users': "var id is undeclared",
    'some x, $"u{x}" in users': "",
    'some [x, $"u{x}"] in [[1, "u1"]]': "",
    'other := 3\nsome $"u{other}" in users': "",
    'some id in [1]\nsome $"u{id}" in users': "",
    'some $"u{input.x}" in users': "",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_template_string_in_a_pattern_binds_nothing(pattern: str):
    source = f'package p\nusers := {{"u1"}}\nid := 1\nt if {{\n{pattern}\n}}\n'
    message = ""
    try:
        compile_modules([parse_module(source, "a.rego", "v1")])
    except RegoErrors as errors:
        message = errors.errors[0].message
    assert message == PATTERNS[pattern]
