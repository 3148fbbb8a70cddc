"""Policies that once were answered in another way than by OPA."""

from tests.differential.agreement import Question

FOUND = {
    "a number that only its text gives exactly, in a joined text": (
        'p contains sprintf("<%v|%v>", [x, 2.50]) if some x in [1.0, 1e3, -0.0, 1e-7, 5e20]'
    ),
    "the same in a text that is printed": 'p contains $"{x}" if some x in [1.0, 1e3, -0.0, 1e-7]',
    "a zero that is written with a sign": (
        'p contains [$"{x}", json.marshal(x), sprintf("%v %v", [x, [x]]), x == 0] if '
        'some x in [-0, to_number("-0"), json.unmarshal("-0"), min([0, -0]), abs(-0), -0 + 0]'
    ),
    "an empty text is found between bytes, not between characters": (
        'p contains hex.encode(replace(x, "", "-")) if some x in ["h\u00e9", "ab", "", input.a]'
    ),
    "a package named by the input": "p := x if x := data.q[input.a]",
    "a package's part named by the input": "p if { data.q[input.a].s; not data.q.r[input.a] }",
    "what a template string has shown may be anything": (
        'p if { v := null; t := $"<{v}>"; not startswith(v, "a"); t != "" }'
    ),
    "what it shows further down is what it was": 'p if { v := null; startswith(v, "a"); $"{v}" }',
    "a path that no rule's reference meets": (
        'p := {x | x := deep.b.c}\ndeep[k].a := 1 if some k in ["a", "b"]'
    ),
    "the same of what is replaced": (
        'p := {x | x := q with deep.b as {"c": 1}}\nq := deep.b.c\ndeep[k].a := 1 if some k in ["b"]'
    ),
    "what `every` goes through may be anything afterwards": (
        'p if { d({"a": 1}) }\n'
        "d(v) if { every e in v { e == 1 }; object.get(v, `b`, 1); trim(v, `a`) == `b` }"
    ),
    "a step that is computed before, in a body of its own": (
        "import future.keywords.not\nimport future.keywords.or\n"
        "p := {1 | not data.q[constant]; not {data.q.r[[1 | true]]}; {deep[constant]} or {true}}\n"
        "constant := {`a`: 1}\ndeep[k].a := 1 if some k in [`a`]"
    ),
    "objects that bind each other's variables, by names that are no strings": (
        'p contains [x, y, z] if { {1: x, "a": 2, null: [z]} = {1: 3, "a": y, null: [4]} }'
    ),
    "objects that bind each other's variables, by names that are variables": (
        'p contains [x, y, z] if { some x in ["a", "c", 1]; {x: 1, "b": z} = {"b": 2, x: y} }\n'
        "p contains [x, y] if { x := input.a; {x: y, 2: z} = {2: y, x: z}; y = 1 }"
    ),
    "an object's name that is a variable finds nothing in a constant": (
        'p contains x if { some k in ["a"]; {k: x} = {"a": 1} }'
    ),
    "the same within an array": 'p contains x if { [{k: x}, k] = [{"a": 1}, "a"] }',
    "both sides of an equation go through collections: the first around the second": (
        "p := [[a, b, c] | v := [`r`, `s`, `r`]; v[a] = v[b]; [v[c], 1] = [v[a], 1]]"
    ),
    "a literal that only prints has no `not` and no `with`": (
        "p contains v if { v := 1; not print(v) }\np contains 2 if print(input) with input as 3"
    ),
}
OTHER = "package q\nr.s := 1"


def question(rule: str) -> Question:
    """A policy beside another package."""
    input_value = {"a": "r", "v": 2, "vs": [2], "xs": [1, 2]}
    modules = OTHER, f"package t\n{rule}"
    return Question(modules, "data.t.p = x", input=input_value, has_input=True)
