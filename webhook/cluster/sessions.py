"""aiohttp, imported without the system's authorities.

When aiohttp is imported, it makes two TLS contexts, and reads all authorities of the system for each:
40 ms of a replica's start, and 2.5 MiB. No session of ours uses these contexts: each has that of its
credentials. Here they trust nobody, so that a session that uses one by mistake is refused.
"""

from __future__ import annotations

import ssl

__all__ = ["aiohttp"]


def _read_nothing(_: ssl.SSLContext) -> None:
    """Takes the place of the method of the class below."""


ssl.SSLContext.set_default_verify_paths = _read_nothing  # type: ignore[assignment]  # its stub has self twice
try:
    import aiohttp
finally:
    del ssl.SSLContext.set_default_verify_paths
