"""Outcomes of a trial, in this process: in its own, which a signal ends, coverage is not measured.

What is beyond a trial's bounds is tested with the processes that have them (test_trials.py).
"""

from __future__ import annotations

import json
import marshal
import resource

import pytest

from tests.webhook.constraint.policies import DENY, constraint, template
from webhook.api.encoding import encode
from webhook.constraint.errors import OutOfMemory
from webhook.constraint.template import CEL
from webhook.trials import trial
from webhook.trials.job import NO_MEMORY, digest_of
from webhook.trials.trial import Clients, bound, carry_out, used_bytes, written

SECONDS = 1.0
EXPRESSION = {"validations": [{"expression": "object.spec.x == 1", "message": "no"}]}


def source(engine, value, **more):
    """A job that compiles one source."""
    return {"text": json.dumps([engine, value]), "disabledBuiltins": [], **more}


def documents(*items, **more):
    """A job that tries policies together."""
    return {
        "documents": encode(list(items)),
        "seconds": SECONDS,
        "cel": True,
        "disabledBuiltins": [],
        **more,
    }


def test_the_code_of_a_source_in_rego_is_reported_by_its_digest():
    job = source("Rego", {"rego": DENY})
    outcome = carry_out(job)
    assert list(outcome) == ["codes"]
    assert list(outcome["codes"]) == [digest_of(job["text"])]
    assert marshal.loads(written(outcome)) == outcome


def test_an_expression_compiles_and_has_no_code_to_keep():
    assert carry_out(source(CEL, EXPRESSION)) == {"codes": {}}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (source("Rego", {"rego": "package p\nviolation[x] { y }"}), {"stage": "compile"}),
        (source("Rego", {"rego": "package"}), {"stage": "parse"}),
        (source("Rego", {"rego": 1}), {"code": "create_error"}),
        (
            source("Rego", {"rego": DENY + "x { http.send({}) }"}, disabledBuiltins=["http.send"]),
            {"stage": "compile"},
        ),
        (source(CEL, {"validations": [{"expression": "object."}]}), {"stage": "compile"}),
    ],
    ids=["unsafe", "no Rego", "no text", "a built-in that there is not", "no CEL"],
)
def test_what_does_not_compile_is_reported_with_its_stage_or_code(job, expected):
    outcome = carry_out(job)
    assert outcome.pop("error")
    assert outcome == expected


def test_policies_that_hold_together_have_no_problem():
    outcome = carry_out(documents(template(), constraint()))
    assert outcome["problems"] == []
    assert len(outcome["codes"]) == 1


def test_each_fault_of_policies_is_reported_with_whose_it_is():
    outcome = carry_out(documents(template(), constraint(match={"kinds": 1})))
    ((kind, name, code, message),) = outcome["problems"]
    assert (kind, name) == ("K8sDeny", "c")
    assert code
    assert message


def test_code_that_was_compiled_before_is_not_compiled_again():
    """The code stored for a source counts, despite another result of compiling."""
    whole = documents(template(), constraint())
    known = carry_out(whole)["codes"]
    assert carry_out(whole | {"known": known}) == {"problems": [], "codes": {}}


def test_constraints_of_one_template_are_tried_on_the_one_that_is_in_force():
    """The template is put in force once; its trial is gone for the next."""
    clients = Clients()
    of = encode(template())
    assert len(carry_out(documents(constraint(name="a"), of=of), clients)["codes"]) == 1
    for name in ("a", "b"):
        outcome = carry_out(documents(constraint(name=name), of=of), clients)
        assert outcome == {"problems": [], "codes": {}}, "the template is there already"


@pytest.mark.parametrize("wanting", [MemoryError, OutOfMemory])
def test_to_need_more_memory_than_there_is_is_the_policys_fault(monkeypatch, wanting):
    def validate(*_):
        raise wanting

    monkeypatch.setattr(trial, "validate", validate)
    assert carry_out(documents(template())) == NO_MEMORY


def test_of_policies_that_nest_too_deep_nothing_is_reported_here(monkeypatch):
    """The caller finds the fault again, and has a message for it."""

    def validate(*_):
        raise RecursionError

    monkeypatch.setattr(trial, "validate", validate)
    assert carry_out(documents(template())) == {"codes": {}}


def test_bounds_count_from_what_was_taken_before_and_not_above_those_of_the_system(monkeypatch):
    limits = {resource.RLIMIT_CPU: (5, 10), resource.RLIMIT_AS: (5, resource.RLIM_INFINITY)}
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    most = used_bytes() + (1 << 30)
    bound(1_000_000, most)
    assert limits == {
        resource.RLIMIT_CPU: (10, 10),
        resource.RLIMIT_AS: (most, resource.RLIM_INFINITY),
    }


def test_a_fault_of_ours_ends_the_trial_and_is_no_pass():
    """A policy with such a fault may not be enforced."""
    assert carry_out(
        {"documents": b"{", "seconds": SECONDS, "cel": True, "disabledBuiltins": []}
    ) == {
        "error": "policy cannot be used for a fault of Waddle: DecodeError",
        "stage": "compile",
    }
