"""A digest of the policies in force that does not depend on their order.

Replicas compare it to see that they have converged, and decision records name it. It covers
identity and everything that affects decisions, but neither status nor the metadata that the API
server adds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.api.encoding import encode

_BITS: Final = 256


class Digest:
    """The sum of the objects' hashes modulo 2**256, so that adding and removing an object is cheap."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, ...], int] = {}
        self._sum = 0

    def copy(self) -> Digest:
        """Returns another digest of the same objects."""
        other = Digest()
        other._hashes = dict(self._hashes)
        other._sum = self._sum
        return other

    def put(self, key: tuple[str, ...], document: Mapping[str, Any]) -> None:
        """Adds an object, replacing the one with this key."""
        self.drop(key)
        value = _fingerprint(key, document)
        self._hashes[key] = value
        self._sum = (self._sum + value) % (1 << _BITS)

    def holds(self, key: tuple[str, ...], document: Mapping[str, Any]) -> bool:
        """Whether this very object is counted under this key."""
        return self._hashes.get(key) == _fingerprint(key, document)

    def drop(self, key: tuple[str, ...]) -> None:
        """Removes an object."""
        value = self._hashes.pop(key, 0)
        self._sum = (self._sum - value) % (1 << _BITS)

    def hex(self, others: Iterable[tuple[tuple[str, ...], Mapping[str, Any]]] = ()) -> str:
        """Returns 64 hexadecimal digits; ``others`` are included in this result only."""
        total = self._sum + sum(_fingerprint(key, document) for key, document in others)
        return f"{total % (1 << _BITS):064x}"


def is_same_generation(known: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether two states of an object are the same generation, for records, reports and audits.

    An object that changed and changed back has the same digest, but another generation.
    """
    ours, theirs = known.get("metadata") or {}, document.get("metadata") or {}
    return all(ours.get(field) == theirs.get(field) for field in ("uid", "generation"))


def _fingerprint(key: tuple[str, ...], document: Mapping[str, Any]) -> int:
    metadata = document.get("metadata") or {}
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    canonical = encode(
        [list(key), document.get("spec"), labels or {}, annotations or {}], sort_keys=True
    )
    return int.from_bytes(hashlib.sha256(canonical).digest())
