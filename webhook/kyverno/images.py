"""References of images: ``registry/repository:tag@digest``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFERENCE: Final = re.compile(
    r"(?P<path>[a-zA-Z0-9][a-zA-Z0-9._-]*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}))?"
)

DOCKER_HUB: Final = "index.docker.io"
"""As go-containerregistry names the registry of a reference that has none."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A reference that says each part; by digest it has a tag only where one was written."""

    registry: str
    repository: str
    tag: str
    digest: str

    def names(self) -> Iterator[str]:
        """The texts that name the same image."""
        end = f"@{self.digest}" if self.digest else f":{self.tag}"
        is_hub = self.registry == DOCKER_HUB
        for registry in [self.registry, "docker.io"] if is_hub else [self.registry]:
            yield f"{registry}/{self.repository}{end}"
            if self.registry == DOCKER_HUB and self.repository.startswith("library/"):
                yield f"{registry}/{self.repository.removeprefix('library/')}{end}"


def read_reference(reference: str) -> ImageReference | None:
    """The parts of a reference; None of what is none."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    first, slash, rest = match["path"].partition("/")
    is_host = "." in first or ":" in first or first == "localhost"
    if not slash and ":" in first:  # a port without a path is a tag
        first, _, tag = first.partition(":")
        return ImageReference(DOCKER_HUB, f"library/{first}", tag, match["digest"] or "")
    if slash and is_host:
        registry, repository = first, rest
    else:
        registry, repository = DOCKER_HUB, match["path"]
    if registry in {"docker.io", DOCKER_HUB}:
        registry = DOCKER_HUB
        repository = repository if "/" in repository else f"library/{repository}"
    digest = match["digest"] or ""
    return ImageReference(
        registry, repository, match["tag"] or ("" if digest else "latest"), digest
    )
