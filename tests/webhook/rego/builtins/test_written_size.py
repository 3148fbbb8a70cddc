"""Values that are small in memory and enormous when written end an evaluation, not a replica."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]

CPU_SECONDS_MAX = 2.5
"""Ten times what a call may take on an idle machine."""


def test_no_built_in_hangs_or_swells_on_a_value_that_shares_its_parts():
    """2^40 texts if written; each call of each built-in ends soon, within 64 MiB."""
    command = [sys.executable, "-m", "tests.webhook.rego.builtins.small_in_memory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended in {lines[-1]}: {done.stderr[-500:]}"
    outcomes = [line for line in lines if len(line) == 4]
    assert [line for line in outcomes if line[3] > CPU_SECONDS_MAX] == []
    cancelled = {line[0] for line in outcomes if line[2] == "eval_cancel_error"}
    assert cancelled >= {
        "and",
        "equal",
        "graph.reachable",
        "graphql.parse",
        "intersection",
        "io.jwt.encode_sign",
        "json.filter",
        "json.marshal",
        "json.marshal_with_options",
        "json.match_schema",
        "json.patch",
        "json.remove",
        "lt",
        "max",
        "min",
        "object.filter",
        "object.remove",
        "object.subset",
        "object.union",
        "object.union_n",
        "or",
        "providers.aws.sign_req",
        "sort",
        "sprintf",
        "strings.render_template",
        "union",
        "walk",
        "yaml.marshal",
    }


MEMORY_MIB_MAX = 64


def test_what_may_just_be_written_takes_little_time_and_memory():
    """Half of the most, and twice as much: an answer or the end of the budget, all of them soon.

    ``make drill`` has the bound without a margin.
    """
    command = [sys.executable, "-m", "tests.webhook.rego.builtins.nearly_too_large", "--few"]
    done = subprocess.run([*command, "14"], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended in {lines[-1]}: {done.stderr[-500:]}"
    outcomes = [line for line in lines if len(line) == 5]
    assert len(outcomes) > 500
    assert [line for line in outcomes if line[3] > CPU_SECONDS_MAX] == []
    assert [line for line in outcomes if line[4] > MEMORY_MIB_MAX] == []
    assert {str(line[2])[:11] for line in outcomes} <= {"0", "1", "overrun", "extracting "}
    assert sum(line[2] == "overrun" for line in outcomes) > 50
