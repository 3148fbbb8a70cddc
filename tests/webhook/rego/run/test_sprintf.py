"""Go's Sprintf over Rego values."""

import itertools
import json
import random
import subprocess

import pytest

from tests.new_examples import NEW_EXAMPLES
from tests.patience import PATIENCE_SECONDS
from tests.webhook.rego.written import written
from webhook.rego.builtins.go_json import decode
from webhook.rego.errors import EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.numbers import number
from webhook.rego.run.sprintf import sprintf
from webhook.rego.run.values import RegoObject, RegoSet


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("plain %% sign", [], "plain % sign"),
        ("%v %s %d", ["a", "b", 3], "a b 3"),
        ("%v", [{"b": [1, "x", None], "a": True}], '{"a": true, "b": [1, "x", null]}'),
        ("%v", [RegoSet([3, "a", 1])], '{1, 3, "a"}'),
        ("%v", [RegoSet()], "set()"),
        ("%v", [RegoObject([(1, "a"), (None, 2)])], '{null: 2, 1: "a"}'),
        ("%v", ['quote "'], 'quote "'),
        ("%v", [['quote "']], '["quote \\""]'),
        ("%v %v %v", [1.5, 1.0, 1000000.5], "1.5 1 1.0000005e+06"),
        ("%v", [number("1.0")], "1"),
        ("%s", [5], "%!s(int64=5)"),
        ("%d", ["hi"], "%!d(string=hi)"),
        ("%d", [1.5], "%!d(float64=1.5)"),
        ("%v %v", [1], "1 %!v(MISSING)"),
        ("%v", [1, "x"], "1%!(EXTRA string=x)"),
        ("%", [], "%!(NOVERB)"),
        ("%[2]v %[1]v", ["a", "b"], "b a"),
        ("%[3]v", ["a"], "%!v(BADINDEX)"),
        ("%*d|%-5d|%05d|%+d", [4, 7, 7, 7, 7], "   7|7    |00007|+7"),
        ("%x %X %o %b %c %q %U", [255, 255, 8, 5, 65, 65, 65], "ff FF 10 101 A 'A' U+0041"),
        ("%6.2f|%e|%g", [3.14159, 1.5, 1.5], "  3.14|1.500000e+00|1.5"),
        ("%t %T", [True, True], "%!t(string=true) string"),
        ("%d", [10**30], "1" + "0" * 30),
        ("%q %x", ["é\n", "é"], '"é\\n" c3a9'),
    ],
)
def test_verbs_flags_and_complaints_are_gos(template, arguments, text):
    assert sprintf(template, arguments) == text


def test_a_text_has_an_end():
    """Widths add up to an error."""
    with pytest.raises(EvaluationError, match="eval_cancel_error: evaluation made a string"):
        sprintf("%1000000d" * 20, [1] * 20)


ARGUMENTS = [
    '"hi"',
    "1",
    "-5",
    "0",
    "3.5",
    "-0.25",
    "1e3",
    "1.0",
    "123456789012345678901234567890",
    "true",
    "null",
    '[1,"a",2.50]',
    '{"a":1,"b":[{"c":null}]}',
    '"é\\n\\"q`"',
    "1000000.5",
    "1e21",
    "1e-7",
    "65",
    "8364",
    '"日本"',
    "5e-324",
    "1.7976931348623157e308",
    '"a\\u0001b\\u007f\\u00ad"',
    "[]",
    "1e400",
]
VERBS = "vdsqxXfFeEgGbcoOUTtz%"
FLAGS = ("", "+", "-", "#", "0", " ", "+0", "# ", "#+")
WIDTHS = ("", "6", "12", "*")
PRECISIONS = ("", ".0", ".2", ".10")


@pytest.mark.slow
def test_every_verb_with_every_flag_prints_what_opa_prints(program, tmp_path):
    """Widths, precisions and arguments of all kinds: the same each time, but for new examples."""
    seed = random.randrange(1 << 32) if NEW_EXAMPLES else 20261125
    chance = random.Random(seed)
    cases = []
    for verb, flag, width, precision in itertools.product(VERBS, FLAGS, WIDTHS, PRECISIONS):
        arguments = chance.choices(ARGUMENTS, k=chance.choice((1, 1, 2)))
        if width == "*":
            arguments.insert(0, chance.choice(("5", "-8", "0", '"x"')))
        cases.append((f"%{flag}{width}{precision}{verb}", arguments))
    given = ",".join(f'{{"f": {json.dumps(f)}, "a": [{",".join(a)}]}}' for f, a in cases)
    (tmp_path / "input.json").write_text(f"[{given}]", encoding="utf-8")
    (tmp_path / "p.rego").write_text("package p\nr := [sprintf(x.f, x.a) | x := input[_]]")
    files = ["-d", tmp_path / "p.rego", "-i", tmp_path / "input.json"]
    finished = subprocess.run(
        [program("opa"), "eval", *files, "data.p.r", "-f", "raw"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    found = [sprintf(template, list(map(decode, arguments))) for template, arguments in cases]
    expected = json.loads(finished.stdout)
    differing = [
        (case, want, ours)
        for case, want, ours in zip(cases, expected, found, strict=True)
        if want != ours
    ]
    assert not differing, (seed, differing[:5])


@pytest.mark.parametrize("template", ["<%q>", "%d", "%s", '"%q" 100%% %q', "%v-%d-%q", "%d%d"])
def test_texts_joined_in_place_are_those_of_the_built_in(template):
    """Of each kind of value, known and given."""
    plain = ["a", "", 'b"', "\\", "\n", "é", "\u202e", "\udc80", 7, -(2**63), 2**64, 10**5000]
    values = [*plain, True, None, 1.5, number("1.0"), ["x", 1], {"k": "v"}]
    verbs = template.replace("%%", "").count("%")
    source = f"p := sprintf(`{template}`, [{', '.join(['input.v'] * verbs)}])"
    for value in values:
        rule, python = written(f"package a\n{source}", "data.a.p")
        assert "f'{" in python
        assert rule({"v": value}, {}, EvaluationContext()) == sprintf(template, [value] * verbs)
    for value in ["a", 'b"', "\\", "\n", 7, 10**20, True, None, 1.5]:
        known = source.replace("input.v", json.dumps(value))
        rule, _ = written(f"package a\n{known}\nq := p if input.v", "data.a.q")
        assert rule({"v": 1}, {}, EvaluationContext()) == sprintf(template, [value] * verbs)
