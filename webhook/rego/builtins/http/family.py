"""``http.send`` (OPA reference, "HTTP"): off unless the caller passes a client.

``context.services["http"]`` is that client, :class:`~webhook.rego.builtins.http.client.HttpClient`
or any object with its methods. Equal requests of one query are sent once. Responses are cached
between queries if the request says so: for ``force_cache_duration_seconds``, or for the response's
``max-age``.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

from webhook.golang.strings import from_utf8
from webhook.rego.builtins import go_json, yaml_documents
from webhook.rego.builtins.http.client import HttpResponse, NetworkError
from webhook.rego.builtins.http.request import (
    Handling,
    HttpRequest,
    cache_key,
    check_keys,
    handling,
    parse_request,
    raises_error,
)
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import Key, RegoObject, Value
from webhook.rego.types import ANY, STRING, object_of

_CACHE: Final = "http.send"
_JSON: Final = re.compile(r"application/(?:json|[^;]*\+json)\s*(?:;|$)")
_YAML: Final = re.compile(r"application/(?:x-)?yaml\s*(?:;|$)")
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d+)")
# The codes that may be kept (RFC 7231, 6.1), as OPA lists them.
_CACHEABLE: Final = frozenset((200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501))


class HttpSender(Protocol):
    """Sends requests for a caller."""

    def send(self, request: HttpRequest, deadline: float | None) -> HttpResponse:
        """Returns the response; raises :class:`NetworkError`."""

    def cached(self, name: Key) -> HttpResponse | None:
        """Returns a response cached by an earlier query."""

    def keep(self, name: Key, response: HttpResponse, seconds: float) -> None:
        """Caches a response for later queries."""


@builtin(
    "http.send",
    object_of(STRING, ANY),
    result=object_of(ANY, ANY),
    context=True,
    deterministic=False,
)
def http_send(context: Context, request: Value) -> Value:
    """Returns the response to an HTTP request."""
    client: HttpSender | None = context.services.get("http")
    raising = raises_error(request)
    if client is None:
        check_keys(request)
        raise BuiltinError("http.send is not enabled")
    try:
        if isinstance(request, RegoObject):
            request = dict(request.items())
        check_keys(request)
        return _response(context, client, request)
    except NetworkError as error:
        if raising:
            raise BuiltinError(str(error)) from None
        return _failure("eval_http_send_network_error", str(error))
    except BuiltinError as error:
        if raising:
            raise
        code = "eval_type_error" if error.kind == "type" else "eval_builtin_error"
        return _failure("eval_http_send_internal_error", f"{code}: http.send: {error.message}")


def _failure(code: str, message: str) -> dict[str, Value]:
    return {"status_code": 0, "error": {"code": code, "message": message}}


def _response(context: Context, client: HttpSender, request: dict[str, Value]) -> Value:
    name = cache_key(request)
    known: dict[Key, Any] = context.cache.setdefault(_CACHE, {})
    if name in known:
        if isinstance(known[name], Exception):
            raise known[name]
        return known[name]
    how = handling(request)
    try:
        response = _fetched(context, client, request, name, how)
    except (NetworkError, BuiltinError) as error:
        known[name] = error
        raise
    result = _result(context, response, how)
    if response.status_code in _CACHEABLE:
        known[name] = result
    return result


def _fetched(
    context: Context, client: HttpSender, request: dict[str, Value], name: Key, how: Handling
) -> HttpResponse:
    if how.is_cached and (kept := client.cached(name)) is not None:
        return kept
    response = client.send(parse_request(request), getattr(context, "deadline", None))
    if how.is_cached and response.status_code in _CACHEABLE:
        seconds = how.cache_seconds if how.cache_seconds is not None else _max_age(response)
        if seconds:
            client.keep(name, response, seconds)
    return response


def _max_age(response: HttpResponse) -> int:
    control = ",".join(response.headers.get("cache-control", ())).lower()
    matched = _MAX_AGE.search(control)
    if matched is None or "no-store" in control or "no-cache" in control:
        return 0
    return int(matched[1])


def _result(context: Context, response: HttpResponse, how: Handling) -> dict[str, Value]:
    return {
        "status": f"{response.status_code} {response.reason}".strip(),
        "status_code": response.status_code,
        "body": _body(context, response, how),
        "raw_body": from_utf8(response.body),
        "headers": dict(response.headers),
    }


def _body(context: Context, response: HttpResponse, how: Handling) -> Value:
    """Returns the decoded body; null if it is of another kind or invalid."""
    kind = (response.headers.get("content-type") or [""])[0].lower()
    text = from_utf8(response.body)
    try:
        if how.force_json_decode or _JSON.match(kind):
            return go_json.decode(text)
        if how.force_yaml_decode or _YAML.match(kind):
            return yaml_documents.unmarshal(context, text)
    except BuiltinError:
        pass
    return None
