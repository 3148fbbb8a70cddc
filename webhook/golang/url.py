"""URLs parsed as Go's ``net/url`` parses them, with its fields and its faults.

``urllib.parse`` accepts URLs that Go refuses and splits them differently, and OPA's answers show
Go's fields.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from webhook.golang.strings import quote
from webhook.values import dataclass

_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_USERINFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(:[0-9]*)?")
_PORT_MAX: Final = 65535
_PORT_DIGITS: Final = len(str(_PORT_MAX))
_UNRESERVED: Final = "A-Za-z0-9\\-_.~"
# The characters that stay unescaped in each component (net/url, gen_encoding_table.go).
_HOST_BYTE: Final = re.compile(f"[{_UNRESERVED}!$&'()*+,;=:\\[\\]<>\"]")
_ESCAPED: Final = {
    "path": re.compile(f"[^{_UNRESERVED}$&+,/:;=@]"),
    "fragment": re.compile(f"[^{_UNRESERVED}$&+,/:;=?@!()*]"),
    "user": re.compile(f"[^{_UNRESERVED}$&+,;=]"),
    "host": re.compile(f"[^{_UNRESERVED}!$&'()*+,;=:\\[\\]<>\"]"),
}
_PLAIN_PATH: Final = re.compile(f"(?:[{_UNRESERVED}$&+,/:;=@!'()*\\[\\]]|%)*")
_PLAIN_FRAGMENT: Final = re.compile(f"(?:[{_UNRESERVED}$&+,/:;=?@!'()*\\[\\]]|%)*")


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL; ``raw_path`` and ``raw_fragment`` are set only for unusual escaping."""

    scheme: str = ""
    opaque: str = ""
    user: tuple[str, str | None] | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    omit_host: bool = False
    force_query: bool = False
    raw_query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        return _split_host(self.host)[0]

    @property
    def port(self) -> str:
        """The digits of the port, or an empty text."""
        return _split_host(self.host)[1]

    @property
    def is_port_in_range(self) -> bool:
        """Whether Go can dial the port. Resolvers take a larger one for another port."""
        digits = self.port.lstrip("0")
        return len(digits) <= _PORT_DIGITS and int(digits or 0) <= _PORT_MAX

    @property
    def escaped_path(self) -> str:
        """The path with percent escapes, as in the text of a URL."""
        if self.raw_path and _PLAIN_PATH.fullmatch(self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path, "path")

    def json(self) -> dict[str, Any]:
        """Returns Go's JSON form of ``url.URL``, which has no user name."""
        return {
            "Scheme": self.scheme,
            "Opaque": self.opaque,
            "User": None if self.user is None else {},
            "Host": self.host,
            "Path": self.path,
            "RawPath": self.raw_path,
            "OmitHost": self.omit_host,
            "ForceQuery": self.force_query,
            "RawQuery": self.raw_query,
            "Fragment": self.fragment,
            "RawFragment": self.raw_fragment,
        }

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        text += self.opaque or self._authority_and_path(bool(text))
        if self.force_query or self.raw_query:
            text += f"?{self.raw_query}"
        if self.fragment:
            plain = self.raw_fragment and _PLAIN_FRAGMENT.fullmatch(self.raw_fragment)
            text += "#" + (self.raw_fragment if plain else _escape(self.fragment, "fragment"))
        return text

    def _authority_and_path(self, has_scheme: bool) -> str:
        text, path = "", self.escaped_path
        if has_scheme or self.host or self.user is not None:
            omit = self.omit_host and not self.host and self.user is None
            if not omit and (self.host or self.path or self.user is not None):
                text = "//" + self._userinfo() + _escape(self.host, "host")
            if path and not path.startswith("/") and self.host:
                text += "/"
        elif ":" in path.partition("/")[0]:
            text = "./"
        return text + path

    def _userinfo(self) -> str:
        if self.user is None:
            return ""
        name, password = self.user
        secret = "" if password is None else f":{_escape(password, 'user')}"
        return f"{_escape(name, 'user')}{secret}@"


def parse(text: str) -> Url:
    """Returns the parts of ``text``; raises ValueError with Go's message."""
    before, _, fragment = text.partition("#")
    try:
        parts = _parse(before)
    except ValueError as error:
        raise ValueError(f"parse {_quoted(before)}: {error}") from None
    try:
        plain = _unescape(fragment)
    except ValueError as error:
        raise ValueError(f"parse {_quoted(text)}: {error}") from None
    parts["fragment"] = plain
    parts["raw_fragment"] = "" if _escape(plain, "fragment") == fragment else fragment
    return Url(**parts)


def fault_of_request_uri(text: str) -> str | None:
    """Returns why Go's ``ParseRequestURI`` rejects a text; None if it is valid."""
    if not text:
        return 'parse "": empty url'
    is_path, is_any = text[0] == "/", text == "*"
    if not (is_path or is_any or _CONTROL.search(text) or _SCHEME.match(text)):
        return f"parse {quote(text)}: invalid URI for request"
    # A fragment is none there: its mark is a character as any other. Nor is there a host without a
    # scheme.
    head = text.replace("#", "%23")
    head = f"/{head.lstrip('/')}" if is_path else head
    try:
        url = parse(head)
    except ValueError as error:
        return str(error).replace(quote(head), quote(text))
    if not (url.scheme or is_path or is_any):
        return f"parse {quote(text)}: invalid URI for request"
    return None


def _parse(text: str) -> dict[str, Any]:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if text == "*":
        return {"path": "*"}
    scheme, rest = _split_scheme(text)
    parts: dict[str, Any] = {"scheme": scheme}
    if rest.endswith("?") and rest.count("?") == 1:
        parts["force_query"] = True
        rest = rest[:-1]
    else:
        rest, _, parts["raw_query"] = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return parts | {"opaque": rest}
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        parts["user"], parts["host"] = _authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        parts["omit_host"] = True
    parts["path"] = _unescape(rest)
    parts["raw_path"] = "" if _escape(parts["path"], "path") == rest else rest
    return parts


def _split_scheme(text: str) -> tuple[str, str]:
    matched = _SCHEME.match(text)
    if matched is None:
        return "", text
    if matched[1] is None:
        raise ValueError("missing protocol scheme")
    return matched[1].lower(), text[matched.end() :]


def _authority(scheme: str, text: str) -> tuple[tuple[str, str | None] | None, str]:
    userinfo, at, host = text.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise ValueError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    return (_unescape(name), _unescape(password) if colon else None), host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _ip_literal(host)
    colon = host.find(":")
    if colon >= 0:
        if scheme not in ("http", "https"):
            colon = host.rfind(":")
        _check_port(host[colon:])
    return _unescape_host(host)


def _ip_literal(host: str) -> str:
    closing = host.rfind("]")
    if closing < 0:
        raise ValueError("missing ']' in host")
    port = host[closing + 1 :]
    _check_port(port)
    address, zone_mark, zone = host[1:closing].partition("%25")
    plain = _unescape_host(address)
    if zone_mark:
        plain += "%" + _unescape(zone)
    try:
        parsed = ipaddress.ip_address(plain)
    except ValueError:
        raise ValueError(
            f"invalid host: ParseAddr({_quoted(plain)}): unable to parse IP",
        ) from None
    if parsed.version == 4:
        raise ValueError("invalid IP-literal")
    return f"[{plain}]{port}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {_quoted(port)} after host")


def _unescape_host(text: str) -> str:
    for matched in re.finditer(r"%[0-9A-Fa-f]{2}|%.{0,2}|[\x00-\x7f]", text, re.DOTALL):
        part = matched[0]
        if part.startswith("%"):
            # Only bytes that are not ASCII may be escaped in a host (RFC 3986, 3.2.2).
            if len(part) < 3 or _BAD_ESCAPE.match(part) or (part[1] < "8" and part != "%25"):
                raise ValueError(f"invalid URL escape {_quoted(part)}")
        elif not _HOST_BYTE.match(part):
            raise ValueError(f"invalid character {_quoted(part)} in host name")
    return _unescape(text)


def _unescape(text: str) -> str:
    if bad := _BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {_quoted(bad[0])}")
    return unquote_to_bytes(text).decode("utf-8", "replace") if "%" in text else text


def _escape(text: str, component: str) -> str:
    return _ESCAPED[component].sub(_percent, text)


def _percent(matched: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in matched[0].encode("utf-8", "surrogateescape"))


def _split_host(host: str) -> tuple[str, str]:
    if host.startswith("["):
        address, _, port = host[1:].rpartition("]")
        return address, port.removeprefix(":")
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and (not port or port.isdigit()) else (host, "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
