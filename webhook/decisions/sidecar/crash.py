"""A bug in a thread ends the process.

A sidecar that receives and no longer drains, or the reverse, would look healthy and fill the disk.
Durable records stay, and the kubelet starts the container again.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.log import Logger

EXIT_CODE: Final = 70
"""sysexits' EX_SOFTWARE."""


@contextlib.contextmanager
def crash_on_bug(part: str, logger: Logger) -> Iterator[None]:
    """Logs an unforeseen exception, and ends the process."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001  # a thread's boundary
        logger.fault(f"bug while {part}: ending", error)
        os._exit(EXIT_CODE)
