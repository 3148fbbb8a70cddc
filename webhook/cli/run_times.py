"""How long each constraint's evaluations took, as gator's ``--stats`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cli.table import table
from webhook.constraint.template import CEL, REGO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.limits import Observer
    from webhook.constraint.snapshot import Snapshot


class RunTimes:
    """An observer of reviews that adds up times; ``beside`` gets each evaluation, too.

    ``native`` says whether CEL goes before Rego where a template has both.
    """

    def __init__(self, *, native: bool = True) -> None:
        self.beside: Observer | None = None
        self._native = native
        self._nanoseconds: dict[tuple[str, str], int] = {}
        self._evaluations: dict[tuple[str, str], int] = {}

    def evaluated(
        self,
        constraints: tuple[Constraint, ...],
        began_ns: int,
        ended_ns: int,
        violations: int,
        error: str,
    ) -> None:
        """Share the time among constraints that were evaluated at once."""
        if self.beside is not None:
            self.beside.evaluated(constraints, began_ns, ended_ns, violations, error)
        for constraint in constraints:
            share = (ended_ns - began_ns) // len(constraints)
            self._nanoseconds[constraint.key] = self._nanoseconds.get(constraint.key, 0) + share
            self._evaluations[constraint.key] = self._evaluations.get(constraint.key, 0) + 1

    def entries(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Returns an entry for each constraint that was evaluated, in gator's form."""
        return [
            {
                "scope": "constraint",
                "statsFor": "/".join(constraint.key),
                "stats": [
                    _stat("runTimeNS", self._nanoseconds[constraint.key], engine),
                    _stat("evaluations", self._evaluations[constraint.key], engine),
                ],
                "labels": [{"name": "target", "value": target}],
            }
            for constraint, target, engine in self._evaluated_by(snapshot)
            if constraint.key in self._nanoseconds
        ]

    def _evaluated_by(self, snapshot: Snapshot) -> Iterable[tuple[Constraint, str, str]]:
        """Yields each constraint with its target and engine."""
        for entry in snapshot.entries:
            is_cel = self._native and CEL in {code.engine for code in entry.template.code}
            for constraint in entry.constraints:
                yield constraint, entry.target.name, CEL if is_cel else REGO


def _stat(name: str, value: int, engine: str) -> dict[str, Any]:
    return {"name": name, "value": value, "source": {"type": "engine", "value": engine}}


def as_table(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the times as a table, the longest first."""
    rows = []
    for entry in entries:
        taken, count = (stat["value"] for stat in entry["stats"])
        rows.append((taken, entry["statsFor"], count, entry["stats"][0]["source"]["value"]))
    rows.sort(key=lambda row: (-row[0], row[1]))
    return table(
        [
            ("time", "evaluations", "engine", "constraint"),
            *((f"{taken / 1e6:.3f} ms", str(n), engine, name) for taken, name, n, engine in rows),
        ],
        right={0, 1},
    )
