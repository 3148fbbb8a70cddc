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
        "Write an Event for each violation in an admission.",
        gatekeeper=True,
    )
    admission_events_involved_namespace: bool = flag(
        False,
        "Write those Events to the namespace of the reviewed object instead of POD_NAMESPACE.",
        gatekeeper=True,
    )
    level: str = flag(
        "INFO",
        "The lowest level that is logged.",
        name="log-level",
        gatekeeper=True,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    level_key: str = flag(
        "level",
        "The name of the level's field.",
        name="log-level-key",
        gatekeeper=True,
    )
    level_encoder: str = flag(
        "lower",
        "The format of the level.",
        name="log-level-encoder",
        gatekeeper=True,
        choices=("lower", "capital"),
    )
    file: str = flag(
        "",
        "The file to log to; empty for standard error.",
        name="log-file",
        gatekeeper=True,
    )
    format: str = flag(
        "auto",
        "The format of a line. `auto` is `words` if standard error is a terminal, else `json`.",
        name="log-format",
        choices=("auto", "json", "words"),
    )
    max_constraint_series: int = flag(
        1000,
        "The number of constraints with their own metrics; all others share one series.",
        at_least=0,
    )
    decision_log_config: str = flag(
        "",
        "The configuration file of the decision log, watched for changes. Without it no "
        "decision is exported.",
    )
    decision_log_grace_seconds: float = flag(
        5.0,
        "The time to wait at shutdown, after the last answer, until all decisions are "
        "acknowledged.",
        kind="duration",
        at_least=0,
    )
