"""Compiled policies on disk, so that a restart does not compile twice.

Each rule has a file: a header line, a checksum, and the code as :mod:`marshal` writes it. Marshal
only builds code and constants, but loaded code is run later. So the directory must belong to this
user, be closed to all others and never be shared between pods. An invalid file is ignored: the
policy is compiled and the file written again.

The name of a file is a digest of the sources, of the options, of this engine's own source text and
of the Python that runs it, so a stale file is never found.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import marshal
import os
import secrets
import stat
import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Final, Protocol

from webhook.rego.write.generate import Generated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.rego.engine import CompileOptions
    from webhook.rego.syntax.ast import Module

_HEAD: Final = b"waddle compiled policy 1\n"
_CHECKSUM: Final = hashlib.sha256().digest_size

MAX_BYTES: Final = 16 << 20
"""Largest file read: a thousand times a template's."""

MAX_FILES: Final = 10_000
"""The most files kept; at a start, the files unused for the longest time are deleted."""


class UnsafeDirectory(Exception):
    """The directory can be written or read by other users; the message names the needed change."""


class Codes(Protocol):
    """Where compiled rules are kept."""

    def load(self, key: str) -> Generated | None:
        """Returns the bytes stored under the key; None if they are missing or invalid."""

    def store(self, key: str, generated: Generated) -> None:
        """Stores compiled code, if possible."""


class CodeCache:
    """The compiled rules of one user in one directory."""

    def __init__(self, directory: Path) -> None:
        """Use the directory, made where it is missing. Raises :class:`UnsafeDirectory`, OSError."""
        if not hasattr(os, "geteuid"):
            raise UnsafeDirectory("Windows does not say whose a file is by its mode")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise UnsafeDirectory(f"{directory} is not a directory")
        if status.st_uid != os.geteuid():
            raise UnsafeDirectory(f"{directory} belongs to another user")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise UnsafeDirectory(f"{directory} is open to other users: its mode must be 0700")
        self._directory = directory
        self.holds_some = self._trim() > 0
        """Whether it held something when it was opened, as at a second start."""

    def _trim(self) -> int:
        """Deletes surplus files; returns their number."""
        files = sorted(self._directory.glob("*.rego-code"), key=_used)
        for file in files[: max(0, len(files) - MAX_FILES)]:
            with contextlib.suppress(OSError):
                file.unlink()
        return len(files)

    def load(self, key: str) -> Generated | None:
        """Returns the bytes stored under the key; None if they are missing or invalid."""
        try:
            raw = self._read(self._path(key))
        except OSError:
            return None
        body = raw[len(_HEAD) + _CHECKSUM :]
        checksum = raw[len(_HEAD) : len(_HEAD) + _CHECKSUM]
        if not raw.startswith(_HEAD) or not hmac.compare_digest(checksum, _digest(body)):
            return None
        return from_bytes(body)

    def store(self, key: str, generated: Generated) -> None:
        """Stores compiled code.

        On a full or read-only disk the code stays uncached, without an error.
        """
        body = to_bytes(generated)
        path = self._path(key)
        beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
                    file.write(_HEAD + _digest(body) + body)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.rego-code"

    def _read(self, path: Path) -> bytes:
        """Returns the bytes of a plain file that only this user can have written.

        A FIFO is opened without waiting for its writer. A file with a second hard link may be
        accessible to others by that name, and an open descriptor of theirs stays valid after a
        change of mode.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise PermissionError(f"{path} is not a file of this user")
            if stat.S_IMODE(status.st_mode) & 0o077 or status.st_nlink != 1:
                raise PermissionError(f"{path} is open to others, or has another name")
            if status.st_size > MAX_BYTES:
                raise PermissionError(f"{path} is too large")
            os.utime(file.fileno())
            return file.read()


def to_bytes(generated: Generated) -> bytes:
    """Writes compiled code, to be loaded by this very Python."""
    return marshal.dumps(
        (
            generated.codes,
            generated.used,
            generated.slow,
            generated.places,
            generated.slots,
            generated.of_constraint,
        )
    )


def from_bytes(body: bytes) -> Generated | None:
    """Reads the bytes of :func:`to_bytes`; returns None if they are invalid.

    Only for bytes written by this process or user.
    """
    try:
        codes, *rest = marshal.loads(body)  # noqa: S302  # our own, as the caller knows
        generated = Generated(codes, *rest)
    except (ValueError, EOFError, TypeError):
        return None
    if type(codes) is not tuple or not all(isinstance(code, CodeType) for code in codes):
        return None
    return generated


def code_key(modules: Sequence[Module], path: str, options: CompileOptions) -> str:
    """Returns the digest of all that the code of a rule depends on."""
    digest = hashlib.sha256()
    parts = [engine_digest(), path, options.level, str(options.strict)]
    parts += ["disabled", *sorted(options.disabled_builtins)]
    for name, builtin in sorted(options.builtins.items()):
        parts += ["builtin", name, str(builtin.type), str(builtin.context), str(builtin.relation)]
    for module in modules:
        parts += ["module", module.file, module.version, repr(module.package), module.source]
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


@cache
def engine_digest() -> str:
    """Returns a digest of this engine's source text and of the Python that runs it."""
    digest = hashlib.sha256(sys.version.encode())
    digest.update(sys.implementation.cache_tag.encode() if sys.implementation.cache_tag else b"")
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode())
        digest.update(_digest(file.read_bytes()))
    return digest.hexdigest()


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _used(file: Path) -> float:
    try:
        return file.lstat().st_mtime
    except OSError:
        return 0.0
