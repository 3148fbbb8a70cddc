"""Any failure caused by a policy's text is that policy's fault, and all others load."""

from __future__ import annotations

from contextlib import suppress

import pytest
import yaml

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint import containment
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate, PassingFault
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policies.directory import PolicyDirectory
from webhook.rego.write import generate

RULE = 'violation[{"msg": "x"}] { %s }'


def nested(opening, middle, closing, depth):
    """A term within itself."""
    return opening * depth + middle + closing * depth


SOURCES = {
    "a number beyond all bounds": RULE % "x := 1e99999999999",
    "a number of a large exponent": RULE % "x := 0.1e1000000",
    "a number of many digits": RULE % f"x := {'7' * 1_000_000}",
    "a fraction of many digits": RULE % f"x := 0.{'7' * 1_000_000}",
    "arrays in arrays": RULE % ("x := " + nested("[", "1", "]", 5000)),
    "objects in objects": RULE % ("x := " + nested('{"a": ', "1", "}", 5000)),
    "calls in calls": RULE % ("x := " + nested("count(", "1", ")", 5000)),
    "groups in groups": RULE % ("x := " + nested("(", "1", ")", 5000)),
    "comprehensions in comprehensions": RULE % ("x := " + nested("[y | y := ", "1", "]", 5000)),
    "a long sum": RULE % ("x := " + " + ".join(["1"] * 20_000)),
    "a long union": RULE % ("x := " + " | ".join(["{1}"] * 20_000)),
    "a long comparison": RULE % ("x := " + " == ".join(["1"] * 20_000)),
    "a long reference": RULE % ("x := input" + ".a" * 20_000),
    "a reference with many variables": RULE % ("x := input" + "[_]" * 5000),
    "a long package": "p" + ".a" * 20_000,
    "many not": RULE % ("not " * 5000 + "true"),
    "many else": "p = 1 { false } else = 2 { false }" + " else = 3 { false }" * 5000,
    "many with": RULE % ("x := 1" + " with input.a as 1" * 5000),
    "a function of many operands": f"f({', '.join(f'a{i}' for i in range(20_000))}) = 1 {{ true }}",
    "a long chain of rules": "\n".join(f"r{i} = r{i + 1} {{ true }}" for i in range(5000)),
    "a long string": RULE % f'x := "{"x" * 5_000_000}"',
    "half a character": RULE % 'x := "\ud800"',
    "a name of no script": RULE % "\U0001d4d0 := 1",
    "a null byte": RULE % "x := 1 \x00",
    "control characters": RULE % "x := 1 \x1b[31m \x7f \x85 \u2028",
}


def source(text):
    """A template's Rego with this in it."""
    if text.startswith("p."):
        return f"package {text}\n{RULE % 'true'}"
    return f"package p\n{text}\n" + ("" if "violation[" in text else RULE % "true")


@pytest.fixture(scope="module")
def driver():
    """Returns a driver for all tests: it keeps nothing of what it compiles."""
    return RegoDriver()


@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_source_costs_only_its_own_template(driver, name):
    """The source compiles, or its template has a fault; nothing else happens."""
    subject = Client(targets=[AdmissionTarget()], drivers=[driver])
    subject.add_template(template())
    subject.add_constraint(constraint())
    try:
        subject.add_template(template("K8sOther", source(SOURCES[name])))
    except InvalidTemplate as error:
        assert error.bug is None, repr(error.bug)  # noqa: PT017  # whether it compiles is not asked
    answer = subject.snapshot.review(AugmentedObject(pod()))
    assert [result.msg for result in answer.results] == ["no"]


def test_a_number_that_cannot_be_held_does_not_stop_a_directory(tmp_path):
    """Its fault is reported as the template's."""
    for number, text in enumerate(["1e99999999999", "0.1e1000000"]):
        bad = template(f"K8sOther{number}", source(RULE % f"x := {text}"))
        (tmp_path / f"bad{number}.yaml").write_text(yaml.safe_dump(bad))
    (tmp_path / "good.yaml").write_text(yaml.safe_dump_all([template(), constraint()]))
    subject = client()

    report = PolicyDirectory(subject, [tmp_path]).load()

    assert (report.templates, report.constraints) == (1, 1)
    assert [fault.title for fault in report.faults] == [
        "ConstraintTemplate k8sother0",
        "ConstraintTemplate k8sother1",
    ]
    assert "rego_parse_error: unexpected number token: invalid float" in str(report.faults[0])
    assert "rego_parse_error: number too big" in str(report.faults[1])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "policy needs more memory than there is"),
        (RecursionError(), "policy is nested too deeply"),
        (ValueError("x"), "policy cannot be used for a fault of Waddle: ValueError"),
        (OverflowError("x"), "policy cannot be used for a fault of Waddle: OverflowError"),
        (SyntaxError("x"), "policy cannot be used for a fault of Waddle: SyntaxError"),
        (AssertionError("x"), "policy cannot be used for a fault of Waddle: AssertionError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_exception_of_any_class_is_the_templates_fault(error, message):
    """The template's last good revision stays in force."""
    raised = None

    def compile_parts(parts):
        if raised is not None:
            raise raised
        return generate.compile_parts(parts)

    driver = RegoDriver(compile_parts=compile_parts)
    subject = Client(targets=[AdmissionTarget()], drivers=[driver])
    subject.add_template(template())
    subject.add_constraint(constraint())
    raised = error
    with pytest.raises(InvalidTemplate, match="policy") as caught:
        subject.add_template(template(rego=source(RULE % "false")))
    assert message in str(caught.value) or "nested too deeply" in str(caught.value)
    answer = subject.snapshot.review(AugmentedObject(pod()))
    assert [result.msg for result in answer.results] == ["no"]


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(24, "Too many open files"), ImportError("no library")]
)
def test_what_the_machine_lacks_is_no_fault_of_the_templates_text(error):
    """It is no bug of ours either: another attempt may succeed."""

    @containment.of_template
    def compile_():
        raise error

    with pytest.raises(PassingFault) as caught:
        compile_()
    assert (caught.value.stage, caught.value.code) == ("environment", "environment")
    assert caught.value.bug is None


def deep(levels):
    """An object of so many levels."""
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_schema_that_is_nested_beyond_bounds_is_the_templates_fault():
    """Any reader of the schema recurses."""
    schema = {"type": "string"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(InvalidTemplate):
        client().add_template(template(schema=schema))


@pytest.mark.parametrize("levels", [5000, 50_000])
def test_parameters_nested_beyond_bounds_are_at_most_the_constraints_fault(levels):
    """The other constraints of the template stay."""
    subject = client()
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subject.add_template(template(schema=loose))
    subject.add_constraint(constraint())
    other = constraint(name="other")
    other["spec"]["parameters"] = deep(levels)
    with suppress(InvalidConstraint):
        subject.add_constraint(other)
    assert "c" in [item.name for item in subject.snapshot.constraints]


@pytest.mark.parametrize("head", ["[1]", "{1}", '{"a": 1}', "{y | y = 1}", "[y | y = 1]"])
@pytest.mark.parametrize("body", ["x := {head}(2)", "{head}(2)"], ids=["term", "literal"])
def test_a_call_of_what_is_no_name_is_an_undefined_function(head, body):
    """In OPA's words."""
    with pytest.raises(InvalidTemplate, match="rego_type_error: undefined function") as caught:
        client().add_template(template(rego=source(RULE % body.replace("{head}", head))))
    assert f"undefined function {head}" in str(caught.value)
