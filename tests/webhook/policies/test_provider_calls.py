"""Providers that policies name, and calls that never have an answer."""

import pytest

from tests.policies import template
from webhook.constraint.template import read_template
from webhook.policies.provider_calls import provider_calls

CALL = 'external_data({"provider": "p", "keys": %s})'


@pytest.mark.parametrize(
    ("body", "names", "is_set"),
    [
        (CALL % '["k"]', {"p"}, False),
        (CALL % '{"k"}', {"p"}, True),
        (CALL % "set()", {"p"}, True),
        (CALL % "{x | x := input.x[_]}", {"p"}, True),
        (f"keys := {{x | x := input.x[_]}}; {CALL % 'keys'}", {"p"}, True),
        (f"keys := [x | x := input.x[_]]; {CALL % 'keys'}", {"p"}, False),
        (CALL % "all", {"p"}, True),
        (CALL % "[x | x := all[_]]", {"p"}, False),
        (f"not {CALL % 'all'}", {"p"}, True),
        (f"x := [{CALL % 'all'}]", {"p"}, True),
        ('asked := {"Provider": "q", "KEYS": all}; external_data(asked)', {"q"}, True),
        ('external_data({"provider": input.parameters.p, "keys": ["k"]})', set(), False),
        ('x := "external_data"', set(), False),
    ],
)
def test_names_and_keys_are_read_where_they_are_written_out(
    body: str, names: set[str], is_set: bool
) -> None:
    rego = f'package x\nall[k] {{ k := input.x[_] }}\nviolation[{{"msg": "m"}}] {{ {body} }}'
    calls = provider_calls(read_template(template("X", rego)))
    assert (calls.names, calls.set_lines) == (frozenset(names), (3,) * is_set)


def test_a_template_that_cannot_be_read_has_no_calls() -> None:
    assert not provider_calls(read_template(template("X", "package x\nexternal_data({"))).names


def test_the_calls_of_every_target_count() -> None:
    document = template("X", f'package x\nviolation[{{"msg": "m"}}] {{ {CALL % "[1]"} }}')
    call = 'external_data({"provider": "q", "keys": {"k"}})'
    rego = f'package x\n\n\nviolation[{{"msg": "m"}}] {{ {call} }}'
    document["spec"]["targets"].append({"target": "other.target", "rego": rego})
    calls = provider_calls(read_template(document))
    assert calls.names == {"p", "q"}
    assert calls.set_lines == (4,)
