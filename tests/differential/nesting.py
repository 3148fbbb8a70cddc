"""Policies that nest deeply."""

from tests.differential.agreement import Question

DEEP = {
    "a partial set": "p contains x39 if {\n%s\n}",
    "a function's constant": 'p := f(1)\nf(_) := 7 if {\n%s\n\tx39 == "b"\n}',
    "a rule's value": 'p := x39 if {\n%s\n\tx39 == "b"\n}',
    "values that disagree": "p := x39 if {\n%s\n}",
    "a negation": 'p if not q\nq if {\n%s\n\tx39 == "c"\n}',
    "a comprehension in a loop": "p contains y if {\n\tsome z in input.ys\n\ty := {[z, x39] |\n%s\n}\n}",
    "every, within": "p if {\n%s\n\tevery y in input.ys { some z in input.xs; z == y }\n}",
    "a negation, within": "p contains x39 if {\n%s\n\tnot x39 in {y | some y in input.ys; y != x38}\n}",
    "an exclusion in a loop": (
        "p contains z if {\n\tsome z in input.ys\n\tnot q(z)\n}\nq(z) if {\n%s\n\tx39 == z\n}"
    ),
}


def question(form: str) -> Question:
    """Forty iterations in one body, of which all but few have one turn."""
    lines = "\n".join(
        f'\tsome x{i} in input.{"xs" if i % 13 == 0 else "one"}\n\tupper(x{i}) != "X"'
        for i in range(40)
    )
    return Question(
        (f"package a\n{DEEP[form] % lines}",),
        "data.a.p = x",
        input={"xs": ["a", "b"], "ys": ["b", "c"], "one": ["b"]},
        has_input=True,
    )
