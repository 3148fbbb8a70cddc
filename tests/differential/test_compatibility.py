"""Each line of the table of differences between the two levels, against both programs."""

import json

import pytest

from tests.differential.agreement import Answer, frozen_value, ours, theirs
from tests.differential.compatibility import question
from tests.differential.opa_versions import DIFFERENCES
from tests.differential.oracle import Oracle
from webhook.rego.builtins.registry import GATEKEEPER


def is_answer(found: Answer, expected: str) -> bool:
    """Whether this is the value, the absence of one, or the error that a line tells."""
    stage, content = found
    if stage != "results":
        return any(message.startswith(expected) for _, message in content)
    if expected == "undefined":
        return not content
    try:
        value = json.loads(expected)
    except ValueError:
        return False
    return list(content) == [frozen_value({"x": value})]


@pytest.mark.parametrize("line", DIFFERENCES, ids=lambda line: line.subject)
def test_the_programs_differ_as_the_table_says(line, opa: Oracle, older_opa: Oracle):
    """A line that no longer holds misleads."""
    newer, older = theirs(opa, question(line)), theirs(older_opa, question(line))
    assert is_answer(newer, line.new), newer
    assert is_answer(older, line.old), older


@pytest.mark.parametrize("line", DIFFERENCES, ids=lambda line: line.subject)
def test_the_level_changes_what_the_table_says_it_changes(line):
    """At the latest level everything is as in the latest OPA."""
    assert is_answer(ours(question(line)), line.new)
    expected = line.old if line.applied else line.new
    assert is_answer(ours(question(line, GATEKEEPER)), expected)


def test_what_is_not_applied_has_a_reason():
    """Applied differences need no reason."""
    assert all(bool(line.reason) != line.applied for line in DIFFERENCES)
