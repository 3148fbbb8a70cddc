"""Resource versions that can be compared: those of etcd, which are whole numbers that grow.

Kubernetes calls them opaque, and so they are where they look otherwise: an aggregated API may
have any text. Of such two none is the older one.
"""

from __future__ import annotations


def is_older(version: str, known: str) -> bool:
    """Whether a version is certainly of an earlier moment than the one that is known."""
    if not (_is_number(version) and _is_number(known)):
        return False
    one, other = version.lstrip("0"), known.lstrip("0")
    return (len(one), one) < (len(other), other)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
