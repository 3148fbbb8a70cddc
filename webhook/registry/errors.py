"""The errors of registries; each text says which one, what was asked and what to do."""

from __future__ import annotations

from typing import Final


class RegistryError(Exception):
    """The base of all errors of a registry."""


class RegistryUnavailable(RegistryError):
    """It does not answer, or says that it is busy: worth another try later."""


class RegistryRefused(RegistryError):
    """It said no; ``status`` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_absent(self) -> bool:
        """Whether it does not have what was asked for."""
        return self.status == _NOT_FOUND


class UntrustedContent(RegistryError):
    """It gave what must not be used: another digest, another kind, too much, or another host."""


class InvalidReference(RegistryError):
    """The text names nothing in a registry."""


class InvalidCredentials(RegistryError):
    """A file or a program of credentials that cannot be used."""


_NOT_FOUND: Final = 404
