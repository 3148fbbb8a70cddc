"""The flags of the log, of Events of admissions, and of the decision log."""

from __future__ import annotations

from webhook.settings.flags import flag
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings of the log, of Events of admissions, and of the decision log."""

    log_denies: bool = flag(
        False,
        "Log every violation with its constraint and object.",
        gatekeeper=True,
    )
    log_mutations: bool = flag(
        False,
        "Log each mutation with the mutators of each pass.",
        gatekeeper=True,
    )
    emit_admission_events: bool = flag(
        False,
        "Make an Event of each violation in an admission.",
        gatekeeper=True,
    )
    admission_events_involved_namespace: bool = flag(
        False,
        "Make those Events in the namespace of the object concerned instead of POD_NAMESPACE.",
        gatekeeper=True,
    )
    level: str = flag(
        "INFO",
        "Lowest level that is logged.",
        name="log-level",
        gatekeeper=True,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    level_key: str = flag(
        "level",
        "Name of the level's field.",
        name="log-level-key",
        gatekeeper=True,
    )
    level_encoder: str = flag(
        "lower",
        "How a level is written.",
        name="log-level-encoder",
        gatekeeper=True,
        choices=("lower", "capital"),
    )
    file: str = flag(
        "",
        "File that is logged to; empty for standard error.",
        name="log-file",
        gatekeeper=True,
    )
    format: str = flag(
        "auto",
        "How a line is written; `auto` is `words` where standard error is a terminal, else `json`.",
        name="log-format",
        choices=("auto", "json", "words"),
    )
    max_constraint_series: int = flag(
        1000,
        "Constraints that have metrics of their own; the others share one series.",
        at_least=0,
    )
    decision_log_config: str = flag(
        "",
        "Configuration file of the decision log, watched for change; without it no decision is "
        "exported.",
    )
    decision_log_grace_seconds: float = flag(
        5.0,
        "Time after the last answer for decisions to be acknowledged.",
        kind="duration",
        at_least=0,
    )
