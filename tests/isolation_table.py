"""The table of docs/isolation.md as tests take it: what each fault gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "isolation.md"

STAGES = ("parse", "compile", "template", "constraint")
"""The ways to be broken."""

SYNTAX = 'package p\nviolation[{"msg": "x"}] {'
UNSAFE = 'package p\nviolation[{"msg": x}] { y := 1 }'
CONFLICT = """package p
violation[{"msg": "never"}] { value == 3 }
value = 1 { input.review }
value = 2 { input.review }
"""
ENDLESS = """package p
violation[{"msg": "never"}] {
  numbers := numbers.range(1, 1000)
  some i, j, k
  numbers[i] + numbers[j] + numbers[k] == -1
}
"""
CEL = {
    "engine": "K8sNativeValidation",
    "source": {"validations": [{"expression": "false", "message": "found"}]},
}
"""The only code of a template whose engine is not here."""

GOOD = 'package p\nviolation[{"msg": "found"}] { true }'


class Cell(NamedTuple):
    """A row of the table."""

    fault: str
    on_error: str
    action: str
    admission: str
    audit: str
    offline: str
    enforced: str
    active: str
    errors: str
    metric: str


def cells(*faults: str) -> list[Cell]:
    """The rows of these faults, or of all."""
    rows = [
        Cell(*(field.strip() for field in line.strip("|").split("|")))
        for line in PAGE.read_text().splitlines()
        if line.count("|") == len(Cell._fields) + 1
    ]
    found = [row for row in rows if row.on_error in ("lastGood", "reject", "allow")]
    assert len(found) == 54, "the table has another number of rows"
    return [row for row in found if not faults or row.fault in faults]


def actions(action: str, *, scoped: bool = False, point: str = "") -> dict[str, Any]:
    """The part of a constraint's spec that gives an action, at one point alone if scoped."""
    if not scoped:
        return {"enforcementAction": action}
    return {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [{"action": action, "enforcementPoints": [{"name": point}]}],
    }
