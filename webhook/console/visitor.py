"""The user who asks for a page, the rights that decide what is shown of it, and the values of a sign-in."""

from __future__ import annotations

from typing import Final

from webhook.values import dataclass


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Visitor:
    """A user as the API server knows one; ``shown`` is the name that a page greets."""

    user: str
    groups: tuple[str, ...] = ()
    shown: str = ""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Right:
    """A right: ``resource`` is a plural, an empty ``namespace`` is all of them."""

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
    """Nobody is signed in; the text says why, ``status`` whose fault it is."""

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a browser is sent, and the cookies that it gets."""

    address: str
    cookies: tuple[str, ...]
