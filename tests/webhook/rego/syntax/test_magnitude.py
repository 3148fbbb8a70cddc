"""Numbers that cannot be held are refused where OPA refuses them."""

import subprocess

import pytest

from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module

LITERALS = [
    "1e99999999999",
    "0.1e1000000",
    "0e99999999999",
    "0e99999999999999999999",
    ".0e99999999999",
    "0.0000e99999",
    "1.0e-99999999",
    "-1e40000",
    "1e30102",
    "1e30103",
    "9.9e30102",
    "9.991e30102",
    "9.989e30102",
    "1e-30103",
    "1e-30104",
    "5.1e-30104",
    "4.9e-30104",
    "4.9e-30105",
    "1E+30102",
    "1e2147483647",
    "1e2147483648",
    "12.5e2147483647",
    "1" * 30103,
    "1" * 30104,
    "9" * 30103,
    "1" + "0" * 30102,
    "1" + "0" * 30103,
    "0." + "0" * 30200 + "1",
]


@pytest.mark.parametrize(
    "literal", LITERALS, ids=lambda text: f"{text[:24]}-{len(text)}-{text[-1]}"
)
def test_a_policy_may_have_the_numbers_that_opa_holds(program, literal, tmp_path):
    """The first fault of any other text is reported in OPA's words."""
    source = f"package a\n\nx := {literal}\n"
    file = tmp_path / "x.rego"
    file.write_text(source)
    done = subprocess.run(
        [program("opa"), "check", file], capture_output=True, text=True, check=False
    )
    try:
        parse_module(source, "x.rego", "v1")
        found = ""
    except RegoErrors as errors:
        found = str(errors.errors[0]).split("\n", maxsplit=1)[0]
    assert (not found) == (done.returncode == 0)
    assert not found or found.removeprefix("x.rego:3:").removeprefix("6: ") in done.stderr
