"""Differences between OPA 1.17.1, which is inside Gatekeeper v3.23, and OPA 1.22.

ConstraintTemplates are compiled at the level 1.17.1, which changes what the lines with
``applied`` say and nothing else. Each line carries a module and a query that show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import RegoVersion


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference: its subject, a module that shows it, and each program's answer.

    An answer is a JSON value of ``x``, ``undefined``, or the beginning of an
    error's message.
    """

    subject: str
    module: str
    old: str
    new: str
    applied: bool
    reason: str = ""
    version: RegoVersion = "v1"
    strict: bool = False


def _rule(body: str) -> str:
    return f"package a\np if {{ {body} }}"


_MENDED: Final = "a fault of the older version, mended since"
_SOUND: Final = "the older version refuses what is sound"

DIFFERENCES: Final = (
    Difference(
        "logic: the keywords `and` and `or`",
        "package a\nimport future.keywords.or\np := 1",
        old="unexpected keyword, must be one of [contains every if in not]",
        new="1",
        applied=True,
    ),
    Difference(
        "`import rego.v2`",
        "package a\nimport rego.v2\np := 1",
        old="invalid import `rego.v2`, must be `rego.v1`",
        new="1",
        applied=True,
    ),
    Difference(
        "values of a complete rule in conflict",
        "package a\np := 1\np := 2",
        old="complete rules must not produce multiple outputs",
        new="rule data.a.p produced conflicting values",
        applied=True,
    ),
    Difference(
        "values of a function in conflict",
        "package a\nf(_) := 1\nf(_) := 2\np := f(1)",
        old="functions must not produce multiple outputs for same inputs",
        new="function data.a.f produced conflicting values for the same inputs",
        applied=True,
    ),
    Difference(
        "rules that cannot both be",
        "package a\np.q := 1\np.q.r := 2",
        old="rule data.a.p.q conflicts with [data.a.p.q.r]",
        new="rule data.a.p.q conflicts with:\n  rule data.a.p.q.r at test-0.rego:3",
        applied=True,
    ),
    Difference(
        "unsafe variables in one of several rules on a line",
        "package a\np if x == 1 q := 1",
        old="var x is unsafe",
        new="var x is unsafe in rule p",
        applied=True,
    ),
    Difference(
        "references into a collection that is empty",
        _rule("obj := {}; obj.bar"),
        old="undefined",
        new="undefined ref: obj.bar",
        applied=True,
    ),
    Difference(
        "places in an empty collection",
        "package a\nexempt := []\np if { some i, e in exempt; i.b }",
        old="undefined ref: i.b",
        new="undefined",
        applied=True,
    ),
    Difference(
        "an empty collection within another, beside one that is not",
        _rule('{"a": [], "b": {}} == {"a": [1], "b": {"c": 1}}'),
        old="undefined",
        new="match error",
        applied=True,
    ),
    Difference(
        "what a scalar holds that is written as a collection",
        "package a\np := [x | some x in 1]",
        old="match error",
        new="[]",
        applied=True,
    ),
    Difference(
        "documents that a modifier replaces by another type",
        'package a\nb := true\np if { x := data.a.b with data.a.b as "s"; lower(x) == "s" }',
        old="lower: invalid argument(s)",
        new="true",
        applied=False,
        reason=_SOUND,
    ),
    Difference(
        "a variable of `some … in` within its own collection",
        _rule("some i, x in [[0]][i]; x == 0"),
        old="true",
        new="var i assigned before",
        applied=False,
        reason="a declaration that uses itself is refused at both levels",
    ),
    Difference(
        "semantic versions with leading zeros",
        'package a\np := semver.is_valid("01.0.0")',
        old="true",
        new="false",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "comparison of semantic versions with leading zeros",
        'package a\np := semver.compare("1.02.3", "1.2.3")',
        old="0",
        new='semver.compare: operand 1: string "1.02.3" is not a valid SemVer',
        applied=False,
        reason=_MENDED,
        strict=True,
    ),
    Difference(
        "networks of IPv6 with a prefix of more than 79 bits",
        'package a\np := net.cidr_contains("::/80", "::/80")',
        old="false",
        new="true",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "patterns with an empty alternative",
        'package a\np := glob.match("{**/,}x", null, "x")',
        old="false",
        new="true",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "`in` over a collection that cannot hold such an item",
        _rule('"a" in [1]'),
        old="undefined",
        new="match error",
        applied=True,
    ),
    Difference(
        "types of what `with` replaces",
        'package a\no := {"b": 1}\np if o.b == "c" with data.a.o as {"b": "c"}',
        old="match error",
        new="true",
        applied=False,
        reason=_SOUND,
    ),
    Difference(
        "keys and values of `in` over a set",
        _rule('"a", "a" in {"a", "b"}'),
        old="undefined",
        new="true",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "remainders of integers beyond 64 bits",
        "package a\np := 18446744073709551626 % 18446744073709551616",
        old="undefined",
        new="10",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "YAML with content after its end",
        'package a\np := yaml.is_valid("a: 1\\n...\\nb")',
        old="true",
        new="false",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "JSON numbers with exponents beyond what is supported",
        'package a\np := count(json.unmarshal("[1e40000]"))',
        old="1",
        new="undefined",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "what a verb that does not fit calls an integer",
        'package a\np := sprintf("port %s of %T", [8080, 9])',
        old='"port %!s(int=8080) of int"',
        new='"port %!s(int64=8080) of int64"',
        applied=True,
    ),
    Difference(
        "an integer that no verb takes",
        'package a\np := concat("", [sprintf("%v", [n, n]) | some n in [1]])',
        old='"1%!(EXTRA int=1)"',
        new='"1%!(EXTRA int64=1)"',
        applied=True,
    ),
    Difference(
        "products of numbers with fractions",
        "package a\np := product([0.1, 3])",
        old="0.3",
        new="0.30000000000000004",
        applied=True,
    ),
    Difference(
        "built-ins that came later",
        'package a\np := strings.split_n("a,b", ",", 1)',
        old="undefined function strings.split_n",
        new='["a"]',
        applied=True,
    ),
    Difference(
        "truths of YAML 1.1",
        "package a\np := yaml.unmarshal(\"{a: yes, b: [Off, n, yEs, 'on'], on: 1}\")",
        old='{"a": true, "b": [false, false, "yEs", "on"], "true": 1}',
        new='{"a": "yes", "b": ["Off", "n", "yEs", "on"], "on": 1}',
        applied=True,
    ),
    Difference(
        "whether a truth of YAML 1.1 is one",
        'package a\np := yaml.is_valid("!!bool yes")',
        old="true",
        new="false",
        applied=True,
    ),
    Difference(
        "products of integers beyond 64 bits",
        "package a\np := 123456789012345678901 * 98765432109876543210",
        old="12193263113702179522000000000000000000000",
        new="12193263113702179522473403443222511812210",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "semantic versions whose release begins with a zero",
        'package a\np := semver.is_valid("1.0.0-01")',
        old="true",
        new="false",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "a whole number written with a fraction as an index",
        "package a\np := [[10, 20][x] | some x in [1.0]]",
        old="[]",
        new="[20]",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "sums of integers beyond 64 bits",
        "package a\np := 123456789012345678901 + 1",
        old="123456789012345678904",
        new="123456789012345678902",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "lists within YAML that is written",
        'package a\np := yaml.marshal({"a": [1]})',
        old='"a:\\n- 1\\n"',
        new='"a:\\n  - 1\\n"',
        applied=False,
        reason="the same document, indented otherwise",
    ),
    Difference(
        "patterns and texts beyond ASCII",
        'package a\np := glob.match("\u00e9?", [], "\u00e9\u00e9")',
        old="false",
        new="true",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "a pattern whose beginning and end want the same separator",
        'package a\np := glob.match("a/**/b", ["/"], "a/b")',
        old="true",
        new="false",
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "what a reference goes into that is no variable",
        "package a\np := [1][0].foo",
        old="undefined ref: __local0__[0].foo",
        new="undefined ref: [1][0].foo",
        applied=False,
        reason="the name is one that nobody wrote",
    ),
    Difference(
        "the empty set as a body",
        "package a\np if set()",
        old="unexpected ) token",
        new="true",
        applied=False,
        reason=_SOUND,
    ),
    Difference(
        "a whole number written with a fraction as a place",
        'package a\np := [substring("abc", x, 1) | some x in [1.0]]',
        old="[]",
        new='["b"]',
        applied=False,
        reason=_MENDED,
    ),
    Difference(
        "sums of collections with integers beyond 64 bits",
        "package a\np := sum([18446744073709551616, 1])",
        old="18446744073709551616",
        new="18446744073709551617",
        applied=False,
        reason=_MENDED,
    ),
)
