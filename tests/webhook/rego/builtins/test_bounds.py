"""Built-ins on hostile operands end in an error, in little time and memory."""

import time

import pytest

from tests.webhook.rego.builtins.calling import call
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext

SMALL = 1_000_000
"""A budget of steps that any honest call below stays far under."""


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("numbers.range", (0, 10**18)),
        ("numbers.range", (0, 5_000_000)),
        ("numbers.range_step", (0, 10**18, 3)),
        ("bits.lsh", (1, 10**20)),
        ("mul", (1 << 900_000, 1 << 900_000)),
        ("product", ([1 << 60_000] * 10,)),
        ("net.cidr_expand", ("10.0.0.0/8",)),
        ("net.cidr_expand", ("::/0",)),
        ("replace", ("a" * 100_000, "a", "b" * 100_000)),
        ("strings.replace_n", ({"": "x" * 1000}, "a" * 100_000)),
        ("concat", ("x" * 1_000_000, [""] * 1000)),
        ("sprintf", ("%1000000d" * 20, [1] * 20)),
        ("regex.match", ("(x+x+)+" * 800 + "y", "x" * 100_000)),
        ("regex.split", ("(x+x+)+" * 800 + "y", "x" * 100_000)),
        ("regex.template_match", ("{" + "(x+x+)+" * 800 + "y}", "x" * 100_000, "{", "}")),
        ("regex.find_n", ("(a?)" * 900 + "b", "a" * 10_000, 1)),
        ("regex.find_all_string_submatch_n", ("(a?)" * 900 + "b", "a" * 10_000, -1)),
        ("regex.split", ("(" * 200 + "a" + ")?" * 200, "x" * 2_000)),
        ("regex.replace", ("a" * 100_000, "", "b" * 10_000)),
        ("strings.render_template", ("{{range 1000000000}}x{{end}}", {})),
        ("strings.render_template", ("{{range 9}}" * 60 + "{{end}}" * 60, {})),
        (
            "graph.reachable_paths",
            ({str(i): [str(j) for j in range(12)] for i in range(12)}, ["0"]),
        ),
        ("strings.render_template", ("{{range 1000000000}}{{end}}", {})),
        ("graph.reachable_paths", ({"a": ["a"] * 20_000}, ["a"])),
        ("strings.any_prefix_match", (["a" * 9] * 5000, ["b"] * 5000)),
        ("regex.globs_match", ("[\u0001-\U0010ffff]*" * 3, "a")),
        ("object.subset", ([1] * 5000 + [2], [1] * 2500 + [3])),
        ("yaml.marshal", ([0] * 1_000_000,)),
    ],
)
def test_work_beyond_the_budget_is_cancelled(name, operands):
    """A call that is long in itself is charged before or while it works."""
    context = EvaluationContext(steps=SMALL, seed=1)
    began = time.process_time()
    with pytest.raises(EvaluationError) as caught:
        call(name, *operands, context=context)
    assert caught.value.code == "eval_cancel_error"
    # Generous: none takes a tenth of it; a hang would take for ever.
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("json.unmarshal", ("[" * 200_000,)),
        ("json.unmarshal", ("[" * 200_000 + "]" * 200_000,)),
        ("yaml.unmarshal", ("[" * 200_000 + "]" * 200_000,)),
        ("yaml.unmarshal", ("- " * 5000,)),
        ("strings.render_template", ("{{if 1}}" * 5000 + "{{end}}" * 5000, {})),
        ("strings.render_template", ("{{" + "(" * 5000 + "1" + ")" * 5000 + "}}", {})),
        ("strings.render_template", ('{{define "x"}}{{template "x"}}{{end}}{{template "x"}}', {})),
        ("regex.match", ("a{1000}{1000}{1000}", "a")),
        ("regex.match", ("(" * 5000 + ")" * 5000, "a")),
        ("glob.match", ("{" * 5000 + "}" * 5000, None, "a")),
        ("units.parse", ("1e999999",)),
        ("to_number", ("1e999999",)),
    ],
)
def test_nesting_and_exponents_are_refused(name, operands):
    """Operands that would recurse or swell are an error of the built-in."""
    with pytest.raises(BuiltinError):
        call(name, *operands)


def test_aliases_that_double_themselves_are_refused():
    """Thirty lines of YAML that stand for a billion values."""
    lines = ["a0: &a0 [1,1]"] + [f"a{i}: &a{i} [*a{i - 1},*a{i - 1}]" for i in range(1, 31)]
    with pytest.raises(BuiltinError, match="excessive aliasing"):
        call("yaml.unmarshal", "\n".join(lines))


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(.*)*x", "^a*a*a*a*b$", "a*b"])
def test_patterns_that_ruin_backtracking_cost_nothing(pattern):
    """Patterns run in linear time, whatever the subject."""
    subject = "a" * 100_000 + "c"
    assert call("regex.match", pattern, subject) is False
    assert call("regex.match", pattern, subject[-256:]) is False


@pytest.mark.parametrize(
    "pattern", ["a?" * 40 + "a" * 40, "^" + "(a|a)" * 45 + "b", "(a)?" * 50 + "b"]
)
def test_patterns_of_many_choices_cost_nothing(pattern):
    """The pattern would take a backtracking search of a short subject 2^40 attempts."""
    assert call("regex.match", pattern, "a" * 39) is False


def test_a_deadline_ends_a_long_call():
    """The clock is looked at while a call works."""
    context = EvaluationContext(deadline=time.monotonic() - 1)
    with pytest.raises(EvaluationError, match="exceeded its deadline"):
        call("numbers.range", 0, 100_000, context=context)
