"""Who began which stream, kept over restarts: a file beside the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook.decisions.wire.checksum import checked, with_checksum
from webhook.decisions.wire.framing import StreamID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk

NAME: Final = "owners"
BYTES_MAX: Final = 8 * 1024 * 1024
"""More than as many streams as are remembered need, with names of the greatest length."""


def load_owners(disk: Disk, directory: Path) -> dict[StreamID, str]:
    """The owners kept; none where there is no such file, or none that makes sense.

    Raises :class:`OSError`: a disk that cannot be read now has them still, and without them the
    next comer would own a stream of another's.
    """
    try:
        rows = orjson.loads(checked(disk.read(directory / NAME, 0, BYTES_MAX)))
        return {StreamID(str(pod), str(process)): str(owner) for pod, process, owner in rows}
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def save_owners(disk: Disk, directory: Path, owners: Mapping[StreamID, str]) -> None:
    """Put the owners in place, durable; raises :class:`OSError`."""
    rows = [[stream.pod_uid, stream.process, owner] for stream, owner in owners.items()]
    disk.replace(directory / NAME, with_checksum(orjson.dumps(rows)))
