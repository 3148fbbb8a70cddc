"""Arguments that programs in Go would take."""

from __future__ import annotations

import click
import pytest

from tests.conformance.gatekeeper import waddle
from webhook.cli.subcommands import spelled

COMMAND = click.Command(
    "c",
    params=[
        click.Option(["-o", "--output"]),
        click.Option(["-v", "--verbose"], is_flag=True),
        click.Option(["--native"], type=bool, is_flag=False, flag_value="true"),
    ],
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-o=yaml"], ["-o", "yaml"]),
        (["-o=a=b"], ["-o", "a=b"]),
        (["-o=", "x"], ["-o", "", "x"]),
        (["--output=yaml"], ["--output=yaml"]),
        (["-o", "-v=true"], ["-o", "-v=true"]),
        (["-v=true", "--verbose=F"], ["-v"]),
        (["--verbose=maybe"], ["--verbose=maybe"]),
        (["--native=false"], ["--native=false"]),
        (["-x=1", "a=b"], ["-x=1", "a=b"]),
        (["--", "-o=yaml"], ["--", "-o=yaml"]),
    ],
)
def test_short_options_and_switches_may_have_a_value_after_an_equals_sign(given, expected):
    assert spelled(given, COMMAND) == expected


def test_every_command_takes_them(tmp_path):
    (tmp_path / "m.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}}")

    run = waddle("test", f"-f={tmp_path}", "-o=json", "--verbose=false")
    assert "no such" not in run.stderr.casefold()
    assert (run.returncode, run.stdout) == (2, "null\n")
    run = waddle("rego", "eval", "-f=raw", "1 + 1")
    assert run.stdout == "2\n"
    run = waddle("test", "--verbose=maybe")
    assert run.returncode == 64
