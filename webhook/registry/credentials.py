"""Credentials for registries: Docker's configuration, helper programs, image pull secrets."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import fnmatch
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from webhook.registry.errors import InvalidCredentials
from webhook.registry.reference import DOCKER_HUB
from webhook.values import dataclass

_BYTES_MAX: Final = 1 << 20
"""The size of a configuration at most: that of a Secret."""

_HELPER_SECONDS: Final = 15.0
"""The timeout of a helper, which may wait for a key ring or a cloud."""

_HUB_KEYS: Final = ("https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_THERE: Final = ("credentials not found", "no credentials server url")
_TOKEN_USER: Final = "<token>"  # noqa: S105  # the user of identity tokens


@dataclass(frozen=True, slots=True)
class Credential:
    """A user with a password, or an identity token that is exchanged for others."""

    user: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    def basic(self) -> str:
        """Returns the header of HTTP basic authentication."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """The content of a ``config.json`` or an image pull secret."""

    auths: Mapping[str, Credential] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    store: str = ""

    async def credential(self, registry: str, repository: str) -> Credential | None:
        """Returns the credential for a repository; None if this configuration has none.

        Raises :class:`InvalidCredentials`.
        """
        for key in _keys(registry):
            if helper := self.helpers.get(key):
                return await _run_helper(helper, key)
        if (known := self._known(registry, repository)) is not None:
            return known
        if self.store:
            key = _HUB_KEYS[0] if registry == DOCKER_HUB else registry
            return await _run_helper(self.store, key)
        return None

    def _known(self, registry: str, repository: str) -> Credential | None:
        """Returns the entry with a matching host and the longest path above the repository."""
        best: tuple[int, Credential] | None = None
        for key, credential in self.auths.items():
            host, _, path = _plain(key).partition("/")
            if host not in _keys(registry) and not ("*" in host and _matches(host, registry)):
                continue
            path = "" if path in {"v1", "v2"} else path
            if path and path != repository and not repository.startswith(f"{path}/"):
                continue
            if best is None or len(path) > best[0]:
                best = len(path), credential
        return None if best is None else best[1]


async def credential_for(
    configs: Sequence[DockerConfig], registry: str, repository: str
) -> Credential | None:
    """Returns the first configuration's credential; raises :class:`InvalidCredentials`."""
    for config in configs:
        credential = await config.credential(registry, repository)
        if credential is not None:
            return credential
    return None


def read_docker_config(path: Path | None = None) -> DockerConfig:
    """Reads the user's configuration, or a file; empty if the user has none.

    Raises :class:`InvalidCredentials`.
    """
    file = path or Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    try:
        with file.open("rb") as opened:
            content = opened.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        if path is None:
            return DockerConfig()
        raise InvalidCredentials(f"{file}: there is no such file") from None
    except OSError as error:
        raise InvalidCredentials(f"{file}: {error.strerror}") from None
    return docker_config(content, str(file))


def docker_config(content: bytes, where: str) -> DockerConfig:
    """Reads Docker's configuration, or a file with only ``auths``.

    Raises :class:`InvalidCredentials`.
    """
    if len(content) > _BYTES_MAX:
        raise InvalidCredentials(f"{where}: larger than {_BYTES_MAX >> 20} MiB")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidCredentials(f"{where} is not JSON") from None
    if not isinstance(document, dict):
        raise InvalidCredentials(f"{where} is not an object")
    helpers = document.get("credHelpers") or {}
    store = document.get("credsStore") or ""
    auths = document.get("auths") or {}
    if not isinstance(auths, dict) or not isinstance(helpers, dict) or not isinstance(store, str):
        raise InvalidCredentials(f"{where}: auths, credHelpers or credsStore has the wrong type")
    for name in (store, *helpers.values()) if store else helpers.values():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidCredentials(f"{where}: {name!r} is not the name of a credential helper")
    read = {
        key: credentials
        for key, value in auths.items()
        if (credentials := _auth(value, f"{where}: {key}"))
    }
    return DockerConfig(read, helpers, store)


def pull_secret(secret: Mapping[str, Any], where: str) -> DockerConfig:
    """Reads a Secret for imagePullSecrets; raises :class:`InvalidCredentials`."""
    data = secret.get("data")
    data = data if isinstance(data, dict) else {}
    for key, is_whole in ((".dockerconfigjson", True), (".dockercfg", False)):
        if key in data:
            content = _decoded(data[key], f"{where}: {key}")
            if not is_whole:  # the old form has the entries without ``auths``
                try:
                    content = json.dumps({"auths": json.loads(content)}).encode()
                except ValueError:
                    raise InvalidCredentials(f"{where}: {key} is not JSON") from None
            return docker_config(content, f"{where}: {key}")
    raise InvalidCredentials(f"{where} is not an image pull secret: it has no .dockerconfigjson")


def _decoded(text: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise InvalidCredentials(f"{where} is not base64") from None


def _auth(value: Any, where: str) -> Credential | None:
    """Returns the credential of an entry; None for the empty entry beside a store."""
    if not isinstance(value, dict):
        raise InvalidCredentials(f"{where} is not an object")
    texts = {
        name: value.get(name) or "" for name in ("auth", "username", "password", "identitytoken")
    }
    if not all(isinstance(text, str) for text in texts.values()):
        raise InvalidCredentials(f"{where} has a member that is not a string")
    user, password = texts["username"], texts["password"]
    if texts["auth"]:
        decoded = _decoded(texts["auth"], f"{where}: auth").decode("utf-8", "replace")
        user, colon, password = decoded.partition(":")
        if not colon:
            raise InvalidCredentials(f"{where}: auth is not USER:PASSWORD")
        password = password.rstrip("\0")
    if not (user or texts["identitytoken"]):
        return None
    return Credential(user, password, texts["identitytoken"])


def _plain(key: str) -> str:
    return key.removeprefix("https://").removeprefix("http://").rstrip("/")


def _keys(registry: str) -> tuple[str, ...]:
    """Returns the keys under which a registry's credential may be stored."""
    if registry != DOCKER_HUB:
        return (registry,)
    return (DOCKER_HUB, *_HUB_KEYS)


def _matches(pattern: str, registry: str) -> bool:
    """Whether a host pattern with ``*`` in its labels matches a registry, as in kubelets."""
    pattern_host, _, pattern_port = pattern.partition(":")
    host, _, port = registry.partition(":")
    labels, host_labels = pattern_host.split("."), host.split(".")
    return (
        pattern_port == port
        and len(labels) == len(host_labels)
        and all(map(fnmatch.fnmatchcase, host_labels, labels))
    )


async def _run_helper(name: str, key: str) -> Credential | None:
    """Runs ``docker-credential-NAME get``; raises :class:`InvalidCredentials`."""
    program = f"docker-credential-{name}"
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "get",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise InvalidCredentials(f"{program} cannot be run: {error.strerror}") from None
    try:
        async with asyncio.timeout(_HELPER_SECONDS):
            output, code = await _exchange(process, key.encode())
    except TimeoutError:
        raise InvalidCredentials(f"{program} did not answer within {_HELPER_SECONDS:g} s") from None
    finally:
        # Child processes of the helper hold its pipes, and reading would wait for them.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:  # Windows
                process.kill()
        # Pipes are closed at their end, so the rest of the output is read and discarded.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                while await _stdout(process).read(_BYTES_MAX):
                    pass
                await process.wait()
    text = output.decode("utf-8", "replace")
    if code:
        if any(word in text.lower() for word in _NOT_THERE):
            return None
        raise InvalidCredentials(f"{program} for {key}: exit code {code}: {text.strip()[:200]}")
    return _helper_credential(text, program)


async def _exchange(process: asyncio.subprocess.Process, question: bytes) -> tuple[bytes, int]:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(question)
        await process.stdin.drain()
        process.stdin.close()
    output = b""
    while part := await _stdout(process).read(_BYTES_MAX):
        output += part
        if len(output) > _BYTES_MAX:
            raise InvalidCredentials("a credential helper says more than any credential is")
    return output, await process.wait()


def _stdout(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    assert process.stdout is not None
    return process.stdout


def _helper_credential(text: str, program: str) -> Credential:
    try:
        document = json.loads(text)
        user, secret = document["Username"], document["Secret"]
    except (ValueError, TypeError, KeyError, RecursionError):
        user = secret = None
    if not isinstance(user, str) or not isinstance(secret, str):
        raise InvalidCredentials(f"{program} did not answer with a Username and a Secret")
    if user == _TOKEN_USER:
        return Credential(identity_token=secret)
    return Credential(user, secret)
