"""Every command of the program, and what some of them read."""

from __future__ import annotations

import click

from tests.webhook.constraint.policies import pod
from webhook.cli.main import waddle as program

RECORD = {
    "eventType": "decision",
    "verdict": "allow",
    "operation": "CREATE",
    "object": pod(),
    "constraintsEvaluated": 1,
}
DECISION_RECORD = RECORD | {
    "enforcementPoint": "validation.gatekeeper.sh",
    "sequence": 1,
    "results": [
        {
            "constraint": {"kind": "K", "name": "c"},
            "enforcementAction": "deny",
            "message": "no: not this one",
        }
    ],
}
LOGGED = {
    "event_type": "violation",
    "process": "admission",
    "constraint_kind": "K",
    "constraint_name": "c",
    "constraint_action": "deny",
    "msg": "denied admission: no: not this one",
}


def commands() -> list[tuple[str, click.Command]]:
    """Every subcommand that does something, by its words."""
    found = []

    def below(group: click.Group, path: str) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                below(command, f"{path}{name} ")
            else:
                found.append((f"{path}{name}", command))

    below(program, "")
    return found
