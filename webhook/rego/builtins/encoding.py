"""Built-ins that encode strings: base64, hexadecimal, and URLs.

Documented in OPA's reference under "Encoding" and "URI"; behaviour from
v1/topdown/encoding.go and uri.go.
"""

from __future__ import annotations

import base64
import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from webhook.golang.base64 import encode_url
from webhook.golang.strings import from_utf8, quote, utf8
from webhook.rego.builtins import operands
from webhook.rego.builtins.operands import url_of
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.text import json_items
from webhook.rego.run.values import RegoSet, Value, ordered
from webhook.rego.types import BOOLEAN, STRING, any_of, array_of, object_of, set_of

CHARACTERS_A_STEP: Final = 16


def _charge(context: Context, text: str) -> None:
    context.charge(1 + len(text) // CHARACTERS_A_STEP)


# --- base64 ----------------------------------------------------------------------------------


@builtin("base64.encode", STRING, result=STRING, context=True)
def base64_encode(context: Context, x: str) -> str:
    """Returns the bytes in base64."""
    _charge(context, x)
    return base64.b64encode(utf8(x)).decode("ascii")


@builtin("base64.decode", STRING, result=STRING, context=True)
def base64_decode(context: Context, x: str) -> str:
    """Returns the string of base64 text."""
    _charge(context, x)
    return from_utf8(operands.decode_base64(x))


@builtin("base64.is_valid", STRING, result=BOOLEAN, context=True, check=False)
def base64_is_valid(context: Context, x: Value) -> bool:
    """Returns whether the string is base64."""
    if type(x) is not str:
        return False
    _charge(context, x)
    try:
        operands.decode_base64(x)
    except BuiltinError:
        return False
    return True


@builtin("base64url.encode", STRING, result=STRING, context=True)
def base64url_encode(context: Context, x: str) -> str:
    """Returns the bytes in base64url, padded."""
    _charge(context, x)
    return base64.urlsafe_b64encode(utf8(x)).decode("ascii")


@builtin("base64url.encode_no_pad", STRING, result=STRING, context=True)
def base64url_encode_no_pad(context: Context, x: str) -> str:
    """Returns the bytes in base64url without padding."""
    _charge(context, x)
    return encode_url(utf8(x))


@builtin("base64url.decode", STRING, result=STRING, context=True)
def base64url_decode(context: Context, x: str) -> str:
    """Returns the string of base64url text, padded or not."""
    _charge(context, x)
    return from_utf8(operands.decode_base64url(x))


# --- hexadecimal -----------------------------------------------------------------------------


@builtin("hex.encode", STRING, result=STRING, context=True)
def hex_encode(context: Context, x: str) -> str:
    """Returns the bytes in hexadecimal."""
    _charge(context, x)
    return utf8(x).hex()


@builtin("hex.decode", STRING, result=STRING, context=True)
def hex_decode(context: Context, x: str) -> str:
    """Returns the string of hexadecimal digits."""
    _charge(context, x)
    raw = utf8(x)
    wrong = re.search(rb"[^0-9A-Fa-f]", raw)
    # Go looks at pairs: an odd digit at the end is only seen after all before it.
    if wrong is not None:
        raise BuiltinError(f"encoding/hex: invalid byte: {_rune(raw[wrong.start()])}")
    if len(raw) % 2:
        raise BuiltinError("encoding/hex: odd length hex string")
    return from_utf8(bytes.fromhex(x))


def _rune(byte: int) -> str:
    """Returns a byte as Go's ``%#U`` shows it."""
    shown = f" '{chr(byte)}'" if chr(byte).isprintable() else ""
    return f"U+{byte:04X}{shown}"


# --- queries of URLs -------------------------------------------------------------------------

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _query_escape(text: str) -> str:
    return quote_from_bytes(utf8(text), safe=" ").replace(" ", "+")


def _query_unescape(text: str) -> str:
    wrong = _BAD_ESCAPE.search(text)
    if wrong is not None:
        part = text[wrong.start() : wrong.start() + 3]
        raise BuiltinError(f"invalid URL escape {quote(part)}")
    return from_utf8(unquote_to_bytes(utf8(text.replace("+", " "))))


@builtin("urlquery.encode", STRING, result=STRING, context=True)
def urlquery_encode(context: Context, x: str) -> str:
    """Returns the string escaped for a URL's query."""
    _charge(context, x)
    return _query_escape(x)


@builtin("urlquery.decode", STRING, result=STRING, context=True)
def urlquery_decode(context: Context, x: str) -> str:
    """Returns the string of an escaped URL query."""
    _charge(context, x)
    return _query_unescape(x)


_VALUES = any_of(STRING, array_of(STRING), set_of(STRING))


@builtin("urlquery.encode_object", object_of(STRING, _VALUES), result=STRING, context=True)
def urlquery_encode_object(context: Context, object_: Value) -> str:
    """Returns a query with the object's properties in order."""
    wrong = BuiltinError(
        "operand 1 values must be string, array[string], or set[string]", kind="type"
    )
    pairs = []
    for name, value in json_items(object_):
        items = value if type(value) is list else [value]
        if type(value) is RegoSet:
            items = ordered(value)
        for item in items:
            if type(item) is not str:
                raise wrong
            _charge(context, item)
            pairs.append(f"{_query_escape(name)}={_query_escape(item)}")
    return "&".join(pairs)


MAX_PARAMETERS: Final = 10_000
"""Go's limit for the parameters of a query (net/url, urlParamsWithinMax)."""


@builtin("urlquery.decode_object", STRING, result=object_of(STRING, array_of(STRING)), context=True)
def urlquery_decode_object(context: Context, x: str) -> dict[str, list[str]]:
    """Returns a query's parameters, each with all its values."""
    _charge(context, x)
    if x.count("&") >= MAX_PARAMETERS:
        raise BuiltinError("number of URL query parameters exceeded limit")
    values: dict[str, list[str]] = {}
    first_error: BuiltinError | None = None
    for part in x.split("&"):
        if not part:
            continue
        try:
            name, value = _parameter(part)
        except BuiltinError as error:
            # A semicolon is named even after another fault, as Go does.
            if first_error is None or ";" in part:
                first_error = error
        else:
            values.setdefault(name, []).append(value)
    if first_error is not None:
        raise first_error
    return values


def _parameter(part: str) -> tuple[str, str]:
    if ";" in part:
        raise BuiltinError("invalid semicolon separator in query")
    name, _, value = part.partition("=")
    return _query_unescape(name), _query_unescape(value)


# --- URIs ------------------------------------------------------------------------------------


@builtin("uri.is_valid", STRING, result=BOOLEAN, check=False)
def uri_is_valid(x: Value) -> bool:
    """Returns whether the string is a URI, and not empty."""
    if type(x) is not str or not x:
        return False
    try:
        url_of(x)
    except BuiltinError:
        return False
    return True


@builtin("uri.parse", STRING, result=object_of(STRING, STRING))
def uri_parse(x: str) -> dict[str, str]:
    """Returns the parts of a URI that are not empty."""
    url = url_of(x)
    parts = {
        "scheme": url.scheme,
        "hostname": url.hostname,
        "port": url.port,
        "path": url.path,
        "raw_path": url.path and (url.raw_path or url.path),
        "raw_query": url.raw_query,
        "fragment": url.fragment,
    }
    return {name: part for name, part in parts.items() if part}
