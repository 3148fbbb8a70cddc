"""Names of images: their domain, path, and tag or digest, each of which may be assigned.

The patterns and the places of splits are Gatekeeper's (pkg/mutation/mutators/assignimage). Together
they ensure that the next pass reads an assigned part as the same part.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from webhook.mutation.errors import InvalidMutator

_DOMAIN: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_-]*\.[A-Za-z0-9_.-]*[A-Za-z0-9_](:[0-9]+)?|localhost(:[0-9]+)?"
)
# Components of letters and digits between separators: . / _ __ or dashes. Written so that
# a text can be read in only one way.
_PATH: Final = re.compile(r"[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*")
_TAG: Final = re.compile(
    r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
    r"|@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
)
_TAG_BEGINS: Final = re.compile("[:@]")


class ImageParts(NamedTuple):
    """The parts of a name, or the parts to assign; empty if missing."""

    domain: str
    path: str
    tag: str

    def assigned_to(self, name: str) -> str:
        """Returns the name with each of these parts that is not empty in the place of its own."""
        old = split(name)
        domain = self.domain or old.domain
        return f"{domain}/" * bool(domain) + (self.path or old.path) + (self.tag or old.tag)


def split(name: str) -> ImageParts:
    """Returns the parts of an image's name, without a check of their content."""
    domain, rest = _domain(name)
    match = _TAG_BEGINS.search(rest)
    at = len(rest) if match is None else match.start()
    return ImageParts(domain, rest[:at], rest[at:])


def check(parts: ImageParts) -> None:
    """Refuses parts that are none, or could be read otherwise; raises :class:`InvalidMutator`."""
    if not any(parts):
        raise InvalidMutator("at least one of [assignDomain, assignPath, assignTag] must be set")
    if parts.domain and not _DOMAIN.fullmatch(parts.domain):
        raise InvalidMutator(
            f'assignDomain "{parts.domain}" must be a fully-qualified domain name or localhost'
        )
    if parts.path and not _PATH.fullmatch(parts.path):
        raise InvalidMutator(f'assignPath "{parts.path}" must be a valid docker image path')
    if parts.tag and not _TAG.fullmatch(parts.tag):
        raise InvalidMutator(
            f'assignTag "{parts.tag}" must be a valid docker image tag or digest '
            "starting with ':' or '@'"
        )
    if not parts.domain and _domain(parts.path)[0]:
        raise InvalidMutator(
            f'assignDomain must be set if the first part of assignPath "{parts.path}" '
            "can be interpretted as part of a domain"
        )


def _domain(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return "", name
