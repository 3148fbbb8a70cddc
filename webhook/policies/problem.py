"""A fault of a policy, in words and with a code."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from webhook.values import dataclass

OVERRUN: Final = "overrun"
"""The code of an evaluation beyond its budget."""

FAULT: Final = "fault"
"""The code of an internal fault: it would occur in force, too, and prevent decisions."""


Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a policy.

    ``code`` is a template's status error code, or one of these: ``invalid``: a fault in a
    constraint; ``overrun``: an evaluation beyond its budget; ``other_target``: a template that a
    cluster never evaluates; ``evaluation``: an error on a sample; ``kinds``, ``never_asked`` and
    ``request``: a policy that will probably find nothing (:mod:`webhook.policies.advice`). The
    message has line and column of a fault in the source.
    """

    kind: str
    name: str
    severity: Severity
    code: str
    message: str
    namespace: str = ""
    """The namespace of an exception; other policies are found by kind and name."""

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name, after the namespace if there is one."""
        return self.kind, f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{'/'.join(self.key)}: {self.message}"

    def document(self) -> dict[str, str]:
        """As JSON."""
        return {
            "kind": self.kind,
            **({"namespace": self.namespace} if self.namespace else {}),
            "name": self.name,
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
        }
