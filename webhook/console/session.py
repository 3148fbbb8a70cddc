"""Signing in, as far as every console knows it: its addresses, and what comes of it."""

from __future__ import annotations

from typing import Final

from webhook.values import dataclass

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
