"""Signing in at an OpenID provider: code flow with PKCE, state and nonce (OpenID Connect Core 1.0).

The provider's answers are checked: its endpoints, and the issuer, audience, nonce and time of a
token. Errors are worded for the person who signs in.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ssl
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final
from unicodedata import category
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from authlib.common.security import generate_token
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, MissingClaimError
from joserfc.jwk import KeySet

from webhook.api.encoding import DecodeError, decode
from webhook.console.visitor import SignInRefused, Visitor
from webhook.proxies import InvalidProxy, proxy_for
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

LEEWAY_SECONDS: Final = 60
"""The tolerated difference between the provider's clock and ours."""

PROVIDER_SECONDS: Final = 10.0
ANSWER_BYTES_MAX: Final = 1 << 20
FRESH_SECONDS: Final = 3600.0
"""The time for which the provider's metadata and keys are kept."""

KEYS_SECONDS: Final = 10.0
"""The shortest time between two fetches for an unknown key; limits tokens with invented key IDs."""

GROUPS_MAX: Final = 1000
_NO_NAME: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories not allowed in names: controls, surrogates, and separators of lines and
paragraphs."""

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures by a key of the provider; ``none`` and shared secrets are not accepted."""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """The provider, our client there, and the form of its users' names in the cluster.

    The claims and prefixes are those of the API server's flags of the same names.
    """

    issuer_url: str
    client_id: str
    redirect_url: str
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ("openid", "email", "profile", "groups")
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context, repr=False)


@dataclass(frozen=True, slots=True)
class SignIn:
    """The values of a sign-in that must match when its code comes."""

    state: str
    nonce: str
    verifier: str
    back: str

    def document(self) -> list[str]:
        """Returns the values for the browser's cookie."""
        return [self.state, self.nonce, self.verifier, self.back]


@dataclass(slots=True)
class _Known:
    """A provider's metadata and keys."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    metadata_at: float = float("-inf")
    keys: Any = None
    keys_at: float = float("-inf")


class Provider:
    """A client of one provider; used on one event loop."""

    def __init__(self, options: ProviderOptions) -> None:
        self.options = options
        self._known = _Known()
        self._lock = asyncio.Lock()

    async def begin(self, back: str) -> tuple[str, SignIn]:
        """Returns the redirect address, and the values to match later.

        Raises :class:`SignInRefused`.
        """
        metadata = await self._metadata()
        sign_in = SignIn(generate_token(32), generate_token(32), generate_token(64), back)
        supported = metadata.get("scopes_supported")
        scopes = [
            scope
            for scope in self.options.scopes
            if scope == "openid" or not isinstance(supported, list) or scope in supported
        ]
        address = prepare_grant_uri(
            _endpoint(metadata, "authorization_endpoint"),
            client_id=self.options.client_id,
            response_type="code",
            redirect_uri=self.options.redirect_url,
            scope=" ".join(scopes),
            state=sign_in.state,
            nonce=sign_in.nonce,
            code_challenge=create_s256_code_challenge(sign_in.verifier),
            code_challenge_method="S256",
        )
        return str(address), sign_in

    async def finish(self, parameters: Mapping[str, str], sign_in: SignIn) -> Visitor:
        """Returns the user of a code. Raises :class:`SignInRefused`."""
        if not hmac.compare_digest(parameters.get("state", "").encode(), sign_in.state.encode()):
            raise SignInRefused("this answer belongs to another sign-in: sign in again", 400)
        if parameters.get("iss", self.options.issuer_url) != self.options.issuer_url:  # RFC 9207
            raise SignInRefused(f"the answer is of another provider: {parameters['iss']}")
        if "error" in parameters:
            why = ": ".join(
                filter(None, (parameters["error"], parameters.get("error_description", "")))
            )
            raise SignInRefused(f"the provider refused: {why}")
        if not parameters.get("code"):
            raise SignInRefused("the provider sent neither a code nor an error", 400)
        tokens = await self._exchange(parameters["code"], sign_in)
        text = tokens.get("id_token")
        if not isinstance(text, str):
            raise SignInRefused("the provider gave no ID token: is the scope openid allowed?")
        access = tokens.get("access_token")
        claims = await self._claims(text, sign_in, access if isinstance(access, str) else "")
        return visitor_of(claims, self.options)

    async def logout_address(self) -> str:
        """Returns the provider's address for signing out; empty if its metadata has none."""
        try:
            metadata = await self._metadata()
            address = _endpoint(metadata, "end_session_endpoint")
        except SignInRefused:
            return ""
        query = urlencode({"client_id": self.options.client_id})
        return f"{address}{'&' if '?' in address else '?'}{query}"

    # --- requests to the provider ---------------------------------------------------------------

    async def _metadata(self) -> Mapping[str, Any]:
        async with self._lock:
            if time.monotonic() - self._known.metadata_at < FRESH_SECONDS:
                return self._known.metadata
            issuer = self.options.issuer_url
            where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            status, answer = await self._ask("GET", where)
            if status != 200:
                raise SignInRefused(f"the provider answers {status} at {where}", 502)
            if answer.get("issuer") != issuer:
                raise SignInRefused(
                    f"the provider calls itself {answer.get('issuer')!r:.200}, and not {issuer!r}"
                    " as --oidc-issuer-url has it",
                    502,
                )
            self._known.metadata, self._known.metadata_at = answer, time.monotonic()
            return answer

    async def _keys(self, kid: object) -> KeySet:
        metadata = await self._metadata()
        async with self._lock:
            known, age = self._known.keys, time.monotonic() - self._known.keys_at
            is_there = known is not None and (
                kid is None or any(key.kid == kid for key in known.keys)
            )
            if age < (FRESH_SECONDS if is_there else KEYS_SECONDS):
                assert isinstance(known, KeySet)
                return known
            where = _endpoint(metadata, "jwks_uri")
            status, answer = await self._ask("GET", where)
            if status != 200:
                raise SignInRefused(f"the provider answers {status} at {where}", 502)
            try:
                keys = KeySet.import_key_set(answer)  # type: ignore[arg-type]  # it checks it
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise SignInRefused(
                    f"the provider's keys at {where} cannot be read: {error}", 502
                ) from None
            self._known.keys, self._known.keys_at = keys, time.monotonic()
            return keys

    async def _exchange(self, code: str, sign_in: SignIn) -> Mapping[str, Any]:
        metadata = await self._metadata()
        options = self.options
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": options.redirect_url,
            "code_verifier": sign_in.verifier,
        }
        headers = {}
        ways = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not options.client_secret:
            form["client_id"] = options.client_id
        elif "client_secret_basic" in ways or "client_secret_post" not in ways:
            pair = f"{quote(options.client_id, '')}:{quote(options.client_secret, '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": options.client_id, "client_secret": options.client_secret}
        where = _endpoint(metadata, "token_endpoint")
        status, answer = await self._ask("POST", where, form, headers)
        if status != 200:
            why = ": ".join(
                str(answer[name]) for name in ("error", "error_description") if answer.get(name)
            )
            raise SignInRefused(f"the provider gave no token ({status}): {why or 'no reason'}")
        return answer

    async def _claims(self, text: str, sign_in: SignIn, access: str) -> Mapping[str, Any]:
        """Returns the claims of an ID token for this client, valid now, and of this sign-in."""
        options = self.options
        try:
            keys = await self._keys(_kid_of(text))
            token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
            claims = CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": options.issuer_url},
                    "aud": {"essential": True, "value": options.client_id},
                },
                {"nonce": sign_in.nonce, "client_id": options.client_id, "access_token": access},
            )
            claims.validate(leeway=LEEWAY_SECONDS)
        except ExpiredTokenError:
            raise SignInRefused(_clocks("its token had expired before it arrived")) from None
        except MissingClaimError as error:
            raise SignInRefused(f"the provider's token lacks {error.claim}") from None
        except InvalidClaimError as error:
            if error.claim in {"iat", "nbf"}:
                raise SignInRefused(_clocks("its token is not valid yet")) from None
            raise SignInRefused(
                f"the provider's token is for another {_CLAIM_NAMES.get(error.claim, error.claim)}"
            ) from None
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise SignInRefused(f"the provider's token is invalid: {_shortly(error)}") from None
        return dict(claims)

    async def _ask(
        self,
        method: str,
        address: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """Returns the status and JSON object of a small response; follows no redirects."""
        try:
            proxy = proxy_for(address)
        except InvalidProxy as error:
            raise SignInRefused(f"the proxy to the provider: {error}", 502) from None
        try:
            async with (
                asyncio.timeout(PROVIDER_SECONDS),
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=self.options.tls)
                ) as session,
                session.request(
                    method,
                    address,
                    data=form,
                    headers={"Accept": "application/json", **(headers or {})},
                    allow_redirects=False,
                    proxy=None if proxy is None else proxy.url,
                    proxy_headers=None if proxy is None else proxy.headers,
                ) as answer,
            ):
                body = bytearray()
                async for part in answer.content.iter_chunked(1 << 16):
                    body += part
                    if len(body) > ANSWER_BYTES_MAX:
                        raise SignInRefused(f"{address}: an answer of over 1 MiB", 502)
                status = answer.status
        except TimeoutError:
            text = f"the provider does not answer within {PROVIDER_SECONDS:g} s: {address}"
            raise SignInRefused(text, 502) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"the provider cannot be reached: {address}: {_shortly(error)}"
            raise SignInRefused(text, 502) from None
        try:
            decoded = decode(bytes(body))
        except DecodeError:
            decoded = None
        if isinstance(decoded, dict):
            return status, decoded
        if status == 200:
            raise SignInRefused(f"the provider's answer is not a JSON object: {address}", 502)
        return status, {}


_CLAIM_NAMES: Final = {
    "iss": "issuer (iss)",
    "aud": "client (aud)",
    "azp": "client (azp)",
    "nonce": "sign-in (nonce)",
    "at_hash": "access token (at_hash)",
    "exp": "time (exp)",
}


def _clocks(noun: str) -> str:
    return (
        f"{noun}: the clocks of the provider and of the console differ by more than"
        f" {LEEWAY_SECONDS} s, or the sign-in took too long"
    )


def _shortly(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:300]


def _kid_of(text: str) -> object:
    """Returns the key ID in a token's header."""
    head = text.partition(".")[0]
    try:
        header = decode(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (DecodeError, ValueError):
        return None
    return header.get("kid") if isinstance(header, dict) else None


def _endpoint(metadata: Mapping[str, Any], name: str) -> str:
    """Returns an endpoint of the provider; requires encryption, as secrets are sent there."""
    address = metadata.get(name)
    if not isinstance(address, str) or not is_safe_address(address):
        raise SignInRefused(f"the provider has no usable {name}: {address!r:.200}", 502)
    return address


def is_safe_address(address: str) -> bool:
    """Whether an address uses HTTPS or is on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https"
        or (parts.scheme == "http" and host in {"localhost", "127.0.0.1", "::1"})
    )


def visitor_of(claims: Mapping[str, Any], options: ProviderOptions) -> Visitor:
    """Returns the user whom the API server would identify by these claims.

    Follows the API server's flags: without a prefix, names except e-mail addresses get the issuer's
    URL as prefix; an address marked as unverified is refused. Names that begin with ``system:`` are
    refused, and such groups dropped. Raises :class:`SignInRefused`.
    """
    claim = options.username_claim
    name = claims.get(claim)
    if not isinstance(name, str) or not name:
        raise SignInRefused(f"the provider's token has no {claim} (--oidc-username-claim)")
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise SignInRefused(f"the provider has not verified the address {name}")
    prefix = options.username_prefix
    if not prefix and claim != "email":
        prefix = f"{options.issuer_url}#"
    user = name if prefix == "-" else prefix + name
    if user.startswith("system:"):
        raise SignInRefused(f"{user} is a name of Kubernetes' own")
    claimed = claims.get(options.groups_claim) if options.groups_claim else None
    listed = [claimed] if isinstance(claimed, str) else claimed if isinstance(claimed, list) else []
    groups = [f"{options.groups_prefix}{group}" for group in listed if isinstance(group, str)]
    if unsafe := next((text for text in (user, *groups) if not _is_line(text)), None):
        raise SignInRefused(f"{unsafe!r:.200} has control characters: it is nobody's name here")
    if len(groups) > GROUPS_MAX:
        raise SignInRefused(f"{user} is of {len(groups)} groups, more than {GROUPS_MAX}")
    return Visitor(
        user,
        (*(group for group in groups if not group.startswith("system:")), "system:authenticated"),
        name,
    )


def _is_line(text: str) -> bool:
    """Whether a name is a single line, as logs, headers and pages show it unchanged."""
    return not any(category(character) in _NO_NAME for character in text)
