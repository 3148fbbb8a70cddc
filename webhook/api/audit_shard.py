"""The share of one of several audits: the field ``audit`` in the replica's status of a constraint.

Each audit reviews its share of kinds and namespaces. It writes its results and the members among
which the shares were divided. The total is the sum, once every member has results of the same
shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.api.shapes import Json, object_of, objects_of

FIELD: Final = "audit"

_ORDER: Final = ("group", "version", "kind", "namespace", "name", "message", "enforcementAction")


def members_digest(uids: Iterable[str]) -> str:
    """Returns the members, by the UIDs of their Pods, in a few characters."""
    return hashlib.blake2b("\0".join(sorted(uids)).encode(), digest_size=8).hexdigest()


def shard(
    timestamp: str,
    members: str,
    total: int,
    violations: Sequence[Mapping[str, Any]],
    *,
    limit: int,
) -> Json:
    """Returns a shard's results.

    ``violations`` are the first ``limit`` violations, in the form of a constraint's status. The
    status has the same limit.
    """
    shard: Json = {
        "auditTimestamp": timestamp,
        "members": members,
        "totalViolations": total,
        "limit": limit,
    }
    if violations:
        shard["violations"] = list(violations)
    return shard


def read_shard(status: Mapping[str, Any]) -> Json | None:
    """Reads the audit's share from a status; None if it is absent or unreadable."""
    shard = object_of(status.get(FIELD))
    texts = (shard.get("auditTimestamp"), shard.get("members"))
    numbers = (shard.get("totalViolations"), shard.get("limit"))
    if not all(type(item) is str for item in texts):
        return None
    if not all(type(item) is int and item >= 0 for item in numbers):
        return None
    return shard


def merged(shards: Mapping[str, Mapping[str, Any]], live: Collection[str]) -> Json | None:
    """Returns the status fields of the whole audit.

    None until every member has results of these shares. ``shards`` are the members' results by the
    UID of their Pod, ``live`` the running members. Violations are in the order of a constraint's
    status: the first ones, in reverse order.
    """
    digest = members_digest(live)
    complete = [item for uid in live if (item := shards.get(uid)) and item.get("members") == digest]
    if not complete or len(complete) < len(live):
        return None
    violations = sorted(
        (entry for item in complete for entry in objects_of(item.get("violations"))), key=_place
    )
    return {
        "auditTimestamp": min(item["auditTimestamp"] for item in complete),
        "totalViolations": sum(item["totalViolations"] for item in complete),
        "violations": violations[: min(item["limit"] for item in complete)][::-1],
    }


def _place(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in _ORDER)
