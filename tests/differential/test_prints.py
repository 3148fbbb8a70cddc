"""Prints show the evaluated bodies: as many as in the real OPA."""

import subprocess
from pathlib import Path

from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from webhook.rego.engine import UNDEFINED, Entrypoint, EvaluationContext, compile_modules
from webhook.rego.syntax.parser import parse_module

RULES = """package t
bodies if { print("bodies 1"); input.x }
bodies if { some i in [1, 2]; print("bodies 2", i) }
bodies if { print("bodies 3") }
branches if { print("branches 1"); input.x } else if { some i in [1, 2]; print("branches 2", i) }
branches if { print("branches 3") } else if { print("branches 4") }
valued := 1 if { some i in [1, 2]; print("valued", i) }
composite := {"a": [1]} if { some i in [1, 2]; print("composite", i) }
computed := x if { some i in [1, 2]; x := 3; print("computed", i) }
agreed := 1 if { print("agreed 1") } else := 1 if { print("agreed 2") }
agreed := 1 if { print("agreed 3") }
different := 1 if { print("different 1"); input.x } else := 2 if { print("different 2") }
different := 2 if { print("different 3") }
f(x) if { print("f 1", x); x == 1 } else if { print("f 2", x) }
f(x) if { print("f 3", x) }
called if f(2)
below if { not g }
g if { some i in [1, 2]; print("g", i) }
members contains x if { some x in [1, 2]; print("members", x) }
every_item if { every x in [1, 2] { print("every", x); x == 2 } }
default fallen := 0
fallen := 1 if { print("fallen 1"); input.x }
fallen := 1 if { print("fallen 2"); input.x } else := 1 if { print("fallen 3") }
"""
NAMES = (
    *("bodies", "branches", "valued", "composite", "computed", "agreed", "different", "called"),
    *("below", "members", "every_item", "fallen"),
)


def printed(rule: Entrypoint) -> list[str]:
    """The lines that one evaluation of ours prints."""
    found: list[str] = []
    rule(UNDEFINED, {}, EvaluationContext(print_=lambda _, text: found.append(text)))
    return found


def test_a_rule_prints_what_it_prints_in_opa(program: Programs, tmp_path: Path):
    policy = tmp_path / "t.rego"
    policy.write_text(RULES)
    compiled = compile_modules([parse_module(RULES, "t.rego", "v1")])
    for name in NAMES:
        command = [str(program("opa")), "eval", "-d", str(policy), f"data.t.{name}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
        assert printed(compiled.rule(f"data.t.{name}")) == done.stderr.splitlines(), name
