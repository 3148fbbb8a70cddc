"""Rules where a kind, a proof or a parenthesis that is wrong shows in an answer.

The generator's own tests see such a fault in its code; these tell it from one that is only slower.
They are written as those of ``corners``.
"""

from typing import Final

from tests.differential.composition.places import EACH

_TWO: Final = "some j, w in input.parameters.vs"

_REVIEWED: Final = "some j, w in input.review.xs"

_FAILING: Final = "\n@f(1) := 1\n@f(1) := 2\n@f(x) := 1 if x != 1"
"""Ends an evaluation that asks for the 1 of ``input.review.xs``, which no group is for."""

_LONG: Final = "1" * 4500
"""A number of more digits than CPython writes at once."""

EDGES: Final = (
    # Comprehensions computed for all values come to what ends an evaluation; others do not.
    *(
        f"@ contains [i, x] if {{ some i, v in [`a`, `ab`]; x := {made} }}{_FAILING}"
        for made in (
            f"[j | {_REVIEWED}; w == v; @f(w)]",
            f"{{j | {_REVIEWED}; w == v; @f(w)}}",
            f"[j | {_REVIEWED}; [w, 1] == [v, 1]; @f(w)]",
            f"[j | {_REVIEWED}; w == v; every z in [j] {{ z != v }}; @f(w)]",
            f"[j | {_REVIEWED}; w != `b`; w == v; [1 | w == v] == [1]; @f(w)]",
            f"[[1 | v == w] | {_REVIEWED}; w == v; @f(w)]",
            "[j | some j in [`a`, `ab`, 1]; members[v] == j; @f(j)]",
            f"[j | {_REVIEWED}; members[v] == w; @f(w)]",
            f"[j | {_REVIEWED}; [members[v], w] == [w, v]; @f(w)]",
            "[w | walk(input.review.xs, [[w], v]); @f(w)]",
            f"[w | {_REVIEWED}; w == v; not v == j; @f(w)]",
        )
    ),
    (
        "@ contains [i, x] if { some i, v in [`a`, `ab`]; x := @g(v) }\n"
        f"@g(v) := [j | {_REVIEWED}; w == v; @f(w)]{_FAILING}"
    ),
    # Results that a call is given: what it finds is compared with a truth or with anything.
    *(
        f"@ contains [i, j] if {{ {EACH}; {_TWO}; {call} }}"
        for call in (
            *("neq(v, 7, true)", "neq(v, 7, false)", "neq(v, 7, w)", "equal(v, 1, w)"),
            *("lt(v, 2, w)", "lt(v, 2, false)", "is_string(v, false)", "is_string(v, w)"),
            *("is_number(v, false)", "is_number(v, w)", "is_null(v, w)", "is_null(v, false)"),
            *("startswith(v, `a`, false)", "startswith(v, `a`, w)", "minus(v, 1, w)"),
            *("x := count(v); plus(x, 1, w)", "x := count(v); minus(x, -1, w)"),
            *("x := count(v); y := -1; minus(y, x, w)", "x := count(v); lt(x, 2, w)"),
        )
    ),
    # Truths that are known beside the numbers that Python takes for them.
    "@ contains i if { EACH; s := upper(input.review.a); x := is_string(s); x == v }",
    "@ contains i if { EACH; x := ([y | some y in [1, 2]] == input.parameters.vs[13]); x == v }",
    # Of no kind are a part of an array, what an object has, and numbers that are no integers.
    "@ contains [i, z] if { EACH; [x, y] = v; z := x + 1 }",
    *(
        f"@ contains [i, is_array(x), is_string(x)] if {{ EACH; o := {{`a`: v, `b`: 1}}; {read} }}"
        for read in (
            "x := o.a",
            "k := lower(input.review.a); x := o[k]",
            "k := lower(input.review.a); x := object.get(o, k, v)",
        )
    ),
    "@ contains [i, is_string(v), is_array(v), is_number(v)] if { EACH; v = 7.0 }",
    "@ contains [i, is_string(v), is_array(v), is_object(v)] if { EACH; v = {1: `a`, `a`: 1} }",
    "@ contains [i, w] if { EACH; l := [e | e := v[_]]; some w in [[true], [1], [`a`]]; l == w }",
    "@ contains [i, w] if { EACH; some w in [[true], [1], [`a`]]; v == w }",
    "@ := [x | {`a`: x} = input.parameters.vs[4]]",
    "@ := [x | [x] = input.parameters.vs[10]]",
    # Other values than arrays, and arrays of another length, of which CPython warns in code.
    *(f"@ := [x | [x] = input.parameters.vs[{at}]]" for at in (0, 1, 4, 14, 21)),
    "@ contains x if { some [x, y] in input.parameters.vs[24]; y == `a` }",
    "@ := [@f(input.parameters.vs[4]) | true]\n@f([y]) := y",
    "@ := [x | {`a`: x} = input.parameters.vs[10]]",
    f"@ := x if {{ x := input.review.one < {_LONG} }}",
    # Operands of a kind that the built-in does not take.
    *(
        f"@ contains [i, x] if {{ EACH; {call} }}"
        for call in (
            *("is_array(v); x := trim_prefix(v, v)", "is_array(v); x := trim_suffix(v, v)"),
            *("x := v + v", "x := v - v", "is_string(v); x := v + v"),
            *("is_string(v); x := v - {1}", "is_string(v); x := {1} - v"),
            *("x := hex.encode(replace(v, ``, `-`))", "x := sprintf(v, [i])"),
            "x := object.get(input.parameters.vs[4], v, 7)",
            "x := startswith(input.parameters.vs[4], v)",
            "some w in input.parameters.vs; x := substring(v, w, 2)",
        )
    ),
    # More texts of many values than are joined in place.
    (
        "@ contains [i, x5] if { EACH; "
        + "; ".join(f"x{n} := sprintf(`{n}%v%v%v%v`, [v, i, v, i])" for n in range(6))
        + " }"
    ),
    # A default alone, which is replaced or is not.
    "@ := [y | y := @s with @s as 3]\ndefault @s := false",
    "@ := [y | y := @s with data.t.other as 3]\ndefault @s := false",
    # Names and members that are sought in the order of what seeks them.
    "@ := [y | xs := [input.review.k, `a`]; y := input.review.o[xs[_]]]",
    "@ := [y | xs := [`b`, input.review.a]; y := input.review.o[xs[_]]]",
    "@ := [y | xs := [input.review.k, `a`]; y := @s[xs[_]]]\n@s contains `a`\n@s contains `b` if true",
    "@ := [y | xs := [`u`, input.review.a, `r`]; y := data.q[xs[_]]]",
    "@ := [y | xs := [`s`, input.review.a, `s`]; y := data.q.r[xs[_]]]",
    # Heads that read what parameters do not decide.
    *(
        f"@ := [x | x := {term}]\n{rule}"
        for term, rule in (
            ("@s", "@s contains input.review.a"),
            ("@s", "@s contains [input.review.a]"),
            ("@s", "@s contains {y | y := input.review.a}"),
            ("@d", "@d := [input.review.a]"),
            ("@d", "@d := [y | y := input.review.a]"),
            ("@d", "@d := 1 if { false } else := [input.review.a]"),
            ("@f(1)", "@f(y) := [y, input.review.a]"),
            ("@f(1)", "@f(y) := 7 if { y == 2 } else := input.review.a"),
        )
    ),
    "@ := [x.review.a | some x in @s]\n@s contains input",
    # Fields of the input besides parameters, by a known or an unknown name.
    *(
        f"@ := [x | x := @q]\n@q := object.get(input, {at}, 7)"
        for at in ("`review`", "[`review`, `a`]", "input.parameters.vs[13]", "[]", "`a`")
    ),
    "@ := [x | x := @q]\n@q := object.get(input.review, `parameters`, 7)",
    "@ contains [i, x] if { EACH; x := object.get(input, v, 7) }",
)
