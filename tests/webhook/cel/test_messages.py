"""Times and durations written as messages, and what else is written in another way than it seems."""

import pytest

from tests.webhook.cel.evaluation import ENVIRONMENT, evaluate
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.run.values import Duration

DURATION = "google.protobuf.Duration"
TIMESTAMP = "google.protobuf.Timestamp"


def value_or_error(source):
    try:
        return evaluate(source, {"object": {"i": 5, "s": "a"}})
    except EvaluationError as error:
        return error.text


@pytest.mark.parametrize(
    ("source", "ns"),
    [
        ("{seconds: 1, nanos: -5}", 999_999_995),
        ("{}", 0),
        ("{,}", 0),
        ("{seconds: 1, seconds: 2,}", 2_000_000_000),
        ("{?seconds: object.?i, ?nanos: optional.none()}", 5_000_000_000),
        ("{seconds: dyn(optional.of(1))}", 1_000_000_000),
        # A duration beyond 64 bits becomes the longest one.
        ("{seconds: 9223372037}", (1 << 63) - 1),
        ("{seconds: -9223372036854775807, nanos: 1}", -(1 << 63)),
    ],
)
def test_a_duration_is_made_of_its_fields(source, ns):
    assert value_or_error(DURATION + source) == Duration(ns)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (f"string({TIMESTAMP}{{seconds: 253402300800}})", "10000-01-01T00:00:00Z"),
        (f"string({TIMESTAMP}{{seconds: -62167219201}})", "-0001-12-31T23:59:59Z"),
        (f"{TIMESTAMP}{{seconds: 253402300800}}.getFullYear('Asia/Tokyo')", 10000),
        (f"{TIMESTAMP}{{seconds: 253418198400}}.getHours('Europe/Berlin')", 2),
        (f"{TIMESTAMP}{{seconds: 253402300800}} + duration('1s')", "timestamp overflow"),
        (
            f"{DURATION}{{seconds: object.s}}",
            "unsupported native conversion from string to 'int64'",
        ),
        (f"{DURATION}{{nanos: dyn(1.5)}}", "type conversion error from Double to 'int32'"),
        (f"{DURATION}{{nanos: dyn(1u)}}", "unsupported type conversion from 'uint' to int32"),
        (f"{DURATION}{{nanos: dyn(url('/a'))}}", "type conversion error from 'URL' to 'int32'"),
        (f"{DURATION}{{nanos: dyn([])}}", "type conversion error from list to 'int32'"),
        (f"{DURATION}{{nanos: 2147483648}}", "integer overflow"),
        (f"{DURATION}{{nanos: dyn(optional.none())}}", "optional.none() dereference"),
        (f"{DURATION}{{seconds: dyn(int)}}", "type conversion not supported for 'type'"),
        (
            f"{DURATION}{{?seconds: dyn(5)}}",
            "cannot initialize optional entry 'seconds' from non-optional value 5",
        ),
        ("null_type{} == null", "unknown type 'null_type'"),
    ],
)
def test_a_field_that_is_no_number_is_reported_with_the_words_of_kubernetes(source, found):
    answer = value_or_error(source)
    assert answer == found or answer.endswith(f" value type: {found}")


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (f"{DURATION}{{seconds: 'a'}}", "field 'seconds' is 'int' but provided type is 'string'"),
        (f"{DURATION}{{?nanos: 5}}", "expected type 'optional_type.int.' but found 'int'"),
        (f"{DURATION}{{nope: 1}}", "undefined field 'nope'"),
        (f"{DURATION}{{in: 1}}", "Syntax error: mismatched input 'in'"),
        (f"({DURATION}){{}}", "Syntax error: mismatched input '{'"),
        ("object{a: 1}", "'dyn' is not a type"),
        ("net.IP{a: 1}", "unexpected failed resolution of 'net.IP'"),
        ("null_type{a: 1}", "unexpected failed resolution of 'google.protobuf.NullValue'"),
        ("Nope{a: nope}", "undeclared reference to 'Nope'"),
        (f"[{DURATION}].map(x, x{{}})", "unknown type: x"),
        ("kubernetes.Quantity", "undeclared reference to 'kubernetes'"),
        ("rb'a'", "Syntax error"),
        ("r'a\\\nb'", "Syntax error"),
        ("[1,,]", "Syntax error"),
        ("duration == type(duration('1s'))", "reference to undefined type: duration"),
        ("namespace('a')", "1:1: reserved identifier: namespace"),
        ("[1].map(if, 1)", "argument is not an identifier"),
        ("package.x{}", "undeclared reference to 'package.x'"),
        ("[1].existsOne(x, x == 1)", "undeclared reference to 'existsOne'"),
        ("[1].filter(.x, true)", "undeclared reference to '.x'"),
        ("optional.of(1).optMap(.x, 1)", "undeclared reference to '.x'"),
    ],
)
def test_what_is_written_wrongly_is_refused(source, fault):
    with pytest.raises(CompileError, match=fault):
        compile_expression(source, ENVIRONMENT)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[,]", []),
        ("[1].map(duration, duration + 1)", [2]),
        ("{,}", {}),
        ("br'\\x'", b"\\x"),
        ("has(has(object.i))", True),
        ("[1].map(.x, 2)", [2]),
        ("[1].all(.object, object.i == 5)", True),
    ],
)
def test_what_looks_wrong_and_is_not(source, value):
    assert value_or_error(source) == value
