"""Something wrong with a policy, in words and with a code."""

from __future__ import annotations

from typing import Literal

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a policy.

    ``code`` is that of a template's status error, ``invalid`` for what a
    constraint says, ``overrun`` for one that does not end in its budget,
    ``other_target`` for a template that a cluster never asks, ``evaluation`` for an
    error on a sample; ``kinds``, ``never_asked`` and ``request`` for what will
    probably find nothing (:mod:`webhook.policies.advice`). The message has line and
    column where the source is wrong.
    """

    kind: str
    name: str
    severity: Literal["error", "warning"]
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}: {self.message}"

    def document(self) -> dict[str, str]:
        """As JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
        }
