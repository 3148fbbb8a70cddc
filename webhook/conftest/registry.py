"""Pushes policies as conftest does, and connects to registries like it (internal/registry)."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.conftest.policies import ConftestPolicyError, PolicyOptions, compiled, load_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.registry.reference import Reference
    from webhook.registry.transport import RegistryOptions

_POLICY_LAYER: Final = "application/vnd.cncf.openpolicyagent.policy.layer.v1+rego"
_DATA_LAYER: Final = "application/vnd.cncf.openpolicyagent.data.layer.v1+json"
_CONFIG: Final = "application/vnd.unknown.config.v1+json"
_DOCUMENTS: Final = (".yaml", ".yml", ".json")


def registry_options(reference: Reference, *, tls: bool | None) -> RegistryOptions:
    """Returns the options of a registry.

    It is used without TLS if ``tls`` is False, or if ``tls`` is None and it is on this machine.
    Raises ``RegistryError``.
    """
    from webhook.registry.credentials import read_docker_config  # noqa: PLC0415  # for few commands
    from webhook.registry.transport import RegistryOptions  # noqa: PLC0415  # loads aiohttp

    plain = tls is False or (tls is None and _is_loopback(reference.host))
    insecure = frozenset((reference.host,)) if plain else frozenset[str]()
    return RegistryOptions(configs=(read_docker_config(),), insecure=insecure)


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def push(
    reference: Reference, policy: str, data: str, options: PolicyOptions, *, tls: bool | None
) -> str:
    """Pushes policies and data, a layer for each file; returns the artifact's digest.

    Raises :class:`ConftestPolicyError`.
    """
    from webhook.registry.errors import RegistryError  # noqa: PLC0415  # loads aiohttp
    from webhook.registry.package import packed  # noqa: PLC0415
    from webhook.registry.session import push as push_artifact  # noqa: PLC0415

    if policy:
        compiled(load_files([policy], [data] if data else [], options.version), options)
    try:
        files = dict(_files(policy, (".rego",))) if policy else {}
        files |= dict(_files(data, _DOCUMENTS)) if data else {}
    except OSError as error:
        raise ConftestPolicyError(f"{error.filename}: {error.strerror}") from None
    kinds = {".rego": _POLICY_LAYER, **dict.fromkeys(_DOCUMENTS, _DATA_LAYER)}
    package = packed(files, kinds, artifact_type="", config=(_CONFIG, b"{}"))
    try:
        return push_artifact(registry_options(reference, tls=tls), reference, package)
    except RegistryError as error:
        raise ConftestPolicyError(str(error)) from None


def _files(path: str, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yields the files with these endings at a path, with their paths."""
    root = Path(path)
    places = [root] if root.is_file() else sorted(root.rglob("*"))
    if not root.exists():
        raise FileNotFoundError(2, "no such file or directory", path)
    for place in places:
        if place.suffix in endings and place.is_file():
            yield place.as_posix(), place.read_bytes()
