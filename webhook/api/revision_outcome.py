"""The result of a generation's trial, in the status of its PolicyRevision.

One replica tries a generation that was never in force and writes the result here. All replicas read
the result before they enforce the generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from webhook.api.shapes import Json, object_of
from webhook.values import dataclass

TrialVerdict: TypeAlias = Literal["trying", "passed", "refused", "ended"]

VERDICTS: Final[frozenset[str]] = frozenset({"trying", "passed", "refused", "ended"})

FAULT_CHARACTERS_MAX: Final = 1024
"""The longest fault, in characters: compiler errors quote the policy."""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The result of a trial, its replica, and its costs.

    ``trying`` is written during a long trial; a generation that ``passed`` may be enforced;
    ``refused`` has a fault that any replica would find; ``ended`` exceeded the bounds of a trial.
    """

    verdict: TrialVerdict
    pod: str
    uid: str
    version: str
    time: str
    message: str = ""
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    seconds: float = 0.0

    @property
    def is_final(self) -> bool:
        """Whether a replica has finished the trial."""
        return self.verdict != "trying"

    def document(self) -> Json:
        """Returns the status; times are in whole milliseconds."""
        return {
            "verdict": self.verdict,
            "message": self.message[:FAULT_CHARACTERS_MAX],
            "triedBy": {"pod": self.pod, "uid": self.uid, "version": self.version},
            "time": self.time,
            "cpuMilliseconds": round(self.cpu_seconds * 1000),
            "memoryBytes": self.memory_bytes,
            "milliseconds": round(self.seconds * 1000),
        }


def read_outcome(item: Mapping[str, Any]) -> TrialOutcome | None:
    """Reads the outcome of a PolicyRevision; None if it is absent or unreadable."""
    outcome = object_of(object_of(item.get("status")).get("outcome"))
    by = object_of(outcome.get("triedBy"))
    if outcome.get("verdict") not in VERDICTS:
        return None
    return TrialOutcome(
        cast("TrialVerdict", outcome["verdict"]),
        _text(by, "pod"),
        _text(by, "uid"),
        _text(by, "version"),
        _text(outcome, "time"),
        _text(outcome, "message"),
        _whole(outcome, "cpuMilliseconds") / 1000,
        _whole(outcome, "memoryBytes"),
        _whole(outcome, "milliseconds") / 1000,
    )


def _text(of: Mapping[str, Any], name: str) -> str:
    text = of.get(name)
    return text if isinstance(text, str) else ""


def _whole(of: Mapping[str, Any], name: str) -> int:
    number = of.get(name)
    return number if type(number) is int else 0
