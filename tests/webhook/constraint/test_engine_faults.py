"""A fault of the engine's own in an evaluation costs one policy, and its message says whose it is."""

import io
import json

import pytest

from tests.webhook.constraint.policies import constraint, pod, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.admission import ENGINE_FAULTS
from webhook.metrics.registry import Registry
from webhook.policies.metered import MAX_PLACES, EngineFaults
from webhook.rego.engine import CompileOptions, EvaluationContext, compile_modules
from webhook.rego.errors import EngineFault
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write.generate import compile_parts

FAULTS = {
    "NameError": "never_given",
    "UnboundLocalError": "v99; v99 = 1",
    "TypeError": "1 + 'a'",
    "AttributeError": "S.nothing",
    "KeyError": "{}[1]",
    "ZeroDivisionError": "1 // 0",
}
REGO = 'package p\nviolation contains {"msg": "x"} if input.review.object.metadata.name == "web"'


def broken(fault):
    """CPython's compiler, given generated code that someone has got wrong."""

    def compile_broken(parts):
        head = "def q(S):\n"
        return compile_parts([part.replace(head, f"{head}    v0 = {fault}\n") for part in parts])

    return compile_broken


def client(fault, on_bug=None):
    driver = RegoDriver(compile_parts=broken(fault))
    subject = Client(targets=[AdmissionTarget()], drivers=[driver], on_bug=on_bug)
    code = [{"engine": "Rego", "source": {"rego": REGO, "version": "v1"}}]
    subject.add_template(template(rego="", target={"code": code}))
    subject.add_constraint(constraint())
    return subject


@pytest.mark.parametrize("name", FAULTS)
def test_an_exception_in_generated_code_is_an_evaluation_that_failed(name):
    module = parse_module(REGO, "m.rego", "v1")
    options = CompileOptions(compile_parts=broken(FAULTS[name]))
    rule = compile_modules([module], options=options).rule("data.p.violation")
    with pytest.raises(EngineFault) as found:
        rule({}, {}, EvaluationContext())
    assert str(found.value) == f"eval_internal_error: policy met a fault of the engine: {name}"
    assert found.value.place.startswith("<rego>:")
    assert type(found.value.cause).__name__ == name


def test_a_request_gets_what_a_failing_policy_gives_it_and_no_exception():
    answer = client(FAULTS["UnboundLocalError"]).snapshot.review(AugmentedObject(pod()))
    (result,) = answer.results
    assert "fault of the engine" in result.msg
    assert result.enforcement_action == "deny"


def test_each_fault_is_counted_and_its_place_logged_once():
    lines = io.BytesIO()
    registry = Registry()
    engine_faults = EngineFaults(registry, Log(lines.write).logger("setup"))
    subject = client(FAULTS["NameError"], engine_faults)
    for _ in range(3):
        subject.snapshot.review(AugmentedObject(pod()))
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert line["constraint_kind"] == "K8sDeny"
    assert line["place"].startswith("<rego>:")
    assert "never_given" in line["error"]
    assert registry.counters[ENGINE_FAULTS] == {("K8sDeny",): 3}


def test_many_faulty_templates_neither_fill_the_log_nor_the_metrics():
    lines = io.BytesIO()
    registry = Registry()
    engine_faults = EngineFaults(registry, Log(lines.write).logger("setup"))
    for number in range(MAX_PLACES + 9):
        engine_faults(f"K{number}", EngineFault(NameError("x")))
    assert len(lines.getvalue().splitlines()) == MAX_PLACES
    assert registry.counters[ENGINE_FAULTS]["_other",] == 9
