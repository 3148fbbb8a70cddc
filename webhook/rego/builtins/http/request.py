"""The request object of ``http.send``, checked as OPA checks it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from webhook.golang.strings import quote, utf8
from webhook.rego.builtins.times import parse_duration_ns
from webhook.rego.errors import BuiltinError
from webhook.rego.run import numbers
from webhook.rego.run.text import display, json_text, to_json
from webhook.rego.run.values import Key, RegoSet, Value, key, type_name
from webhook.values import dataclass

_TEXTS: Final = (
    "method",
    "url",
    "raw_body",
    "tls_ca_cert",
    "tls_ca_cert_file",
    "tls_ca_cert_env_variable",
    "tls_client_cert",
    "tls_client_cert_file",
    "tls_client_cert_env_variable",
    "tls_client_key",
    "tls_client_key_file",
    "tls_client_key_env_variable",
    "tls_server_name",
)
_FLAGS: Final = ("enable_redirect", "tls_use_system_certs", "tls_insecure_skip_verify")
_FIELDS: Final = ("cache", "force_cache", "force_json_decode", "force_yaml_decode")
_OTHERS: Final = (
    "body",
    "headers",
    "timeout",
    "force_cache_duration_seconds",
    "raise_error",
    "caching_mode",
    "max_retry_attempts",
    "cache_ignored_headers",
)
_ALLOWED: Final = frozenset((*_TEXTS, *_FLAGS, *_FIELDS, *_OTHERS))
_REQUIRED: Final = ("method", "url")

DEFAULT_TIMEOUT_SECONDS: Final = 5.0
"""OPA's default."""

RETRIES_MAX: Final = 5
"""The most retries; OPA has no limit. Each attempt also keeps to the query's deadline."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A checked request; ``tls`` has the given fields ``tls_…``."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    enable_redirect: bool = False
    retries: int = 0
    tls: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Handling:
    """The handling of the response."""

    cache_seconds: int | None = None
    is_cached: bool = False
    force_json_decode: bool = False
    force_yaml_decode: bool = False


def raises_error(request: Value) -> bool:
    """Returns whether a failure is an error of the call; otherwise it is the result."""
    value = request.get("raise_error", True)
    if not isinstance(value, bool):
        raise BuiltinError("invalid value for raise_error field")
    return value


def check_keys(request: Value) -> None:
    """Raises for unknown keys, and for missing required keys."""
    unknown = [name for name in request if not isinstance(name, str) or name not in _ALLOWED]
    if unknown:
        raise BuiltinError(
            f"operand 1 invalid request parameters(s): {display(RegoSet(unknown))}", kind="type"
        )
    missing = [name for name in _REQUIRED if name not in request]
    if missing:
        raise BuiltinError(
            f"operand 1 missing required request parameters(s): {display(RegoSet(missing))}",
            kind="type",
        )


def cache_key(request: dict[str, Value]) -> Key:
    """Returns the key of requests that may share one response."""
    shown = {name: value for name, value in request.items() if name != "cache_ignored_headers"}
    ignored = request.get("cache_ignored_headers")
    if ignored is not None and "headers" in request:
        if not isinstance(ignored, list) or not all(isinstance(name, str) for name in ignored):
            raise BuiltinError("cache_ignored_headers must be an array of strings")
        headers = request["headers"]
        shown["headers"] = {name: headers[name] for name in headers if name not in ignored}
    return key(shown)


def handling(request: dict[str, Value]) -> Handling:
    """Returns how the response is decoded and how long it is cached."""
    flags = {name: request.get(name, False) for name in _FIELDS}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise BuiltinError(f'invalid value for "{name}" field')
    seconds = None
    if flags["force_cache"]:
        if "force_cache_duration_seconds" not in request:
            raise BuiltinError(
                "'force_cache' set but 'force_cache_duration_seconds' parameter is missing"
            )
        seconds = request["force_cache_duration_seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds < 1 << 31:
            raise BuiltinError(f"strconv.ParseInt: parsing {display(seconds)}: invalid syntax")
    return Handling(
        seconds,
        flags["cache"] or flags["force_cache"],
        flags["force_json_decode"],
        flags["force_yaml_decode"],
    )


def parse_request(request: dict[str, Value]) -> HttpRequest:
    """The request that the object describes; raises :class:`BuiltinError` with OPA's words."""
    for name in _TEXTS:
        if name in request and not isinstance(request[name], str):
            raise BuiltinError(f'"{name}" must be a string')
    for name in _FLAGS:
        if not isinstance(request.get(name, False), bool):
            text = quote(display(request[name]))
            raise BuiltinError(f"strconv.ParseBool: parsing {text}: invalid syntax")
    tls = {name: value for name, value in request.items() if name.startswith("tls_")}
    return HttpRequest(
        method=request["method"].strip('"').upper(),
        url=request["url"].strip('"'),
        headers=_headers(request.get("headers", {})),
        body=_body(request),
        timeout_seconds=_timeout(request),
        enable_redirect=request.get("enable_redirect", False),
        retries=_retries(request),
        tls=tls,
    )


def _headers(given: Value) -> dict[str, str]:
    if type_name(given) != "object":
        raise BuiltinError("invalid type for headers key")
    headers = {}
    for name, value in to_json(given).items():
        if not isinstance(value, str):
            raise BuiltinError(f"invalid type for headers value {quote(display(value))}")
        headers["-".join(part.capitalize() for part in name.split("-"))] = value
    return headers


def _body(request: dict[str, Value]) -> bytes:
    if "raw_body" in request:
        return utf8(request["raw_body"].strip('"'))
    return utf8(json_text(request["body"])) if "body" in request else b""


def _timeout(request: dict[str, Value]) -> float:
    """Returns the timeout in seconds; a number, or a text without unit, counts nanoseconds."""
    if "timeout" not in request:
        return DEFAULT_TIMEOUT_SECONDS
    given = request["timeout"]
    if isinstance(given, str):
        if given.lstrip("+-").isdecimal():
            return int(given) / 1e9
        try:
            return float(parse_duration_ns(given)) / 1e9
        except BuiltinError as error:
            message = f"invalid timeout value {quote(given)}: {error.message}"
            raise BuiltinError(message) from None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BuiltinError(
            f"operand 1 'timeout' must be one of {{string, number}} but got {type_name(given)}",
            kind="type",
        )
    whole = numbers.as_int(given)
    if whole is None:
        message = f"invalid timeout number value {display(given)}, must be int64"
        raise BuiltinError(message)
    return float(whole) / 1e9


def _retries(request: dict[str, Value]) -> int:
    given = request.get("max_retry_attempts", 0)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        message = f'invalid value {display(given)} for field "max_retry_attempts"'
        raise BuiltinError(message)
    return min(given, RETRIES_MAX)
