"""Chooses one of several members without a leader: rendezvous hashing.

All members with the same list compute the same choice. When a member comes or goes, only its own
share moves (Thaler and Ravishankar, 1998).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def chosen(key: str, members: Iterable[str]) -> str | None:
    """Returns the member with the highest hash for the key; None without members."""
    return max(members, key=lambda member: _weight(key, member), default=None)


def rank(key: str, members: Iterable[str], member: str) -> int:
    """Returns how many members come before this one for the key.

    The first acts at once. Each next one waits longer than the one before it, in case those before
    it are dead and this is not known yet.
    """
    own_weight = _weight(key, member)
    return sum(_weight(key, other) > own_weight for other in members)


def _weight(key: str, member: str) -> tuple[bytes, str]:
    digest = hashlib.blake2b(f"{member}\0{key}".encode(), digest_size=16)
    return digest.digest(), member
