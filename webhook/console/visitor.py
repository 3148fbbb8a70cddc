"""The visitor of a page, the rights that decide its content, and the values of a sign-in."""

from __future__ import annotations

from typing import Final

from webhook.values import dataclass


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Visitor:
    """A user as the API server identifies them; ``shown`` is the name on pages."""

    user: str
    groups: tuple[str, ...] = ()
    shown: str = ""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Right:
    """A right: ``resource`` is a plural; an empty ``namespace`` means all namespaces."""

    group: str
    resource: str
    namespace: str = ""
    verb: str = "list"
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{where}"


BEGIN: Final = "/login"
END: Final = "/logout"


class SignInRefused(Exception):
    """The sign-in failed; the text says why, ``status`` is the HTTP status."""

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Sent:
    """The address of a redirect, and the cookies to set."""

    address: str
    cookies: tuple[str, ...]
