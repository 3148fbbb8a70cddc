"""HCL in its first version and HOCON: what conftest's parsers make of files, and refuse."""

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

SHAPES = [
    ("hcl1", '{"resource": {"aws_instance": {"web": {"ami": "ami-1", "count": 2}}}}', {"resource": [{"aws_instance": [{"web": [{"ami": "ami-1", "count": 2}]}]}]}),
    ("hcl1", "ratio = 0.25\nbig = 1.5e3\nneg = -7\nhex = 0x1F\nmode = 0755\nsmall = -0.5\nminus = -0x10\nzero = 0\n", {"big": 1500, "hex": 31, "minus": -16, "mode": 493, "neg": -7, "ratio": 0.25, "small": -0.5, "zero": 0}),
    ("hcl1", 'policy = <<EOF\n{\n  "a": "${b}"\n}\nEOF\nb = 1\n', {"b": 1, "policy": '{\n  "a": "${b}"\n}\n'}),
    ("hcl1", "policy = <<-EOF\n    one\n      two\n    EOF\n", {"policy": "one\n  two\n"}),
    ("hcl1", "a = <<-EOF\n  one\n\n  two\n  EOF\n", {"a": "  one\n\n  two\n"}),
    ("hcl1", "a = <<EOF\n  x\n  EOF\nb = 2", {"a": "  x\n  ", "b": 2}),
    ("hcl1", "a = <<-EOF\nx\n    EOF\n", {"a": "x\n"}),
    ("hcl1", 'a = "x\\n\\t\\"y\\" \\\\ \\u00e9 ${var.b["c"]} {z}"\n', {"a": 'x\n\t"y" \\ é ${var.b["c"]} {z}'}),
    ("hcl1", 'a = "\\U0001F600 \\101\\x41 \\uD83D \\xe9"', {"a": "😀 AA � �"}),
    ("hcl1", 'a = "\\a\\b\\f\\v\\r"', {"a": "\x07\x08\x0c\x0b\r"}),
    ("hcl1", 'a = ["b", {c = 1}, [1, 2], ]\n', {"a": ["b", {"c": 1}, [1, 2]]}),
    ("hcl1", "a = [\n# one\n1,\n# two\n2\n]", {"a": [1, 2]}),
    ("hcl1", 'variable "region" {}\nvariable "zone" { default = "a" }\nvariable "region" { default = "eu" }\n', {"variable": [{"region": [{}]}, {"zone": [{"default": "a"}]}, {"region": [{"default": "eu"}]}]}),
    ("hcl1", "a { b = 1 }\na { c = 2 }\n", {"a": [{"b": 1}, {"c": 2}]}),
    ("hcl1", "a = 1\na = 2\n", {"a": 2}),
    ("hcl1", "# c\n// d\n/* e */\na = 1 # f\n", {"a": 1}),
    ("hcl1", 'a "b" "c" "d" { e = true }', {"a": [{"b": [{"c": [{"d": [{"e": True}]}]}]}]}),
    ("hcl1", "a = 1, b = false", {"a": 1, "b": False}),
    ("hocon", 'x {\n  quoted = "x\\n\\t\\"y\\""\n  raw = """x "y" z"""\n}\n', {"x": {"quoted": '"x\n\t"y""', "raw": '"x "y" z"'}}),
    ("hocon", "x { a = [1, 2], a += 3 }\n", {"x": {"a": "[1,2]"}}),
    ("hocon", "x { a = ${?nope} }\n", {"x": {"a": "<<unknown value>>"}}),
    ("hocon", "x { a = ${?nope} y }\n", {"x": {"a": "<<unknown value>>"}}),
    ("hocon", "x {\n a = 1\n a = ${?nope}\n}\n", {"x": {"a": 1}}),
    ("hocon", "x {\na.b.c = 1\na.b.d = 2\na = 3\n}\n", {"x": {"a": 3}}),
    ("hocon", "x {\na = 3\na.b = 1\n}\n", {"x": {"a": {"b": 1}}}),
    ("hocon", "x {\na = 3\na { b = 1 }\n}\n", {"x": {"a": {"b": 1}}}),
    ("hocon", "x {\na { b = 1 }\na = y\n}\n", {"x": {"a": "y"}}),
    ("hocon", "x {\n# c\n// d\na = 1 # e\nb = y // f\n}\n", {"x": {"a": 1, "b": "y"}}),
    ("hocon", "x {\na = [\n1\n2\n]\n}\n", {"x": {"a": "[1,2]"}}),
    ("hocon", "x { a = 10 MB, b = 5 minutes, c = 10s }\n", {"x": {"a": '"10 MB"', "b": '"5 minutes"', "c": "10s"}}),
    ("hocon", 'x { b = 1, c = w }\ny { a = [${x.b}, x y], d = v "y z" ${x.c} u }\n', {"x": {"b": 1, "c": "w"}, "y": {"a": '[1,"x y"]', "d": '"v y z w u"'}}),
    ("hocon", "x { a = [1] }\ny { b = ${x.a} [2] }\n", {"x": {"a": "[1]"}, "y": {"b": "[1,2]"}}),
    ("hocon", "x { a { b = 1 } }\ny { c = ${x.a} }\n", {"x": {"a": {"b": 1}}, "y": {"c": {"b": 1}}}),
    ("hocon", 'x : { a : 1, b : "u v" }\n', {"x": {"a": 1, "b": '"u v"'}}),
    ("hocon", "x { a = 1e3, b = 010, c = -5, d = 1.0, e = 0x1F }\n", {"x": {"a": 1000, "b": 10, "c": -5, "d": 1, "e": "0x1F"}}),
    ("hocon", "{ x { a = 1 } }", {"x": {"a": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "shape"), SHAPES)
def test_a_file_has_conftests_shape(name, text, shape):
    assert parsers.parse(name, text.encode()) == shape


@pytest.mark.parametrize(("name", "text", "line", "message"), [
    ("hcl1", "{ a = 1 } }", 1, "RBRACE"),
    ("hcl1", '{ "a": 1 ', 1, "RBRACE"),
    ("hcl1", "mode = 0855\n", 1, "0855"),
    ("hcl1", "a = 1\nb = nope\n", 2, "nope"),
    ("hcl1", "a = ?\n", 1, "unknown token"),
    ("hcl1", "a = 1\n= 1\n", 2, "key"),
    ("hcl1", "policy = <<EOF\nabc\n", 1, "heredoc not terminated"),
    ("hcl1", "policy = << EOF\nabc\nEOF\n", 1, "heredoc anchor"),
    ("hcl1", 'a = 1\nb = "x\n', 2, "literal not terminated"),
    ("hcl1", 'a = "${b\n', 2, "literal not terminated"),
    ("hcl1", 'a = "\\q"', 1, "illegal char escape"),
    ("hcl1", 'a = "\\u12"', 1, "illegal char escape"),
    ("hcl1", 'a = ["b"\n', 2, "comma or list end"),
    ("hocon", 'x {\n a = "\\q"\n}\n', 2, "escape code"),
    ("hocon", "x {\n a = ${b}\n}\n", 2, "Unresolved substitution:b"),
    ("hocon", "x { a = 1 }\ny {\n b = ${x.a} ${x.c}\n}\n", 3, "Unresolved substitution:x.c"),
])  # fmt: skip
def test_a_fault_is_reported_with_its_line(name, text, line, message):
    with pytest.raises(ParseError, match=message) as error:
        parsers.parse(name, text.encode())

    assert error.value.line == line


def test_a_substitution_that_no_path_gives_is_of_the_environment(monkeypatch):
    monkeypatch.setenv("REGION", "eu")

    assert parsers.parse("hocon", b"x { a = ${REGION} }\n") == {"x": {"a": "eu"}}
