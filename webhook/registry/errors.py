"""The errors of registries; each message names the registry, the request and the remedy."""

from __future__ import annotations

from typing import Final


class RegistryError(Exception):
    """The base of all errors of a registry."""


class RegistryUnavailable(RegistryError):
    """A registry that does not answer, or is busy; a later retry may succeed."""


class RegistryRefused(RegistryError):
    """A registry's refusal; ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_absent(self) -> bool:
        """Whether the registry lacks the requested content."""
        return self.status == _NOT_FOUND


class UntrustedContent(RegistryError):
    """Content that must not be used: another digest or kind, too large, or from another host."""


class InvalidReference(RegistryError):
    """A text that is no reference."""


class InvalidCredentials(RegistryError):
    """A file or program of credentials that cannot be used."""


_NOT_FOUND: Final = 404
