"""A Provider: its URL and its certificate authorities.

Validation and error messages are those of Gatekeeper's cache of providers (frameworks,
pkg/externaldata/cache.go). Only HTTPS is accepted, and only authorities in ``caBundle``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from webhook.api.gvk import name_of
from webhook.api.shapes import object_of
from webhook.golang import base64, url
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from ssl import SSLContext

GROUP: Final = "externaldata.gatekeeper.sh"
KIND: Final = "Provider"

USE: Final = "waddle.dev/use"
REQUIRED: Final = "required"
"""The value of the annotation that restricts the use of a Provider."""

TIMEOUT_SECONDS: Final = 5.0
"""The timeout of a Provider without ``spec.timeout``, or with 0: Gatekeeper's default in mutation.
In validation, Gatekeeper gives such a request no time at all."""

TIMEOUT_SECONDS_MAX: Final = 30.0
"""The longest timeout, in seconds: an admission waits no longer, and later answers are dropped."""

BUNDLE_CERTIFICATES_MAX: Final = 1024
"""The number of certificates at most; no store of roots has as many."""

NAMESAKES_MAX: Final = 4
"""The number of authorities of one name that are tried, each by a connection of its own. A change
of authority has two, and a change that is begun anew a third."""

T = TypeVar("T")


class InvalidProvider(ValueError):
    """A Provider that cannot be used; the message is Gatekeeper's."""


@dataclass(frozen=True, slots=True)
class DataProvider:
    """A usable Provider; ``authorities`` are certificates in DER."""

    name: str
    url: str
    timeout_seconds: float
    authorities: tuple[bytes, ...]
    """Each once."""
    namesakes: tuple[tuple[bytes, ...], ...] = ()
    """Where some have one name: sets of authorities of different names, to try one after another.

    Of one name OpenSSL takes the first, unless certificates say which key has signed them. Go tries
    all. A bundle has namesakes while one authority replaces the other.
    """
    is_guarded: bool = False
    """Whether authors of its callers need the verb ``use`` on it."""
    warnings: tuple[str, ...] = ()
    """Its probable mistakes."""


class ClientPair(Protocol):
    """The client certificate pair for providers that request one."""

    @property
    def version(self) -> object:
        """A value that differs for each pair."""

    def lend(self, context: SSLContext) -> None:
        """Loads the pair into a context; raises ValueError if it is unusable."""


def read_provider(document: Mapping[str, Any]) -> DataProvider:
    """Reads a Provider; raises :class:`InvalidProvider`."""
    spec = _typed(document.get("spec"), dict, "spec", {})
    address = _typed(spec.get("url"), str, "spec.url", "")
    timeout = _typed(spec.get("timeout"), int, "spec.timeout", 0)
    bundle = _typed(spec.get("caBundle"), str, "spec.caBundle", "")
    name = name_of(document)
    if not name:
        raise InvalidProvider("provider name can not be empty. value ")
    if not address:
        raise InvalidProvider("invalid provider url. value: ")
    if timeout < 0:
        raise InvalidProvider(f"provider timeout should be a positive integer. value: {timeout}")
    try:
        parsed = url.parse(address)
    except ValueError as error:
        raise InvalidProvider(str(error)) from None
    if parsed.scheme != "https":
        raise InvalidProvider("only HTTPS scheme is supported for Providers")
    if not bundle:
        raise InvalidProvider("caBundle should be set for HTTPS scheme")
    named = _authorities(bundle)
    # Gatekeeper accepts both, and fails at each request.
    if not parsed.hostname:
        raise InvalidProvider(f"invalid provider url: no host. value: {address}")
    if not _is_host(parsed.hostname):
        raise InvalidProvider(f"invalid provider url: no name of a host. value: {address}")
    if not parsed.is_port_in_range:
        raise InvalidProvider(f"invalid provider url: no port. value: {address}")
    seconds = float(min(timeout, TIMEOUT_SECONDS_MAX)) or TIMEOUT_SECONDS
    return DataProvider(
        name,
        address,
        seconds,
        tuple(named),
        _without_namesakes(named),
        _is_guarded(document),
        warnings_of_provider(document),
    )


def warnings_of_provider(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the probable mistakes of a Provider."""
    timeout = object_of(document.get("spec")).get("timeout")
    if type(timeout) is not int or timeout <= TIMEOUT_SECONDS_MAX:
        return ()
    longest = f"{TIMEOUT_SECONDS_MAX:.0f} s"
    return (f"its spec.timeout is {timeout} s, and {longest} is the most that counts",)


def _is_guarded(document: Mapping[str, Any]) -> bool:
    metadata = object_of(document.get("metadata"))
    value = _typed(metadata.get("annotations"), dict, "metadata.annotations", {}).get(USE)
    if value not in (None, REQUIRED):
        # Any other value is a mistake: the author's intent would be unknown later.
        raise InvalidProvider(f"annotation {USE}: want {REQUIRED}, got {value!r}")
    return value is not None


def providers_by_name(providers: Iterable[DataProvider]) -> dict[str, DataProvider]:
    """Returns all usable providers, for a policy set."""
    return {provider.name: provider for provider in providers}


def _typed(value: Any, kind: type[T], field: str, absent: T) -> T:
    """Returns the value of a field; files are not validated by the CRD, so its type is checked."""
    if value is None:
        return absent
    if type(value) is not kind:
        raise InvalidProvider(f"{field} must be of type {_KINDS[kind]}")
    return value


_KINDS: Final[dict[type, str]] = {dict: "object", str: "string", int: "integer"}


def _is_host(name: str) -> bool:
    """Returns whether a name can be looked up: its labels have 1 to 63 characters."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def _authorities(bundle: str) -> dict[bytes, str]:
    """Returns a bundle's certificates, each with the name that it certifies.

    The first block must be a certificate; other blocks that are none are ignored.
    """
    # Imported here: importers of the names of kinds need no certificates.
    import ssl  # noqa: PLC0415

    from webhook.rego.builtins.keys import pem  # noqa: PLC0415

    try:
        text = base64.decode(bundle)
    except base64.CorruptInputError as error:
        raise InvalidProvider(f"failed to base64 decode caBundle: {error}") from None
    first, rest = pem.decode(text)
    if first is None:
        raise InvalidProvider("bad caBundle")
    store = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        _subject(first.data, store)
    except ValueError as error:
        raise InvalidProvider(f"failed to parse caBundle: {error}") from None
    authorities = {}
    for block in (first, *pem.blocks(rest)):
        if block.label == "CERTIFICATE" and block.data not in authorities:
            with contextlib.suppress(ValueError):
                authorities[block.data] = _subject(block.data, store)
    if not authorities:
        # Gatekeeper accepts it, and fails at each request.
        raise InvalidProvider("bad caBundle: it holds no block of type CERTIFICATE")
    if len(authorities) > BUNDLE_CERTIFICATES_MAX:
        raise InvalidProvider(f"caBundle holds more than {BUNDLE_CERTIFICATES_MAX} certificates")
    return authorities


def _subject(data: bytes, store: SSLContext) -> str:
    """Returns the name in a certificate, which is in DER; raises ValueError with its fault.

    Go reads some that OpenSSL does not read into its store.
    """
    from webhook.rego.builtins.x509 import certificate  # noqa: PLC0415  # see above
    from webhook.rego.errors import BuiltinError  # noqa: PLC0415

    try:
        subject: str = certificate.parse(data)["RawSubject"]
        store.load_verify_locations(cadata=data)
    except BuiltinError as error:
        raise ValueError(str(error)) from None
    except OSError:  # ssl.SSLError
        raise ValueError("x509: malformed certificate") from None
    return subject


def _without_namesakes(named: Mapping[bytes, str]) -> tuple[tuple[bytes, ...], ...]:
    """Returns sets of authorities of different names; none where no two have one name."""
    by_name: dict[str, list[bytes]] = {}
    for authority, name in named.items():
        by_name.setdefault(name, []).append(authority)
    count = min(max(map(len, by_name.values())), NAMESAKES_MAX)
    if count == 1:
        return ()
    return tuple(
        tuple(namesakes[min(at, len(namesakes) - 1)] for namesakes in by_name.values())
        for at in range(count)
    )
