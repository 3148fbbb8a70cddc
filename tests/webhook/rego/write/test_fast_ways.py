"""Types known while code is written save checks at run time: the fast ways are taken.

Each of these would be as right without, and slower; nothing else would show that one is lost.
"""

import re

import pytest

from tests.webhook.rego.written import written

SOME = "p contains 1 if { some v in input.vs; "

WRITTEN = {
    "null is compared by identity": ("v == null }", "if v is None:"),
    "so is a truth": ("v == false }", "if v is False:"),
    "a small integer by value": ("v == 7 }", "if v == 7:"),
    "one that could be a truth with its type": ("v == 1 }", "v == 1 and type(v) is not bool:"),
    "a count is no truth": ("count(v) == 1 }", "is not U and v == 1:"),
    "two counts are compared at once": ("count(v) == count(v.w) }", "and v == v:"),
    "a count is had once": ("count(v) > 1; count(v) < 7 }", "is not U and v > 1 and v < 7:"),
    "what may be a string is compared as one first": (
        "v == input.a }",
        "v == p0 if type(v) is str else same(S, v, p0)",
    ),
    "a string is compared as one": (
        "is_string(v); v == input.a }",
        "type(v) is str and p0 is not U and v == p0:",
    ),
    "strings begin, end and contain": (
        'startswith(v, "a"); endswith(v, "b"); contains(v, "c") }',
        (
            "v.startswith('a') if type(v) is str else c0(S, L[0], v, 'a') is True) "
            "and v.endswith('b') and 'c' in v:"
        ),
    ),
    "what has a prefix is a string, whose length is had at once": (
        'startswith(v, "a"); n := count(v) }',
        "v = len(v)\n",
    ),
    "a part of a string is one": (
        "x := substring(v, 0, 2); endswith(x, `b`) }",
        "is not U and v.endswith('b')",
    ),
    "a part is taken at once": (
        "x := substring(v, 1, 2) }",
        "v[1:1 + 2] if type(v) is str and 1 >= 0 else c0(S, L[0], v, 1, 2)",
    ),
    "what is replaced in a string leaves one": (
        "x := replace(v, `a`, `b`); endswith(x, `b`) }",
        (
            "v.replace('a', 'b') if type(v) is str and len(v) < 4096 else c0(S, L[0], v, 'a', 'b')) "
            "is not U and v.endswith('b')"
        ),
    ),
    "what is trimmed at its beginning is a string": (
        "endswith(trim_prefix(v, `a`), `b`) }",
        (
            "v.removeprefix('a') if type(v) is str else c0(S, L[0], v, 'a')) "
            "is not U and v.endswith('b')"
        ),
    ),
    "what is trimmed at its end is one": (
        "endswith(trim_suffix(v, `a`), `b`) }",
        "v.removesuffix('a') if type(v) is str else c0(S, L[0], v, 'a')) is not U and v.endswith('b')",
    ),
    "a text made of values is a string": (
        "endswith(sprintf(`%v`, [v]), `b`) }",
        "if v.endswith('b'):",
    ),
    "so is one that may be made by the built-in": (
        "endswith(sprintf(`%s`, [v]), `b`) }",
        "if v.endswith('b'):",
    ),
    "a template is a string": ('endswith($"<{v}>", `b`) }', "if v.endswith('b'):"),
    "a built-in's result is of its declared kind": (
        "endswith(upper(v), `b`) }",
        "if v is not U and v.endswith('b')",
    ),
    "constants in a text are written out": (
        "x := sprintf(`%v-%s-%v`, [1, `a`, v]) }",
        "('1-a-' f'{v if type(v) is str else text(v)}')",
    ),
    "what is quoted and counted in a text is shown at once where it is plain": (
        "x := sprintf(`%q[%d]`, [v, v.i]) }",
        (
            "('\"' f'{v}' '\"[' f'{v}' ']') if type(v) is str and v.isprintable() and '\"' not in v "
            "and '\\\\' not in v and type(v) is int and v.bit_length() < 64 else c0("
        ),
    ),
    "a position that is named is read at once": (
        "x := v[0]; x != 7 }",
        "(v := v[0] if type(v) is list and len(v) > 0 else index(v, 0)) is not U",
    ),
    "a sum of integers is made at once": (
        "x := v + 1; y := x - v }",
        "v + 1 if type(v) is int else c0(S, L[0], v, 1)",
    ),
    "a sum with a count needs no test": ("x := count(v) + 1; x > 2 }", "v = v + 1\n"),
    "a name that is known is looked up": (
        "x := v[v.k]; x != 7 }",
        "v.get(v, U) if type(v) is dict and type(v) is str else index(v, v)",
    ),
    "a string in an object whose names are strings is looked up at once": (
        'k := v.k; is_string(k); o := {"a": v, "b": 1}; o[k] != 7 }',
        "if (v := v.get(v, U)) is not U and not v == 7:",
    ),
    "what may not be there is looked up with what stands for it": (
        "x := object.get(v, v.k, 1); x != 7 }",
        "v.get(v, v) if type(v) is dict and type(v) is str else c0(S, L[0], v, v, v)",
    ),
    "what is not there in an object of strings is not asked for": (
        'k := v.k; is_string(k); o := {"a": v, "b": 1}; x := object.get(o, k, "d"); x != 7 }',
        "v = v.get(v, 'd')\n",
    ),
    "a member that is known is sought": (
        "q[v] }\nq contains y if some y in input.ys",
        "index(d0(S), v)",
    ),
    "items of an array are gone through as they are": (
        "l := [e | e := v[_]]; some x in l; x != 7 }",
        "            for v in v:\n                if not v == 7:",
    ),
    "items of an array are counted": (
        "l := [e | e := v[_]]; some i, x in l; x != 7; i < 3 }",
        "for v, v in enumerate(v):\n                if not v == 7 and v < 3:",
    ),
    "keys that nobody reads are not made": ("v[j] == 7 }", "v if type(v) is list else values(v)"),
    "a member that may be a string is its own key": (
        "s := {e | e := v[_]}; s != 7 }",
        "if type(v) is str: v[v] = v\n",
    ),
    "a member that is a string is its own key": (
        "s := {e | e := v[_]; is_string(e)}; s != 7 }",
        "if type(v) is str:\n                    v[v] = v\n",
    ),
    "a member that is none has one made": (
        "s := {n | n := count(v[_])}; s != 7 }",
        "is not U:\n                    v.setdefault(member_key(S, v), v)",
    ),
    "a string is counted at once": ("count(upper(v)) > 7 }", "v = len(v)\n"),
    "an array is counted at once": ("count([e | e := v[_]]) > 7 }", "v = len(v)\n"),
    "a set is counted at once": ("count({e | e := v[_]}) > 7 }", "v = len(v)\n"),
    "an object is counted at once": ('o := {"a": v}; count(o) > 7 }', "v = len(v)\n"),
    "what two sets do not share is had at once": (
        "s := {e | e := v[_]} - {1}; s != 7 }",
        "v = v.difference(k0)\n",
    ),
}
"""The rest of a body, and what its code has; locals are all called v here."""


def shown(source: str) -> str:
    """The code of ``p``, with one name for all locals."""
    return re.sub(r"\bv\d+\b", "v", written(f"package a\n{source}", "data.a.p")[1])


@pytest.mark.parametrize(("rest", "part"), WRITTEN.values(), ids=WRITTEN.keys())
def test_the_fast_way_is_written(rest: str, part: str):
    assert part in shown(SOME + rest)


def test_a_large_pattern_is_left_to_the_built_in_which_pays_for_it():
    """A search for it may take long, where that for a small one costs less than the call."""
    small, large = (
        shown(f'{SOME}regex.match("{"(x+x+)+" * groups}", v) }}') for groups in (1, 800)
    )
    assert "found_in" in small
    assert "found_in" not in large
