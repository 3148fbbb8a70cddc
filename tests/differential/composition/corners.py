"""Rules for what pairs of literals seldom or never come to: the generator's rarer ways.

Found by looking for lines that no question reaches, and for faults that none finds. ``@`` is the
name of the rule that is asked for, and begins the names of those beside it.
"""

from collections.abc import Iterator
from typing import Final

from tests.differential.composition.comparison import ComposedRule
from tests.differential.composition.edges import EDGES
from tests.differential.composition.forms import TERMS, TESTS, shown
from tests.differential.composition.places import EACH
from tests.differential.composition.values import CONSTANTS

DEEP: Final = 24
"""Iterations in one body that are more than a Python function may nest."""

_NESTED: Final = "c := [v]; " + "; ".join(
    f"some w{n} in {'v' if n % 9 == 0 else 'c'}; w{n} != 7" for n in range(DEEP)
)

RULES: Final = (
    # Values known only in one evaluation, or too large to be written into code.
    '@ := count({t | some _ in input.parameters.vs; t := io.jwt.decode("a.b.c")})',
    "@ := count([j | some _ in input.parameters.vs; some j in numbers.range(1, 40)])",
    '@ := count(concat("", [s | some _ in input.parameters.vs; s := sprintf("%0400d", [1])]))',
    "@ := [count(numbers.range(1, 12000)), numbers.range(1, 12000)[7]]",
    # Rules that begin nearly alike: constants of other types and values, variables of other places.
    *(
        f"@ contains [i, 1] if {{ EACH; {one}; v != 7 }}\n"
        f"@ contains [i, 2] if {{ EACH; {other}; v != 8 }}"
        for one, other in (
            ('v == ["a"]', 'v == ["b"]'),
            ('v == ["a"]', 'v == ["a", "b"]'),
            ('v == ["a", "b"]', 'v == ["a"]'),
            ('v == {"a": 1}', 'v == {"a": "b"}'),
            ('v == {"a": "b"}', 'v == {"a": null}'),
            ('v == {"a": 1}', 'v == {"b": 1}'),
            ("v == [1]", 'v == ["a"]'),
            ("v == [1]", "v == {1}"),
            ("v == 1", 'v == "1"'),
            ("v == {1}", 'v == {"a"}'),
            ('v == ["a", "b"]', 'v == ["a", "c"]'),
            ("w := [v, 1, v]; w[x] == w[x]; x != 0", "w := [v, 1, v]; w[x] == w[y]; x != y"),
            ("w := [v, 1, v]; w[x] == w[y]; x != y", "w := [v, 1, v]; w[x] == w[x]; x != 0"),
            ("w := [v, 1, v]; w[_] == w[_]", "w := [v, 1, v]; w[x] == w[x]"),
            ("input = v", "u = v; u != 9"),
            ("u = v; u != 9", "input = v"),
            ("not {v == 1; v != 2}", "not {is_string(v); v != 1}"),
            ('v == {"a": i}', 'v == {"a": i, "b": 1}'),
            ('v == {"a": i}', 'v == {"b": i}'),
            ('v == {"a": 1, "b": 2}', 'v == {"a": 1, "b": 3}'),
            ("v == [1, 2]", "v == [1, 3]"),
            ('v == [i, "a"]', 'v == [i, "b"]'),
            ('v == {"a": false, "b": "a"}', 'v == {"a": false, "b": "c"}'),
            ('w := {"a": i, "b": v}; w.b == 1', 'w := {"a": i, "b": i}; w.b == 1'),
            ("w := [e | e := v[_]]; is_array(w)", "w := {e | e := v[_]}; is_array(w)"),
            ("count(v, 2)", "count(v, 1)"),
            ("count(v, n); n > 1", "count(v)"),
        )
    ),
    # Sums are no integers, though their operands may be.
    "@ contains [i, z] if { EACH; x := v + 0.1; y := v + 0.2; z := x + y }",
    "@ contains [i, z] if { EACH; x := v * 0.1; y := v - 0.2; z := x - y; not z == 7 }",
    # Below `not`: what is computed before must be defined.
    "@ contains i if { EACH; not startswith(v.a, `x`) }",
    "@ contains i if { EACH; not small(v.a) }",
    "@ contains i if { EACH; not either([v.a, 1]) }",
    "@ contains i if { EACH; not either({v.a, 1}) }",
    '@ contains i if { EACH; not either({"k": v.a}) }',
    "@ contains i if { EACH; not either({v.a: 1}) }",
    "@ contains i if { EACH; not either({e | e := v[_]}) }",
    "@ contains i if { EACH; not v == {input.review.a, 1} }",
    "@ contains i if { EACH; not small(input.review.missing) }",
    '@ contains i if { EACH; not v == {"k": input.review.missing} }',
    "@ contains i if { EACH; not small(input) }",
    # Comprehensions of parameters, of the input, and whether members are told apart.
    "@ contains [i, m] if { EACH; m := {s | s := {e | some e in v}} }",
    "@ contains s if { EACH; s := {e | some e in v} }",
    "@ contains [sprintf(`%v`, [s])] if { EACH; s := {e | some e in v; is_string(e)} }",
    '@ contains [$"{s}|{v}"] if { EACH; s := {e | some e in v; is_string(e)} }',
    "@ contains [i, x] if { EACH; x := [e | some e in input.review.xs; e != `a`] }",
    "@ contains [i, x] if { EACH; x := {e | some e in input.parameters.vs; is_string(e)} }",
    "@ contains [i, x] if { EACH; x := [input.review.a | true] }",
    (
        "@ contains [w, m] if { k := input.parameters.vs[13]; some w in input.review.xs; "
        "m := [1 | w != k; k != 1] }"
    ),
    '@ contains t if { EACH; t := $"<{v}>" }',
    '@ contains [t, upper(t)] if { EACH; t := $"<{v}>"; t in ["<a>", "<1>"]; t != ["<a>"] }',
    "@ contains [x == true, y in [false], {x, y}] if { EACH; x := v < 1; y := v >= 1 }",
    "@ contains x if { EACH; x := v <= `b` }",
    # Results of functions: one constant, several that agree or do not, one of a table.
    "@ := [@f(1), @g(1)]\n@f(x) := 7\n@g(x) := 8 if x != 2",
    "@ := @f()\n@f() := input.review.o if { input.review.a == `a` }",
    "@ := [x | x := @f(input.review.one)]\n@f(x) := y if { y := x; y == 1; false }",
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(_) := 1\n@f(x) := 1 if x == 2",
    "@ := @f(input.review.one)\n@f(1) := 1\n@f(x) := 2 if x == 2\n@f(x) := 2 if x > 5",
    "@ := @f(input.review.one)\n@f(x) := 1 if x > 0\n@f(x) := 2 if x == 1",
    "@ := 1 if input.review.one == 1\n@ := 2 if input.review.a == `a`",
    "@ := 1 if input.review.one == 1\n@ := input.review.one if input.review.a == `a`",
    "@ := 1 if input.review.one == 2\n@ := 2 if input.review.a == `a`\n@ := 2 if true",
    "@ := 1 if input.review.one == 1\n@ := 1 if input.review.a == `b`\n@ := 2 if input.review.k == `b`",
    "default @ := 0\n@ := 1 if input.review.one == 2\n@ := 2 if input.review.a == `b`",
    "default @ := 0\n@ := 1 if input.review.one == 1\n@ := 2 if input.review.a == `b`",
    (
        "@ contains [i, f] if { EACH; f := @f(v) }\n"
        "@f(x) := 1 if { x == 1 } else := 2 if { x == 2 }\n@f(x) := 3 if x == `a`"
    ),
    (
        "@ contains [i, f] if { EACH; f := @f(v) }\n"
        "@f(x) := 1 if { x == 1 } else := 1 if { x == 2 }\n@f(x) := 1 if { x == `a` } else := 1 if { x }"
    ),
    # Conflicts end an evaluation, despite the following literals.
    "@ := [1 | x := @f(input.review.a); x == x; 1 == 2]\n@f(x) := 1 if x == `a`\n@f(x) := 2 if x != `b`",
    (
        "@ contains [i, f] if { EACH; f := @f(v) }\n@f(`a`) := 1 if input.review.missing\n"
        "@f(`b`) := 2 if input.review.a"
    ),
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(`a`) := input.review.a\n@f(`b`) := `x`",
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(`a`) := 1 if true\n@f(`a`) := 1",
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(`a`) := 1 if true else := 2\n@f(1) := 3 if true else := 4",
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(1) := 1\n@f(`b`) := 2",
    "@ contains [i, f] if { EACH; f := @f(v, `a`) }\n@f(`a`, _) := 1\n@f(`b`, _) := 2",
    (
        "@ contains [i, f] if { EACH; f := @f(v) }\ndefault @f(_) := 0\n"
        "@f(x) := 1 if { x == 1 } else := 2 if { x == 2 }\n@f(x) := 3 if { x == 3 } else := 2 if x == 2"
    ),
    (
        "default @ := 0\n@ := 1 if { input.review.missing } else := 2 if { input.review.a == `b` }\n"
        "@ := 3 if { input.review.missing } else := 4 if { input.review.a == `c` }"
    ),
    (
        "@ contains [i, f, g, h, k] if { EACH; f := @f(v); g := @f(i); h := @f(`a`); k := @f([v]) }\n"
        "@f(x) := [1 | x[_]] if { x != 1; x != `b`; some z in [1, 2]; z == 2 }"
    ),
    # Documents that are asked for whole, of one value or none.
    "@ := input.review.o",
    "@ := {x | x := @d}\n@d := input.review.o if { input.review.one == 1 }",
    "@ := [x | x := @s[_]]\n@s contains 1 if false\n@s contains 2 if { 1 == 2 }",
    '@ := [x | @s[{"a": x, "b": 1}]]\n@s contains {"a": y, "b": 2} if { some y in [1]; false }',
    # Sets of objects that are sought by some of their properties.
    *(
        f"@ contains [i, x] if {{ EACH; {pattern} }}\n"
        '@s contains {"a": y, "b": z} if { y := input.review.xs[z] }\n' + rule
        for pattern, rule in (
            ('@s[{"a": v, "c": x}]', "@s contains {`a`: 1, `c`: 2}"),
            ('@s[{"a": v, "b": x}]', "@s contains [1, 2]"),
            ('@s[{"a": v, input.review.k: x}]', "@s contains {`a`: 1, `b`: 2}"),
            ('@s[{"a": v, "b": x}]', "@s contains {`a`: 1, `b`: 2, `c`: 3}"),
            ('@s[{"a": v, "b": x}]', "@s contains {`a`: [y], `b`: y} if some y in [1, 2]"),
            ('@s[{"a": x, "b": y}]', "@s contains {`a`: 1, `b`: 2}"),
            ('x := 1; @s[{"a": v, "b": x}]', "@s contains {`a`: 1, `b`: 1}"),
            ('@s[{"a": v, "b": x}]', "@s contains {input.review.a: 1, `b`: 1}"),
        )
    ),
    # Variables bound by what stands beside them.
    "@ contains [i, x, y] if { EACH; [x, [y]] = [y, [v]] }",
    '@ contains [i, x, y] if { EACH; {"a": x, "b": y} = {"b": v, "a": 1} }',
    '@ contains [i, x, y] if { EACH; {"a": x, "b": y} = {"b": x, "a": v} }',
    '@ contains [i, x] if { EACH; {"a": x} = {"a": [y]}; y = v }',
    "@ contains [i, x] if { EACH; [x, 1] = [v, y]; y == 1 }",
    "@ contains [i, x] if { EACH; [1, `a`] = [_, x]; v != 1 }",
    "@ contains [i, x] if { EACH; [_, x] = [1, `a`]; v != 1 }",
    "@ contains [i, x] if { EACH; v[x] = v[y]; x != y }",
    "@ contains [i, x, y] if { EACH; concat(v[x], [v[y], `-`]) }",
    "@ contains [i, x] if { EACH; startswith(v[x], input.review.xs[y]); y != 9 }",
    "@ contains [i, x] if { EACH; object.get(v, v[x], 0) == input.review.xs[x] }",
    "@ contains [i, x] if { EACH; @f(v[x], x) }\n@f(a, b) if { a != b; a != 1; b != 1 }",
    # References into what is known, or is nothing.
    "@ contains [i, x] if { EACH; c := [1, [], {}]; x := c[v] }",
    "@ contains [i, x] if { EACH; c := {`a`: 1}; some x in c; v == c[_] }",
    "@ contains [i, x] if { EACH; x := {`a`: v, `a`: 1} }",
    "@ contains [i, x] if { EACH; x := {v: 1, `a`: 1} }",
    "@ := {input.review.a: 1, `a`: 2, `b`: 3, input.review.k: 4}",
    "@ := x if { k := `a`; x := {k: 1, `a`: 2} }",
    "@ := x if { some k in [`a`]; some l in [`a`, `b`]; l != `b`; x := {`a`: 2, k: 1, l: 3} }",
    "@ contains x if { x := input.parameters.vs[4][_] }",
    "@ contains [i, x] if { EACH; x := input.parameters.vs[4][v] }",
    "@ contains [i, x] if { EACH; x := input.parameters.vs[13][v] }",
    "@ contains x if { input.parameters.vs[21][x] }",
    "@ contains x if { input.parameters.vs[22][x] }",
    "@ contains [x, y] if { x := object.get(input, `parameters`, {}).vs[13]; y := x }",
    # Parts of what parameters decide that they do not decide.
    "@ := [x | x := @d]\n@d := {`a`: input.parameters.vs[4], `b`: input.review.one}",
    "@ := [x | x := @d]\n@d := [input.parameters.vs[4], input.review.one]",
    "@ := [x | x := @d]\n@d := [y | y := @f(input.parameters.vs[4])]\n@f(y) := [y, input.review.one]",
    "@ := [x | x := @d]\n@d := 1 if { every y in input.parameters.vs { y != input.review.a } } else := 2",
    (
        "@ := [x | x := @d]\n@d := 1 if { every y in input.parameters.vs { y != 7.5; input.review.one != 7 } } "
        "else := 2"
    ),
    "@ := [x | x := @d]\n@d := 1 if { every y in input.review.xs { y != input.parameters.vs[14] } } else := 2",
    (
        "@ := [x | x := @d]\n@d := 1 if { {input.parameters.vs[4] == 1} and {input.review.one == 1} } else := 2"
    ),
    (
        "@ := [x | x := @d]\n@d := 1 if { {input.parameters.vs[4] == 7} or {input.review.one == 1} } else := 2"
    ),
    "@ := [x | x := @d]\n@d := input.parameters.vs[input.review.one]",
    "@ := x if { x := @d with input.parameters.vs as [1, 2] with data.d.a as 2 }\n@d := [input.parameters.vs, data.d.a]",
    # Sums and counts beside numbers of every other kind, and truths.
    "@ contains [i, j] if { EACH; some j, w in input.parameters.vs; x := v + 1; y := w + 1; x < y }",
    "@ contains [i, j] if { EACH; some j, w in input.parameters.vs; x := count(v); x == w }",
    "@ contains [i, j] if { EACH; some j, w in input.parameters.vs; x := v - 1; x == w }",
    "@ contains [i, x] if { EACH; x := replace(v, input.review.a, `b`) }",
    "@ contains [i, x] if { EACH; x := replace(v, `a`, input.review.k) }",
    # Known strings are neither iterated nor destructured.
    *(
        f"@ contains [i, x] if {{ EACH; startswith(v, `a`); {rest} }}"
        for rest in (
            "x := v[_]",
            "v[x]",
            "[x] = v",
            "x := v.a",
            "x := v.a.b",
            "x := v[input.review.k]",
        )
    ),
    # A value equal to a known one has its kind, and no other.
    "@ contains [i, j, is_string(w), is_array(w)] if { EACH; some j, w in input.parameters.vs; l := [e | e := v[_]]; l = w }",
    "@ contains [i, j, is_string(w), is_array(w)] if { EACH; some j, w in input.parameters.vs; s := upper(v); s = w }",
    "@ contains [i, x, is_string(x)] if { EACH; x := [v] == [input.review.a] }",
    # A value made of known ones has the declared kind.
    *(
        f"@ contains [i, x, is_string(x), is_array(x), x < 2] if {{ EACH; {made} }}"
        for made in (
            "x := count(v) - 1",
            "x := count(v) + 1",
            'x := count({"a": v})',
            "s := upper(v); x := trim_prefix(s, `A`)",
            "s := upper(v); x := trim_suffix(s, `B`)",
            "s := {e | e := v[_]}; x := s - {1}",
            "x := regex.match(`^a`, v)",
            "l := [e | e := v[_]]; x := sprintf(`<%v>`, [l])",
            "l := {e | e := v[_]}; x := sprintf(`<%v>`, [l])",
        )
    ),
    # A path of an operand, and of an item, that many bodies read.
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(x) := y if { some y in [1]; x.a != 7; x.a != 8 }",
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(x) := y if { some y in [1]; x.a.b != 7; x.a.b != 8 }",
    "\n".join(f"@ contains [i, {n}] if {{ EACH; v.a != {n}; v.a != `x{n}` }}" for n in range(9)),
    # Tests of what is known to be a string give truths.
    *(
        f"@ contains [i, x, is_string(x), is_boolean(x)] if {{ EACH; s := upper(v); x := {test} }}"
        for test in ("startswith(s, `A`)", "endswith(s, `A`)", "contains(s, `A`)", "is_number(v)")
    ),
    # Terms that bind each other's variables, part by part.
    "@ contains [i, x, y] if { EACH; [[x, v], 1] = [y, x] }",
    "@ contains [i, x] if { EACH; k := input.review.k; {k: v} = {k: x} }",
    "@ contains [i, x, y] if { EACH; {1: x, `a`: v, null: 2} = {1: v, `a`: y, null: 2} }",
    # Both sides of an equation go through what they have: the first around the second.
    "@ := [[x, y] | v := [input.review.a, `b`, `a`]; v[x] = v[y]]",
    "@ := [[x, y] | v := [input.review.a, `b`, `a`]; [v[x], 1] = [v[y], 1]]",
    # By names that are variables; OPA leaves some unbound where two names turn out equal.
    "@ contains [i, x, y] if { EACH; v != `a`; {v: x, `a`: 2} = {v: 1, `a`: y} }",
    "@ contains [i, x, y] if { EACH; v != `a`; {`a`: x, v: 2} = {`a`: 1, v: y} }",
    "@ contains [i, x, y] if { EACH; v != `a`; w := input.review.a; {v: x, w: 2} = {v: 1, w: y} }",
    "@ contains [i, x, y] if { EACH; v != `a`; w := input.review.a; {v: x, w: y} = {w: v, v: 1} }",
    "@ contains [i, x, y] if { EACH; v != `a`; w := input.review.a; {v: 1, w: 1} = {v: x, w: y} }",
    "@ contains [i, x, y] if { EACH; v != `b`; [{k: x, `b`: 1}, k] = [{k: 2, `b`: y}, v] }",
    (
        "@ contains [i, x] if { EACH; not v in [`a`, 1, `ab`]; w := input.review.a; "
        "some u in input.review.xs; {v: i, w: 2} = {v: x, u: 2} }"
    ),
    "@ contains [i, j, b] if { EACH; some j, w in input.parameters.vs; s := upper(v); [s, x] = [w, 1]; b := is_array(w) }",
    "@ contains [i, j] if { EACH; some j, w in input.parameters.vs; s := upper(v); [s, x] = [w, 1]; is_string(w) }",
    "@ contains [i, j, b] if { EACH; some j, w in input.parameters.vs; upper(v, w); b := is_array(w) }",
    "@ contains [i, j] if { EACH; some j, w in input.parameters.vs; w = upper(v); is_string(w) }",
    # A text beyond those that are written in place is one, too.
    (
        "@ contains [i, is_array(x5), x5] if { EACH; "
        + "; ".join(f"x{n} := sprintf(`{n}%v%v`, [v, i])" for n in range(6))
        + " }"
    ),
    # Numbers that floats do not give exactly.
    "@ contains x if { some v in [1.1, 2.3]; x := v - input.review.one }",
    "@ contains [i, x] if { EACH; is_number(v); w := v + 0.1; x := w - input.review.one }",
    "@ := x if { v := 0.1 * input.review.one; w := v + 1; x := w - 1 }",
    # A function that maps some strings, one of them to what is not known.
    "@ contains [i, f] if { EACH; f := @f(v) }\n@f(`a`) := input.review.one\n@f(`ab`) := 2",
    # Names like the parameters' that are not the parameters.
    "@ := object.get(object.get(input, `review`, {}), `one`, 0)",
    "@ := [x | some v in [{`parameters`: 1}, {}]; x := object.get(v, `parameters`, 0)]",
    "@ := [x | some v in [{`parameters`: {`vs`: 1}}, {}]; x := v.parameters.vs]",
    "@ contains [x, y] if { x := object.get(input, [`parameters`, `vs`], []); y := x[13] }",
    "@ contains [i, x] if { EACH; x := object.get(input, v, 0) }",
    "@ contains i if { EACH; walk(v) }",
    # Members that there never are, or that any pattern meets, where nobody tells them apart.
    "@ contains i if { EACH; not @f(v) }\n@f(y) if { @s[x]; x != y }\n@s contains 1 if { 1 == 2 }",
    *(
        f"@ contains i if {{ EACH; not @f(v) }}\n@f(v) if {{ {body} }}\n"
        '@s contains {"a": y, "b": z} if { y := input.review.xs[z] }\n'
        '@n contains {"a": y, "b": z} if { y := input.review.missing[z] }\n'
        '@m contains {"a": y, "b": 1} if { some y in [1]; 1 == 2 }'
        for body in (
            '@s[{"a": x, "b": y}]; x == v; y != 7',
            'y := 1; @s[{"a": v, "b": y}]',
            '@m[{"a": v, "b": x}]; x != 7',
            '@n[{"a": v, "b": x}]; x != 7',
        )
    ),
    # The same where only an evaluation could tell who the members would be.
    *(
        f"@ contains i if {{ EACH; not @f(v) }}\n@f(v) if {{ {body} }}\n{rule}"
        for body, rule in (
            ("@s[x]; x != v", "@s contains y if { y := input.review.a; 1 == 2 }"),
            (
                '@s[{"a": x, "b": v}]; x != 7',
                '@s contains {"a": y, "b": 1} if { y := input.review.a; 1 == 2 }',
            ),
        )
    ),
    # Expensive expressions outside of loops.
    "@ := [x | "
    + "; ".join(f'x{n} := concat("-", [input.review.a, "{n}"])' for n in range(40))
    + "; x := x39]",
    "@ := x39 if { "
    + "; ".join(f'x{n} := concat("-", [input.review.a, "{n}"])' for n in range(40))
    + " }",
    "@ := [x | "
    + "; ".join(f'x{n} := sprintf("%s-%v", [input.review.a, {n}])' for n in range(40))
    + "; x := x39]",
    "@ contains [i, x] if { EACH; startswith(x, v[x]) }",
    "@ contains [i, x] if { EACH; object.get(v, [x], v[x]) == v[x] }",
    "@ contains [i, x] if { EACH; [x, v[x]] == [y, v[y]]; x != y }",
    "@ contains [i, x] if { EACH; sprintf(`%v`, [v], x) }",
    # A walk's steps; several that agree or are replaced; names that are computed.
    "@ contains [i, x] if { EACH; walk(v, x); is_string(x) }",
    "@ := [x | @s[x]]\n@s contains 1\n@s contains x if some x in [2, 1]\n@s contains `a` if true",
    (
        "@ contains [i, f, g] if { EACH; f := @f(v, 1); g := @f(v, 2) }\n"
        "@f(x, 1) := 1 if { y := x[_]; y != 7 }\n@f(x, 2) := 2 if { y := x[_]; y != 7 }"
    ),
    # Texts.
    *(
        f"@ contains [i, x] if {{ EACH; x := {made} }}"
        for made in (
            'sprintf("a", [])',
            'sprintf("%s%%", [v])',
            'sprintf("%v|%s", [v])',
            'sprintf("%q", [v])',
            'sprintf("%v", v)',
            'sprintf("%v", [v, v])',
            'sprintf("", [v])',
            'sprintf("%v-%v-%v-%v-%v-%v-%v-%v-%v-%v", [v, v, v, 1, v, v, `"`, v, v, v])',
        )
    ),
    # Negations of bodies, and bodies that always or never hold.
    "@ contains i if { EACH; not {not {v == 1}} }",
    "@ contains i if { EACH; not {1 == 1} or {v == 1} }",
    "@ contains i if { EACH; {1 == 1} or {v == 1} }",
    "@ contains i if { EACH; {1 == 2} or {v == 1} }",
    "@ contains i if { EACH; {v == 1} or {1 == 1} }",
    "@ contains i if { EACH; {v == 1} and {1 == 1} }",
    "@ contains i if { EACH; every x in v { 1 == 1; x != 1 } }",
    "@ contains i if { EACH; every x in v { 1 == 2; x } }",
    "@ contains i if { EACH; every x in [1, 2] { {x == 1} or {x == v} } }",
    "@ contains i if { EACH; not @f(v) }\n@f(x) if { every y in x { every z in y { z != 1 } } }",
    # More iterations than a function may nest.
    f"@ contains [i, w18] if {{ EACH; {_NESTED} }}",
    f"@ contains [i, f] if {{ EACH; f := @f(v) }}\n@f(v) := 7 if {{ {_NESTED}; w18 != `b` }}",
    f"@ contains [i, f] if {{ EACH; f := @f(v) }}\n@f(v) := w18 if {{ {_NESTED}; w18 == `a` }}",
    f"@ contains i if {{ EACH; not @f(v) }}\n@f(v) if {{ {_NESTED}; w18 == 1 }}",
    f"@ contains i if {{ EACH; not {{ {_NESTED}; w18 == 1 }} }}",
    f"@ contains i if {{ EACH; {_NESTED}; every q in [w18] {{ some z in [1, w18]; z == q }} }}",
    f"@ contains i if {{ EACH; every x in [v, `a`] {{ {_NESTED}; w18 == x }} }}",
    f"@ contains [i, c] if {{ EACH; c := {{w18 | {_NESTED}}} }}",
    f"@ contains i if {{ EACH; not 1 in {{w18 | {_NESTED}}} }}",
)

_OTHERS: Final = "some j, w in input.parameters.vs"

GROUPED: Final = (
    # Comprehensions that bind what is around them themselves: computed once for all of its values.
    *(
        f"@ contains [i, x] if {{ EACH; x := {made} }}"
        for made in (
            f"[j | {_OTHERS}; w == v]",
            f"{{j | {_OTHERS}; w == v}}",
            f"{{j: w | {_OTHERS}; w == v}}",
            f"count([j | {_OTHERS}; v == w; j != i])",
            f"[[w, j] | {_OTHERS}; [w, 1] == [v, 1]]",
            f"[j | {_OTHERS}; {{`a`: w}} == {{`a`: v}}]",
            f"[j | {_OTHERS}; object.get(w, `a`, 7) == object.get(v, `a`, 7)]",
            f"[j | {_OTHERS}; is_string(w); v = w; startswith(v, `a`)]",
            f"[j | {_OTHERS}; not w == 7; w == v]",
            f"[j | {_OTHERS}; not w == v]",
            f"[j | {_OTHERS}; w.a == v]",
            f"[j | {_OTHERS}; w == v.a]",
            f"[j | {_OTHERS}; v == w[_]]",
            f"[j | {_OTHERS}; w[v] == 1]",
            f"[v | {_OTHERS}; w == v; j == i]",
            f"[v | {_OTHERS}; j != 3]",
            f"[j | {_OTHERS}; w == v; every z in [j] {{ z != v }}]",
            f"[j | {_OTHERS}; w == v; every z in [j, w] {{ z != 7 }}]",
            f"[j | {_OTHERS}; w == v; not {{j == 3; w != 7}}]",
            f"[j | {_OTHERS}; w == v; z := [1 | j != v]; z == [1]]",
            f"[[j, [1 | v == w]] | {_OTHERS}; w == v]",
            f"[j | {_OTHERS}; w == v; print(w)]",
            "[p | walk(input.parameters.vs, [p, v])]",
            "[w | w := input.parameters.vs[i]]",
            "[j | some j in input.review.xs; j == v]",
            "{j | input.review.s[j]; j == v}",
            "[x | x := members[_]; x == v]",
            "[k | fields[k] == v]",
        )
    ),
    f"@ contains [i, x] if {{ EACH; x := @f(v) }}\n@f(v) := [j | {_OTHERS}; w == v]",
    f"@ contains [i, x] if {{ EACH; x := @f(v, i) }}\n@f(v, i) := {{j | {_OTHERS}; w == v; j != i}}",
    (
        f"@ contains [i, x] if {{ EACH; x := @f(v) with input.review.one as v }}\n"
        f"@f(v) := [j | {_OTHERS}; w == v; input.review.one == w]"
    ),
    f"@ contains [i, x] if {{ EACH; x := [j | {_OTHERS}; w == v; w == input.review.a with input.review.a as w] }}",
    f"@ contains [i, x] if {{ EACH; x := [j | {_OTHERS}; w == v] with input.parameters.vs as [v, 1, v] }}",
    f"@ contains i if {{ EACH; not [j | {_OTHERS}; w == v] == [] }}",
    f"@ contains i if {{ EACH; every k in [0, 1] {{ count([j | {_OTHERS}; w == v; j != k]) > 1 }} }}",
    "@ contains [i, x] if { EACH; w := 1; x := [j | some j, w in input.parameters.vs; w == v; w != 3] }",
    (
        "@ contains [i, x] if { EACH; x := [n | some n in @d[v]] }\n"
        f"@d := {{w: [j | some j, w2 in input.parameters.vs; w2 == w] | {_OTHERS}}}"
    ),
)

REPLACED: Final = (
    (
        "@ contains x if { x := @f(`a`) with @f as @g }\n@ contains [x] if { x := @f(`b`) }\n"
        "@f(x) := [x | x != 1; x != 2; some y in [1]; y == 1]\n@g(x) := [x, 1]"
    ),
    "@ contains [i, x] if { EACH; x := @d with @e as v }\n@d := [1 | @e == 1]\n@e := 2",
    "@ contains [i, x] if { EACH; x := @d[i] with @d as v }\n@d[k] := 1 if some k in [0, 3]",
    "@ contains [i, x] if { EACH; x := @q with @d as v }\n@q := @d.b.c\n@d[k].a := 1 if some k in [`b`]",
    "@ contains [i, x] if { EACH; x := [y | @s[y]] with @s as {v} }\n@s contains 1 if input.review.a",
    "@ contains [i, x] if { EACH; x := {y | @s[y]} with @s as {v} }\n@s contains 1 if input.review.a",
    (
        "@ contains [i, x] if { EACH; x := @q with @d as {`b`: {`c`: v}} }\n@q := @d.b.c\n"
        "@d[k].a := 1 if some k in [`b`]"
    ),
)


KIND: Final = (
    "[y | some y in [is_string(@k), is_array(@k), is_boolean(@k), is_null(@k), is_set(@k)]], "
    "@k < 2, @k > 1e20"
)
"""Shows the kind that a value is taken for, and tells a sum from other kinds."""

COLLECTIONS: Final = (
    *("v", "[v, v]", "{v, 1}", '{"a": v, "b": v}', "{v: 1, `z`: 2}", "{input.review.k: v}"),
    *("[e | e := v[_]]", "{e | e := v[_]}", "{e: 1 | e := v[_]}", "{k: e | e := v[k]}"),
    *("split(v, ``)", "object.keys(v)", "object.union(v, {`a`: 1})", "array.concat(v, [1])"),
    *("[1.5, 0.5]", "[null, null]", "[{1}, {2}]", "{`a`: 1.5, `b`: 2.5}"),
    *("input.review.xs", "input.review.s", "data.d", "members", "fields", "deep", "found"),
    *(items for items in CONSTANTS.values() if items != "[]"),
)
"""Collections with keys and items of one kind or of any kind."""


OF_PARAMETERS: Final = (
    "[e | e := input.parameters.vs[_]]",
    "{e | e := input.parameters.vs[_]}",
    "{e: 1 | e := input.parameters.vs[_]}",
)


def of_kinds() -> Iterator[str]:
    """Whether each form says rightly of which kind its result is; and loops of keys and items."""
    for made in OF_PARAMETERS:
        yield f"@ := [{KIND.replace('@k', 'x')}] if {{ x := {made} }}"
        yield f"@ := [x, y] if {{ x := {made}; y := {{e | some e in x}} - {{`a`}} }}"
    for form in (*TERMS, *TESTS):
        if form == '$"{@v.a}-{@v[_]}"':
            continue  # refused where another literal stands beside it
        yield f"@ contains [i, {KIND.replace('@k', 'x')}] if {{ EACH; x := {shown(form, 'v', '', 1)} }}"
    for items in COLLECTIONS:
        each = f"some x, e in {items}"
        yield f"@ contains [i, {KIND.replace('@k', 'x')}] if {{ EACH; {each}; e != 7 }}"
        yield f"@ contains [i, {KIND.replace('@k', 'e')}] if {{ EACH; {each}; x != 7 }}"
        yield f"@ contains [i, {KIND.replace('@k', 'e')}] if {{ EACH; some e in {items} }}"


def corners() -> Iterator[ComposedRule]:
    """All of them, under names of their own."""
    for place, rules in (
        ("corner", RULES),
        ("grouped corner", GROUPED),
        ("replaced corner", REPLACED),
        ("kind corner", of_kinds()),
        ("edge corner", EDGES),
    ):
        for number, text in enumerate(rules):
            name = f"{place[0]}{number}_"
            yield ComposedRule(name, place, text.replace("@", name).replace("EACH", EACH))
