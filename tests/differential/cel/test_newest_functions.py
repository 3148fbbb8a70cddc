"""Functions of Kubernetes 1.37 exist in its own environment and not in that of 1.36."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.oracle import Oracle
from tests.programs import Programs
from tests.webhook.cel.evaluation import evaluate
from webhook.cel.check.environment import accepted_functions, functions
from webhook.cel.errors import CompileError, EvaluationError

OBJECT = {
    "words": ["a", "b", None],
    "word": "a",
    "map": {"a": 1},
    "mixed": [1, 2.0, "x", True, None, {"a": [1]}, [1, 2]],
    "nothing": None,
}
TARGETS = (
    "[1, 2, 3]", "[]", "[1, 2].map(x, x * 2)", "'a'", "1", "1.0", "true", "null", "{'a': 1}", "b'a'",
    "duration('1s')", "['a', 'b']", "[[1]]", "object.words", "object.word", "object.map",
    "object.mixed", "object.nothing", "object.missing", "dyn([1u, 2])", "optional.of(1)",
)  # fmt: skip
ITEMS = (
    "1", "2.0", "2u", "'a'", "null", "true", "[1]", "[1, 2]", "{'a': 1}", "{'a': [1]}", "b'a'",
    "duration('1s')", "object.word", "object.missing", "object.words", "1.5", "0.0/0.0", "1/0",
    "optional.of(1)",
)  # fmt: skip


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[Oracle]:
    """Expressions in the environment of a version of Kubernetes."""
    with Oracle(program("tests/oracles/typecheck")) as running:
        yield running


def answer_here(expression: str) -> Any:
    """The value, or the text of an error."""
    try:
        return evaluate(expression, {"object": OBJECT})
    except EvaluationError as error:
        return error.text
    except CompileError:
        return CompileError


def test_includes_has_the_values_and_errors_of_kubernetes(oracle: Oracle) -> None:
    different = []
    for expression in (f"{target}.includes({item})" for target in TARGETS for item in ITEMS):
        theirs = oracle.ask(expression=expression, version="1.37", object=OBJECT)
        expected = theirs["error"] or theirs["value"]
        found = answer_here(expression)
        if found is CompileError and theirs["error"].startswith("ERROR: <input>:"):
            continue
        if found != expected:
            different.append((expression, expected, found))
    assert different == []


def test_a_new_expression_of_the_version_before_does_not_have_it(oracle: Oracle) -> None:
    expression = "[1].includes(1)"
    assert oracle.ask(expression=expression, version="1.37")["value"] is True
    refused = oracle.ask(expression=expression, version="1.36")["error"]
    assert "undeclared reference to 'includes'" in refused
    assert functions().keys() - accepted_functions().keys() == {"includes"}
