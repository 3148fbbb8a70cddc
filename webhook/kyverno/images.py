"""References of images: ``registry/repository:tag@digest``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.values import dataclass

_TAG: Final = re.compile("[a-zA-Z0-9_.-]{1,128}")
_REPOSITORY: Final = re.compile("[a-z0-9_./-]{2,255}")
_HOST: Final = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9_.~!$&'()*+,;=-]*)(?::[0-9]*)?")
_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")

DOCKER_HUB: Final = "index.docker.io"
"""The registry of a reference without one, as in go-containerregistry."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A complete reference; with a digest it has a tag only if one was written."""

    registry: str
    repository: str
    tag: str
    digest: str

    def names(self) -> Iterator[str]:
        """Yields the texts that name the same image."""
        end = f"@{self.digest}" if self.digest else f":{self.tag}"
        is_hub = self.registry == DOCKER_HUB
        for registry in [self.registry, "docker.io"] if is_hub else [self.registry]:
            yield f"{registry}/{self.repository}{end}"
            if self.registry == DOCKER_HUB and self.repository.startswith("library/"):
                yield f"{registry}/{self.repository.removeprefix('library/')}{end}"


def read_reference(reference: str) -> ImageReference | None:
    """Returns the parts of a reference; None if invalid (go-containerregistry, pkg/name)."""
    path, at, digest = reference.partition("@")
    if at and _DIGEST.fullmatch(digest) is None:
        return None
    name, colon, tag = path.rpartition(":")
    if not colon or "/" in tag:  # of a registry's port
        name, tag = path, ""
    elif _TAG.fullmatch(tag) is None:
        return None
    first, slash, rest = name.partition("/")
    registry, repository = DOCKER_HUB, name
    if slash and (first == "localhost" or "." in first or ":" in first):
        registry, repository = first, rest
    if _REPOSITORY.fullmatch(repository) is None or _HOST.fullmatch(registry) is None:
        return None
    if registry in {"docker.io", DOCKER_HUB}:
        registry = DOCKER_HUB
        repository = repository if "/" in repository else f"library/{repository}"
    return ImageReference(registry, repository, tag or ("" if digest else "latest"), digest)
