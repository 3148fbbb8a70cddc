"""References to contents of a registry: ``HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]``."""

from __future__ import annotations

import re
from typing import Final

from webhook.registry.errors import InvalidReference
from webhook.values import dataclass

LATEST: Final = "latest"
DOCKER_HUB: Final = "docker.io"
SCHEME: Final = "oci://"

_HUB_HOST: Final = "registry-1.docker.io"
_TEXT_MAX: Final = 1024
"""Registries take repositories of at most 255 characters, and tags of at most 128."""

_HOST: Final = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
    r"|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


def is_digest(text: object) -> bool:
    """Whether a value is a digest of a supported algorithm."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Reference:
    """A manifest by its tag or digest; the digest counts if both are given."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def host(self) -> str:
        """Returns the host of the registry's API."""
        return _HUB_HOST if self.registry == DOCKER_HUB else self.registry

    @property
    def target(self) -> str:
        """Returns the digest, or the tag without one."""
        return self.digest or self.tag

    @property
    def name(self) -> str:
        """Returns registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: str) -> Reference:
        """Returns a reference to the same repository at a digest."""
        return Reference(self.registry, self.repository, self.tag, digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.name}{tag}{digest}"


def parse_reference(text: str) -> Reference:
    """Parses a reference, with or without ``oci://``; the default tag is ``latest``.

    As with Docker, a name without a host is Docker Hub's. Raises :class:`InvalidReference`.
    """
    plain = text.strip().removeprefix(SCHEME)
    if len(plain) > _TEXT_MAX:
        raise InvalidReference(f"a reference of {len(plain)} characters: at most {_TEXT_MAX}")
    name, at, digest = plain.partition("@")
    if at and not is_digest(digest):
        raise InvalidReference(f"{text!r}: {digest!r} is not a sha256 or sha512 digest")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        registry, path = first, rest
    else:
        registry, path = DOCKER_HUB, name
    path, colon, given = path.partition(":")
    if colon and not _TAG.fullmatch(given):
        raise InvalidReference(f"{text!r}: {given!r} is not a tag")
    if registry in {DOCKER_HUB, "index.docker.io", _HUB_HOST}:
        registry, path = DOCKER_HUB, path if "/" in path or not path else f"library/{path}"
    if not _HOST.fullmatch(registry) or not _REPOSITORY.fullmatch(path):
        raise InvalidReference(f"{text!r} names no repository: it is HOST/REPOSITORY[:TAG]")
    return Reference(registry, path, given or ("" if digest else LATEST), digest)
