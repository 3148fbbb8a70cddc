"""The flags of what is logged, and of the decision log.

A slotted class has one base: these are the first that :class:`~webhook.settings.serve.ServeSettings`
inherits, and so the first that are listed after its own.
"""

from __future__ import annotations

from typing import Final

from webhook.settings.flags import flag
from webhook.values import dataclass

_LOGGING: Final = "Logging"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged of decisions, and how."""

    log_denies: bool = flag(
        False,
        "Log every violation with its constraint and object.",
        gatekeeper=True,
        group=_LOGGING,
    )
    log_mutations: bool = flag(
        False, "Log each mutation with the mutators of each pass.", gatekeeper=True, group=_LOGGING
    )
    emit_admission_events: bool = flag(
        False, "Make an Event of each violation in an admission.", gatekeeper=True, group=_LOGGING
    )
    admission_events_involved_namespace: bool = flag(
        False,
        "Make those Events in the namespace of the object concerned instead of POD_NAMESPACE.",
        gatekeeper=True,
        group=_LOGGING,
    )
    log_level: str = flag(
        "INFO",
        "Lowest level that is logged.",
        gatekeeper=True,
        group=_LOGGING,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    log_level_key: str = flag(
        "level", "Name of the level's field.", gatekeeper=True, group=_LOGGING
    )
    log_level_encoder: str = flag(
        "lower",
        "How a level is written.",
        gatekeeper=True,
        group=_LOGGING,
        choices=("lower", "capital"),
    )
    log_file: str = flag(
        "", "File that is logged to; empty for standard error.", gatekeeper=True, group=_LOGGING
    )
    log_format: str = flag(
        "auto",
        "How a line is written; `auto` is `words` where standard error is a terminal, else `json`.",
        group=_LOGGING,
        choices=("auto", "json", "words"),
    )
    max_constraint_series: int = flag(
        1000,
        "Constraints that have metrics of their own; the others share one series.",
        group=_LOGGING,
    )

    decision_log_config: str = flag(
        "",
        "Configuration file of the decision log, watched for change; without it no decision is "
        "exported.",
        group=_LOGGING,
    )
    decision_log_grace_seconds: float = flag(
        5.0,
        "Time after the last answer for decisions to be acknowledged.",
        name="decision-log-grace",
        kind="duration",
        group=_LOGGING,
    )
