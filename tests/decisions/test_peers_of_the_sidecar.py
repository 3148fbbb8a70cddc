"""Only the sidecar's own user and group may connect to its socket."""

import errno
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tests.decisions.process import Sidecar

NOBODY = 65_534


def test_another_user_s_process_cannot_open_the_socket() -> None:
    # A directory that everybody may go through: pytest's own is closed to others by itself.
    with tempfile.TemporaryDirectory(prefix="waddle-peers-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        sink = {"name": "file", "type": "file", "settings": {"path": str(folder / "d.ndjson")}}
        with Sidecar(folder, [sink]) as sidecar:
            assert stat.S_IMODE(sidecar.socket.stat().st_mode) == 0o660
            with socket.socket(socket.AF_UNIX) as own:
                own.connect(str(sidecar.socket))
            if os.geteuid() != 0:
                pytest.skip("only root can be another user")
            assert connected_as_another_user(sidecar.socket) == errno.EACCES


def connected_as_another_user(path: Path) -> int:
    """Returns the error of a connection by another user; 0 if it succeeds."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            socket.socket(socket.AF_UNIX).connect(str(path))
            code = 0
        except OSError as error:
            code = error.errno or 255
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
