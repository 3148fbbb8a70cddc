"""Numbers: text, order and arithmetic as OPA has them."""

import json
import subprocess

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.golang import bigfloat
from webhook.rego.errors import EvaluationError
from webhook.rego.run import numbers
from webhook.rego.run.numbers import Numeral, number, number_text
from webhook.rego.run.values import compare, equal, key

TEXTS = [
    "0",
    "1",
    "3",
    "7",
    "-1.0",
    "1.0",
    "1.5",
    "-2.5",
    "2.50",
    "0.1",
    "0.2",
    "0.3",
    "1e3",
    "1e-7",
    "123456789.5",
    "0.000012345",
    "1000000",
    "1e22",
    "1e30",
    "99999999999999999999",
    "-0.5",
    "2147483648",
    "4611686018427387904",
    "-9223372036854775808",
    "5e-1",
    "0.0",
    "-0.0001",
    "0.30000000000000004",
    "8733.4172",
    "-4215.000125",
    "3.999999999999999999",
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (999999.0, "999999"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (5e-324, "5e-324"),
        (number("1.0"), "1.0"),
        (number("1E3"), "1E3"),
    ],
)
def test_a_number_prints_as_go_prints_it(value, text):
    assert number_text(value) == text


def test_an_integer_prints_however_long_it_is():
    """Python's own limit for the conversion is for text from outside."""
    assert number_text(10**5000) == "1" + "0" * 5000
    assert number("1" + "0" * 5000) == 10**5000


@pytest.mark.parametrize("text", ["1.5", "0.1", "-2.25", "1e-07"])
def test_a_text_that_a_float_prints_is_that_float(text):
    """Only what would lose its text is kept apart."""
    assert type(number(text)) is float


def test_numbers_that_keep_their_text_compare_by_value():
    """``1.0`` is ``1``, as a key too, and beyond a double's precision order still holds."""
    assert equal(number("1.0"), 1)
    assert key(number("1.0")) == key(1)
    assert hash(number("0.10")) == hash(0.1)
    assert equal(number("0.10"), 0.1)
    assert compare(number("0.30000000000000000001"), 0.3) == 1
    assert compare(number("1e400"), number("1e399")) == 1
    assert not equal(number("1.0"), True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1e100000", "number too big"),
        ("1e-100000", "number too big"),
        ("9e999999999999", "invalid float"),
    ],
)
def test_an_exponent_out_of_range_is_refused(text, fault):
    with pytest.raises(ValueError, match=f"invalid number: {fault}"):
        number(text)


def test_a_computed_number_has_an_end():
    """Squaring a small number over and over ends in an error, not in memory."""

    def squared(times: int) -> None:
        value = number("1e-10000")
        for _ in range(times):
            value = numbers.multiply(value, value)

    squared(1)
    with pytest.raises(EvaluationError, match="number too large or too small"):
        squared(20)


def test_between_minus_one_and_nought_ceiling_and_floor_are_opas():
    """OPA 1.22 takes the sign of the integer part, which nought has not."""
    assert numbers.ceiling(-0.5) == 1
    assert numbers.floor(-0.5) == 0


OPERATIONS = {
    "+": numbers.add,
    "-": numbers.subtract,
    "*": numbers.multiply,
    "/": numbers.divide,
}
UNARY = {
    "abs": numbers.absolute,
    "ceil": numbers.ceiling,
    "floor": numbers.floor,
    "round": numbers.rounded,
}


@pytest.mark.slow
def test_arithmetic_prints_what_opa_prints(program, tmp_path):
    """Every pair of numbers under every operation."""
    expected, source = [], ["package p"]
    for a in TEXTS:
        for name, function in UNARY.items():
            source.append(
                f"r[{len(expected)}] := json.marshal({name}(object.get({{0: {a}}}, 0, 0)))"
            )
            expected.append(number_text(function(number(a))))
        for b in TEXTS:
            for sign, operation in OPERATIONS.items():
                if sign == "/" and not number(b):
                    continue
                hidden = [f"object.get({{0: {x}}}, 0, 0)" for x in (a, b)]
                source.append(f"r[{len(expected)}] := json.marshal({hidden[0]} {sign} {hidden[1]})")
                expected.append(number_text(operation(number(a), number(b))))
    module = tmp_path / "numbers.rego"
    module.write_text("\n".join(source), encoding="utf-8")
    finished = subprocess.run(
        [program("opa"), "eval", "-d", module, "data.p.r", "-f", "raw"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    found = json.loads(finished.stdout)
    assert {str(place): text for place, text in enumerate(expected)} == found


def test_a_numeral_is_false_only_when_it_is_nought():
    assert not Numeral("0.0")
    assert Numeral("1e-400")


def test_long_integers_are_read_and_written_exactly():
    """By halves, beyond what Python converts itself."""
    for digits in (1999, 2000, 2001, 4300, 4301, 30_000, 100_001):
        text = ("9876543210" * (digits // 10 + 1))[:digits]
        value = bigfloat.int_from_text(text)
        assert value % 10**60 == int(text[-60:])
        assert bigfloat.int_text(value) == text
        assert bigfloat.int_text(-value) == "-" + text
        assert bigfloat.int_from_text("-" + text) == -value
        power = "1" + "0" * digits
        assert bigfloat.int_text(10**digits) == power
        assert bigfloat.int_from_text(power) == 10**digits


def test_text_of_more_digits_than_a_number_may_have_is_not_read():
    """The evaluation ends before the costly reading."""
    for text in ("7" * 1_000_000, "0." + "7" * 1_000_000, "1" * 1_000_000 + "e1"):
        with pytest.raises(EvaluationError, match="too large or too small"):
            number(text)
