"""Sessions: the provider signs a visitor in, and the browser keeps a sealed cookie.

The console stores no sessions, so consoles with the same key share them. The browser that begins a
sign-in keeps its state, so nobody is signed in with another visitor's code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webhook.console.provider import Provider, ProviderOptions, SignIn
from webhook.console.visitor import BEGIN, END, Sent, SignInRefused, Visitor

if TYPE_CHECKING:
    from webhook.console.sealing import Sealer

SIGN_IN_SECONDS: Final = 600
"""The longest time between the redirect to the provider and the return."""

COOKIE_BYTES_MAX: Final = 3900
"""The longest session cookie; browsers keep 4,096 bytes with name and attributes."""

_SESSION: Final = "waddle"
_BEGUN: Final = "waddle-sign-in-"
_STATE_CHARACTERS: Final = 12
"""The characters of the state in a cookie's name, so each browser window may sign in by itself."""


class Login:
    """The sessions of one provider's users; used on one event loop."""

    def __init__(
        self,
        options: ProviderOptions,
        sealer: Sealer,
        session_seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.provider = Provider(options)
        self._sealer = sealer
        self._session_seconds = session_seconds
        self._now = now
        redirect = urlsplit(options.redirect_url)
        self.host = (redirect.hostname or "").lower()
        self.path = redirect.path or "/"
        self._is_secure = redirect.scheme == "https"
        # Browsers accept a cookie with this prefix only from this very host, and only over HTTPS.
        self._prefix = "__Host-" if self._is_secure else ""

    def visitor(self, cookie: str) -> Visitor | None:
        """Returns the visitor of a request, by its Cookie header."""
        sealed = _cookies(cookie).get(self._prefix + _SESSION)
        opened = self._sealer.open("session", sealed, self._now()) if sealed else None
        if opened is None:
            return None
        user, groups, shown = opened
        assert isinstance(groups, list)
        return Visitor(str(user), tuple(map(str, groups)), str(shown))

    async def begin(self, back: str) -> Sent:
        """Returns the redirect to the provider; raises SignInRefused."""
        address, sign_in = await self.provider.begin(own_place(back))
        sealed = self._sealer.seal("sign-in", sign_in.document(), self._now() + SIGN_IN_SECONDS)
        return Sent(address, (self._cookie(self._begun(sign_in.state), sealed, SIGN_IN_SECONDS),))

    async def finish(self, parameters: Mapping[str, str], cookie: str) -> Sent:
        """Starts a session from the provider's answer; raises SignInRefused."""
        name = self._begun(parameters.get("state", ""))
        sealed = _cookies(cookie).get(name)
        begun = self._sealer.open("sign-in", sealed, self._now()) if sealed else None
        if begun is None:
            raise SignInRefused(
                "this sign-in belongs to another browser, is complete already, or took longer than "
                f"{SIGN_IN_SECONDS // 60} minutes. Allow cookies, and sign in again",
                400,
            )
        sign_in = SignIn(*map(str, begun))
        visitor = await self.provider.finish(parameters, sign_in)
        session = self._sealer.seal(
            "session",
            [visitor.user, list(visitor.groups), visitor.shown],
            self._now() + self._session_seconds,
        )
        session_cookie = self._cookie(self._prefix + _SESSION, session, int(self._session_seconds))
        if len(session_cookie) > COOKIE_BYTES_MAX:
            raise SignInRefused(
                f"{visitor.user} has {len(visitor.groups)} groups, too many for a cookie: let the "
                "provider send this client only the groups that the cluster uses"
            )
        return Sent(sign_in.back, (session_cookie, self._cookie(name, "", 0)))

    def leave(self) -> str:
        """Returns the cookie that ends a session."""
        return self._cookie(self._prefix + _SESSION, "", 0)

    def _begun(self, state: str) -> str:
        return f"{self._prefix}{_BEGUN}{state[:_STATE_CHARACTERS]}"

    def _cookie(self, name: str, value: str, seconds: int) -> str:
        # SameSite=Lax, as the way back from the provider begins at another site.
        secure = "; Secure" if self._is_secure else ""
        return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def own_place(back: str) -> str:
    """Returns a path of this console with its query; "/" for anything else."""
    begins = back.startswith("/") and not back.startswith(("//", "/\\"))
    is_plain = back.isascii() and back.isprintable() and "\\" not in back and len(back) <= 1000
    is_elsewhere = back.startswith((BEGIN, END))
    return back if begins and is_plain and not is_elsewhere else "/"


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: item.value for name, item in SimpleCookie(header).items()}
    except CookieError:
        return {}
