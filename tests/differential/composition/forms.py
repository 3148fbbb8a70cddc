"""The kinds of literal: every built-in that is written inline, and every other way to say something.

In a form's text ``@v`` is the value it is about, ``@x`` what it binds, ``@n`` a number that keeps
its own variables apart from those of other forms. ``HELPERS`` are rules that forms use.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of literal, in the ways in which it is written."""

    literals: tuple[str, ...]
    term: str = ""
    """A term that says the same, or has what the literal binds, for where a term stands."""

    @property
    def negatable(self) -> str:
        """Returns the text that can follow ``not``; empty if none can."""
        if self.term:
            return self.term
        text = self.literals[0]
        simple = (
            not text.startswith(("some ", "not ", "every ", "{", "print(")) and "; " not in text
        )
        return text if simple and "@x" not in text else ""


def shown(text: str, value: str, bound: str, number: int) -> str:
    """A literal or term about a value."""
    return text.replace("@v", value).replace("@x", bound).replace("@n", str(number))


TESTS: Final = (
    # Built-ins with a boolean result: as a condition, and with what they give bound.
    *('startswith(@v, "a")', 'endswith(@v, "b")', 'contains(@v, "b")', "contains(@v, @v)"),
    *('startswith("ab", @v)', "startswith(@v, input.review.a)", 'regex.match("^a", @v)'),
    *('strings.any_prefix_match(@v, ["a", "b"])', 'strings.any_suffix_match(@v, {"b", "1"})'),
    *('strings.any_prefix_match("ab", @v)', "strings.any_suffix_match(@v, input.review.s)"),
    *("is_string(@v)", "is_boolean(@v)", "is_null(@v)", "is_array(@v)", "is_set(@v)"),
    *("is_object(@v)", "is_number(@v)"),
    *("@v == 1", '@v == "a"', "@v == null", "@v == false", '@v == ["a"]', '@v == {"a": 1}'),
    *("@v != 0", '@v != "b"', "@v != true", "@v == input.review.one", "@v != input.review.o"),
    *("@v == @v", "@v < 1024", "@v <= 1", "@v > 1", "@v >= 1.5", "1 < @v", '@v < "b"'),
    *("@v >= input.review.a", "input.review.one <= @v", "@v > [1]"),
    *('@v in ["a", "b"]', '@v in {1, "a"}', "@v in input.review.xs", '"a" in @v', "1 in @v"),
    *("@v in [1, 1.5]", '0, "a" in @v', '"a", @v in {"a": 1}', '@v in {"a": "b", "c": 1}'),
    *("net.cidr_contains(@v, @v)", "json.is_valid(@v)", "object.subset(@v, @v)"),
)

TERMS: Final = (
    # Forms with a value: bound, compared, and alone as a condition.
    *("@v + 1", "@v - 1", "1 - @v", "@v - {1}", '@v - {"a"}', "@v * 2", "@v / 2", "@v % 2"),
    *("@v & {1}", '@v | {"a"}', "count(@v)", 'trim_prefix(@v, "a")', 'trim_suffix(@v, "b")'),
    *('object.get(@v, "a", 0)', 'object.get(@v, ["a", "b"], "d")', 'object.get({"a": 1}, @v, "d")'),
    *('replace(@v, "a", "b")', "substring(@v, 0, 1)", "substring(@v, 1, -1)"),
    *(
        'sprintf("%s", [@v])',
        'sprintf("%v", [@v])',
        'sprintf("%d", [@v])',
        'sprintf("%s-%v", [@v])',
    ),
    *('sprintf("<%v|%s>", [@v, @v])', "sprintf(@v, [1])", 'concat(",", @v)', 'split(@v, "")'),
    *(
        "upper(@v)",
        "to_number(@v)",
        "abs(@v)",
        "sum(@v)",
        "max(@v)",
        "sort(@v)",
        "json.marshal(@v)",
    ),
    *("type_name(@v)", "array.concat(@v, [1])", "object.keys(@v)", "format_int(@v, 10)"),
    *('trim(@v, "a")', 'indexof(@v, "b")', "union(@v)", "set()"),
    *("@v.a", '@v["a"]', "@v[0]", "@v.a.b", "@v[1]", "@v[input.review.a]", "@v[@v]"),
    *("@v[_]", "@v[_].a", "@v[_][_]", "@v.a[_]", "input.review.o[@v]", "input.review.xs[@v]"),
    *("[@v]", "[@v, 1]", "{@v}", '{"a": @v}', "{@v: 1}", '{"a", @v}', "@v"),
    *("[e@n | e@n := @v[_]]", "{e@n | some e@n in @v}", "{k@n: e@n | some k@n, e@n in @v}"),
    *("[k@n | @v[k@n] == 1]", "{e@n | e@n := input.review.xs[_]; e@n != @v}", "[1 | @v]"),
    *("count([e@n | some e@n in @v; is_string(e@n)])", "count({e@n | @v[e@n]})"),
    *('$"<{@v}>"', '$"{@v.a}-{@v[_]}"', "walk(@v)[_]"),
    # Functions and documents of the policy.
    *(
        "small(@v)",
        "either(@v)",
        "table(@v)",
        "chosen(@v)",
        "large(@v)",
        "pattern(@v)",
        "first(@v)",
    ),
    *("two(@v, 1)", "defaulted(@v)", "agreed(@v)", "looped(@v)"),
    *("members[@v]", "fields[@v]", "fields[@v].b", "deep[@v].a", "flat.a[@v]", "found[@v].a"),
    *("listed[@v]", "data.d[@v]", "data.d.b[@v]", "data.d[@v].c", "data.q[@v]", "data.q.r[@v]"),
    *("constant", "named.a", "count(members)", "fields.a", "complete", "data.q.r.s"),
)

LITERALS: Final = (
    # Forms without a term.
    "@x := @v",
    "@x = @v",
    "[@x, _] = @v",
    "[_, @x] = @v",
    "[1, @x] = [@x, @v]",
    '["a", @x] = @v',
    '{"a": @x} = @v',
    '{"a": {"b": @x}} = @v',
    '{"a": @x, "b": _} := @v',
    "[[@x], _] := @v",
    "[@v, @x] = input.review.xs",
    "some @x in @v",
    "some @x, _ in @v",
    "some @x, e@n in @v; e@n != 1",
    'some {"a": @x} in @v',
    "some k@n; @x := @v[k@n]",
    'some @x; @v[@x] == "a"',
    "some @x in input.review.xs; @x != @v",
    "some @x in [1, 2, @v]",
    'some @x in ["ab"]',
    "@v[@x]",
    '@v[@x] = "a"',
    "@v.a[@x]",
    "@v == @v[@x]",
    "walk(@v, [_, @x])",
    'walk(@v, [["a"], @x])',
    "count(@v, @x)",
    'startswith(@v, "a", @x)',
    "every e@n in @v { e@n != 1 }",
    "every k@n, e@n in @v { is_string(k@n); e@n }",
    "every e@n in [@v, 1] { is_number(e@n) }",
    'every e@n in ["a", "b"] { e@n != @v }',
    "not @v",
    "not @v.a",
    "not @v == 1",
    "not is_number(@v)",
    'not startswith(@v, "a")',
    "not @v[_] == 1",
    "not small(@v)",
    "not either(@v)",
    "not looped(@v)",
    "not large(@v)",
    "not members[@v]",
    "not 1 in @v",
    "not count([e@n | e@n := @v[_]]) == 2",
    "not {some e@n in @v; e@n == 1}",
    "{@v == 1} or {is_string(@v)}",
    '{is_object(@v)} or {some e@n in @v; e@n == "a"}',
    "{not is_null(@v)} and {@v != 1}",
    "print(@v)",
    "print(@v.a, @v[_])",
    'found[{"a": @v, "b": @x}]',
    'found[{"a": @x, "b": @v}]',
    "found[@x].a == @v",
    "members[@x]; @x != @v",
    "fields[@x] == @v",
    "deep[@x][_] == @v",
    "listed[[@v, @x]]",
    "data.q[@x][@v]",
    "data.q.r[@x] == @v",
    "@x := read with input.review.v as @v",
    '@x := read.a with input as {"review": {"v": @v}}',
    "read.a == 1 with input.review.v as @v",
    "not read.a with input.review.v as @v",
    "@x := stored with data.d.a as @v",
    "@x := data.d.a with data.d.a as @v",
    "@x := small(1) with small as @v",
    "@x := listing with data.t.members as {@v}",
    '@x := object.union({"a": @v}, {"b": 1})',
    "true",
    "1 == 1",
    'input.review.a == "a"',
    "input.review.missing",
    "not input.review.missing",
    "input.review.o.b.c != @v",
)

HELPERS: Final = """
small(y) if y != 1
either(y) if is_string(y)
either(y) if y == 1
either(y) if { is_number(y); y > 100 }
table("a") := 1
table("b") := "ab"
chosen(y) := 1 if is_number(y)
else := "a" if { y.a }
else := y
large(y) := z if { some i; y[i]; z := count(y); z > 1; i != 7 }
pattern([y, z]) := [z, y]
first(y) := y[0]
two(y, z) if { y == z }
two(y, z) if { y > z; is_number(y) }
default defaulted(_) := "d"
defaulted(y) := y.a
agreed(y) := "s" if is_string(y)
agreed(y) := "n" if is_number(y)
looped(y) if { y[_] == 1 }
looped(y) if { some z in y; z.a == 1; is_number(z.a) }
members contains y if some y in ["a", 1, "ab"]
members contains input.review.a
fields.a := 1
fields.b := {"b": input.review.k}
fields[k] := 3 if some k in ["c", input.review.one]
deep[k].a := input.review.o if some k in ["a", "b"]
flat.a[k] := 1 if { some k in input.review.xs; k != "a" }
found contains {"a": y, "b": z} if { y := input.review.xs[z] }
found contains {"a": 1, "b": "c"}
listed contains [y, z] if { some z, y in input.review.xs }
constant := {"a": 1, "b": [1, "a"]}
named := input.review.o
complete := count(input.review.xs)
read := input.review.v
stored := data.d.a
listing := [m | some m in members]
"""

OTHER: Final = """package q
import rego.v1
r.s := 1
r.a := "a" if input.review.one == 1
u[k] := 1 if some k in input.review.xs
"""
"""A package beside, for paths that are known only while they are followed."""


def forms() -> tuple[Form, ...]:
    """All of them, in an order that stays."""
    return (
        *(Form((test, f"@x := {test}"), test) for test in TESTS),
        *(Form((f"@x := {term}", term, f"{term} != 1"), term) for term in TERMS),
        *(Form((literal,)) for literal in LITERALS),
    )
