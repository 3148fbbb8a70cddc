"""The flags of the audit."""

from __future__ import annotations

from typing import Final

from webhook.settings.flags import flag
from webhook.values import dataclass

AUDIT: Final = "Audit (--operation=audit)"


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The settings of the audit: its interval, its input, and its outputs."""

    interval_seconds: int = flag(
        60,
        "Seconds from the beginning of one sweep to the beginning of the next; 0 turns "
        "sweeps off. The first begins once policies are loaded.",
        name="audit-interval",
        gatekeeper=True,
        at_least=0,
    )
    constraint_violations_limit: int = flag(
        20,
        "The number of violations that a constraint's status shows. Totals, log and decision "
        "log have all.",
        gatekeeper=True,
        at_least=0,
    )
    chunk_size: int = flag(
        500,
        "The largest number of objects in a page of a list; large objects make pages "
        "smaller. 0 lists all objects in one page.",
        name="audit-chunk-size",
        gatekeeper=True,
        at_least=0,
    )
    from_cache: bool = flag(
        False,
        "Audit synced data (Config and SyncSets) instead of lists.",
        name="audit-from-cache",
        gatekeeper=True,
    )
    continuous: bool = flag(
        False,
        "Watch audited kinds between sweeps: an object is reviewed when it changes, and a "
        "changed constraint's kinds are listed at once.",
        name="audit-continuous",
    )
    kept_bytes: int = flag(
        16 * 1024 * 1024,
        "Memory for the findings of audits: unchanged objects under unchanged policies are not "
        "reviewed again. An object takes 30 bytes. Violations take their size as JSON, once for "
        "objects that differ in their names only. 0 turns it off.",
        name="audit-kept-bytes",
        at_least=0,
    )
    emit_events: bool = flag(
        False,
        "Write an Event for each violation that a sweep finds.",
        name="emit-audit-events",
        gatekeeper=True,
    )
    events_involved_namespace: bool = flag(
        False,
        "Write those Events to the violating object's namespace instead of POD_NAMESPACE.",
        name="audit-events-involved-namespace",
        gatekeeper=True,
    )
