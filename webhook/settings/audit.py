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
        "Seconds from the beginning of one sweep to that of the next, the first when policies are "
        "loaded; 0 for no sweep.",
        name="audit-interval",
        gatekeeper=True,
        at_least=0,
    )
    constraint_violations_limit: int = flag(
        20,
        "Violations that a constraint's status shows; totals, log and decision log have all.",
        gatekeeper=True,
        at_least=0,
    )
    chunk_size: int = flag(
        500,
        "Most objects in a page of a list; fewer where they are large. 0 for all in one.",
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
        "Watch what is audited, too: between sweeps an object that changed is reviewed alone, and a "
        "changed constraint's kinds are listed at once.",
        name="audit-continuous",
    )
    kept_bytes: int = flag(
        16 * 1024 * 1024,
        "Memory for the findings of audits: an unchanged object under unchanged policies is not "
        "reviewed again. An object takes 30 bytes. Violations take their size as JSON, once for "
        "objects that differ in their names only. 0 switches it off.",
        name="audit-kept-bytes",
        at_least=0,
    )
    emit_events: bool = flag(
        False,
        "Make an Event of each violation that a sweep finds.",
        name="emit-audit-events",
        gatekeeper=True,
    )
    events_involved_namespace: bool = flag(
        False,
        "Make those Events in the violating object's namespace instead of POD_NAMESPACE.",
        name="audit-events-involved-namespace",
        gatekeeper=True,
    )
