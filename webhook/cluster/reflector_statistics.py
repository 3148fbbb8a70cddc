"""What a reflector has seen, for whoever asks how it is."""

from __future__ import annotations

from dataclasses import field

from webhook.values import dataclass


@dataclass(slots=True)
class ReflectorStatistics:
    """What a reflector has seen: counts since its start, and how it is now."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    gone: int = 0
    errors: int = 0
    silences: int = 0
    restores: int = 0
    """Times that the API server was at an older version than before."""
    malformed: int = 0
    objects: int = 0
    synced: bool = False
    absent: bool = False
    outdated: bool = False
    """Whether the API server is at an older version, and nothing has been listed anew yet."""
    last_error: str = ""
    last_event_at: float = field(default=0.0)
    resource_version: str = ""
    """Where the watch stands."""
