"""A finding, as every output format shows it."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, Literal

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.description import Description
    from webhook.constraint.result import Result

Level = Literal["error", "warning", "note"]

_LEVELS: Final[dict[str, Level]] = {"deny": "error", "warn": "warning"}


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A violation, or a failed case of a suite.

    ``rule`` is the violated constraint (``K8sRequiredLabels/owner``), ``label`` the action
    (``deny``) or ``FAIL``, ``subject`` the violating object (``v1/Pod shop/web``). ``file`` is
    empty for an object of a cluster; ``place`` then names its place.
    """

    rule: str
    level: Level
    label: str
    subject: str
    message: str
    file: str = ""
    line: int = 1
    place: str = ""
    exception: str = ""
    """The exception that excuses it or weakened its action, with its end and reason."""

    @property
    def text(self) -> str:
        """Returns the message, and the exception if there is one."""
        return f"{self.message} ({self.exception})" if self.exception else self.message

    @property
    def fingerprint(self) -> str:
        """Returns the key that identifies the finding in later runs, wherever it is in its file."""
        text = f"{self.rule}\0{self.subject}\0{self.message}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Report:
    """The findings, their rules, and the inputs that could not be reviewed."""

    rules: Sequence[str]
    findings: Sequence[ShownFinding]
    missing: Sequence[str] = ()
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    """Descriptions of rules, by rule; a rule without a description is absent."""
    excused: Sequence[ShownFinding] = ()
    """Violations that exceptions excuse: notes, with the label ``excused``."""


def shown_resource(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Returns an object as a finding's subject: ``apps/v1/Deployment payments/web``."""
    return f"{api_version}/{kind} {f'{namespace}/{name}' if namespace else name}"


def place_in_cluster(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Returns the place of a cluster's object, in the form of a path."""
    return "/".join(["cluster", api_version, *filter(None, (namespace, kind, name))])


def excused_finding(finding: ShownFinding, result: Result) -> ShownFinding:
    """Returns the finding of an excused violation."""
    return replace(
        finding, level="note", label="excused", exception=f"excused by {exception_of(result)}"
    )


def exception_of(result: Result) -> str:
    """Returns the exception that excuses a violation or weakened its action, with its end and reason."""
    return "" if result.excuse is None else f"{exception_until(result)}: {result.excuse.reason}"


def exception_until(result: Result) -> str:
    """Returns the exception that excuses a violation or weakened its action, with its end."""
    excuse = result.excuse
    if excuse is None:
        return ""
    return f"{excuse.title} until {excuse.expires}" if excuse.expires else excuse.title


def level_of(actions: Sequence[str]) -> Level:
    """Returns the level of the severest action: a note for recorded violations."""
    levels = {_LEVELS.get(action, "note") for action in actions}
    return "error" if "error" in levels else "warning" if "warning" in levels else "note"
