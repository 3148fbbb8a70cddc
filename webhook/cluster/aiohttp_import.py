"""Imports aiohttp without the system's authorities.

At its import aiohttp makes two TLS contexts, for sessions without one, and reads all authorities of
the system for each. It has no parameter to leave this out. Every session here brings the context
of its credentials. The two contexts then trust nobody: a session that uses one by mistake is
refused. docs/adr/0060 has what this saves.
"""

from __future__ import annotations

import ssl

__all__ = ["aiohttp"]


def _read_nothing(_: ssl.SSLContext) -> None:
    """Stands in for ``set_default_verify_paths`` during the import."""


ssl.SSLContext.set_default_verify_paths = _read_nothing  # type: ignore[assignment]  # its stub has self twice
try:
    import aiohttp
finally:
    del ssl.SSLContext.set_default_verify_paths
