"""Faulty policies for replicas on the API server: one constraint for each cell of the table.

A policy that cannot work is refused at the door, so these come in good first and
are edited while no webhook stands in the way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.isolation_table import CONFLICT, ENDLESS, GOOD, STAGES, SYNTAX, UNSAFE, Cell, cells
from tests.system.replicas import config_map, constraint, template
from webhook.constraint import enforcement
from webhook.constraint.isolation import ANNOTATION

STEADY = """package p
violation[{"msg": "not steady"}] { input.review.object.metadata.labels.steady != "yes" }
"""

ACTIONS = ("deny", "warn", "dryrun", "scoped")
LABEL = "cell"
STEADY_LABEL = "steady"


class Try(NamedTuple):
    """A row of the table as it is tried: by which kind, constraint and action."""

    row: Cell
    kind: str
    cause: str
    action: str

    @property
    def name(self) -> str:
        """The constraint's name."""
        return f"{self.row.on_error.lower()}-{self.action}"

    @property
    def label(self) -> str:
        """The label of what the constraint matches."""
        return f"{self.kind}-{self.name}"

    @property
    def answer(self) -> str:
        """Returns the status's text about faults."""
        return "lastGood" if self.row.metric == "—" else self.row.metric

    def subject(self) -> dict[str, Any]:
        """Returns an object that the constraint matches and the steady policy allows."""
        document = config_map("", name="probe")
        document["metadata"]["labels"] = {LABEL: self.label, STEADY_LABEL: "yes"}
        return document

    def constraint(self) -> dict[str, Any]:
        """The constraint of the cell."""
        document = constraint(self.name, "x", self.kind)
        document["metadata"]["annotations"] = {ANNOTATION: self.row.on_error}
        spec = document["spec"]
        spec["match"]["labelSelector"] = {"matchLabels": {LABEL: self.label}}
        spec["enforcementAction"] = self.action
        if self.action == "scoped":
            spec["scopedEnforcementActions"] = [
                {"action": "deny", "enforcementPoints": [{"name": enforcement.WEBHOOK}]}
            ]
        return document


def tries(fault: str, kind: str, cause: str) -> list[Try]:
    """A fault's rows, and those of a scoped action as rows of what it scopes."""
    return [
        Try(row, kind, cause, action)
        for row in cells(fault)
        for action in ACTIONS
        if row.action == ("deny" if action == "scoped" else action)
    ]


BROKEN = {f"{stage.title()}None": stage for stage in STAGES}
LASTING = {f"{stage.title()}Good": stage for stage in STAGES}

BROKEN_TRIES = [
    *(one for kind, stage in BROKEN.items() for one in tries("broken", kind, stage)),
    *(one for kind, stage in LASTING.items() for one in tries("broken, last good", kind, stage)),
]
ERROR_TRIES = tries("error", "Errs", "error")
OVERRUN_TRIES = tries("overrun", "Overruns", "overrun")
SUSPENDED_TRIES = tries("suspended", "Overruns", "suspended")


def good(kind: str) -> dict[str, Any]:
    """The generation of a kind's template that can be used."""
    rego = {"Errs": CONFLICT, "Overruns": ENDLESS, "Steady": STEADY}.get(kind, GOOD)
    return template(kind, rego)


def broken(kind: str, stage: str) -> dict[str, Any]:
    """The generation that cannot."""
    document = template(kind, {"parse": SYNTAX, "compile": UNSAFE}.get(stage, GOOD))
    schema = document["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
    if stage == "template":
        schema["properties"]["word"] = {}
    elif stage == "constraint":
        schema["properties"]["word"] = {"type": "integer"}
    return document


def steady_constraint() -> dict[str, Any]:
    """A policy that works, about everything that the others are about."""
    return constraint("steady", "x", "Steady")
