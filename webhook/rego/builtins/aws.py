"""``providers.aws.sign_req``: AWS Signature Version 4 (OPA reference, "AWS").

A signature is made in four steps, named as AWS names them: the canonical request, the string to
sign, the signing key, the Authorization header.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from typing import Any, Final

from webhook.golang.strings import utf8
from webhook.rego.builtins.crypto import BYTES_A_STEP
from webhook.rego.builtins.http.request import check_keys
from webhook.rego.builtins.operands import url_of
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run import numbers
from webhook.rego.run.text import display, json_text
from webhook.rego.run.values import RegoSet, Value
from webhook.rego.types import NAMED, NUMBER, OBJECT

_REQUIRED: Final = ("aws_access_key", "aws_region", "aws_secret_access_key", "aws_service")
_UNSIGNED_HEADERS: Final = frozenset(("authorization", "user-agent", "x-amzn-trace-id"))
"""Proxies change these on the way, so no signature covers them."""


@builtin(
    "providers.aws.sign_req",
    NAMED,
    NAMED,
    NUMBER,
    result=OBJECT,
    context=True,
)
def aws_sign_req(context: Context, request: Value, config: Value, time_ns: float) -> Value:
    """Returns a request of ``http.send`` with the headers of its signature added."""
    _check_config(config)
    nanoseconds = numbers.as_index(time_ns)
    if nanoseconds is None:
        raise BuiltinError(
            "operand 3 could not convert time_ns value into a unix timestamp", kind="type"
        )
    check_keys(request)
    headers = request.get("headers", {})
    if not isinstance(headers, dict):
        wrong_operand(0, headers, "object")
    wrong = [name for name in ("method", "url") if not isinstance(request[name], str)]
    if wrong:
        raise BuiltinError(
            "operand 1 invalid values for required request parameters(s): "
            f"{display(RegoSet(wrong))}",
            kind="type",
        )
    unsigned_body = config.get("disable_payload_signing", False)
    if not isinstance(unsigned_body, bool):
        raise BuiltinError(
            "operand 2 invalid value for 'disable_payload_signing' in AWS config", kind="type"
        )
    given = {name: value if isinstance(value, str) else "" for name, value in headers.items()}
    body = _body(request)
    context.charge(len(body) // BYTES_A_STEP)
    digest = "UNSIGNED-PAYLOAD" if unsigned_body else hashlib.sha256(body).hexdigest()
    signed = _signed(given, request, config, nanoseconds, digest)
    return request | {"headers": given | signed}


def _check_config(config: Value) -> None:
    """Raises :class:`BuiltinError` for a configuration that lacks a parameter or has a wrong type."""
    missing = [name for name in _REQUIRED if name not in config]
    if missing:
        raise BuiltinError(
            f"operand 2 missing required AWS config parameters(s): {display(RegoSet(missing))}",
            kind="type",
        )
    wrong = [name for name in _REQUIRED if not isinstance(config[name], str)]
    if wrong:
        raise BuiltinError(
            "operand 2 invalid values for required AWS config parameters(s): "
            f"{display(RegoSet(wrong))}",
            kind="type",
        )


def _body(request: dict[str, Any]) -> bytes:
    """Returns the bytes that are sent: ``raw_body`` as it is, ``body`` as JSON."""
    if "raw_body" in request:
        raw = request["raw_body"]
        return utf8(raw) if isinstance(raw, str) else b""
    return utf8(json_text(request["body"])) if "body" in request else b""


def _signed(
    headers: dict[str, str],
    request: dict[str, Any],
    config: dict[str, Any],
    nanoseconds: int,
    digest: str,
) -> dict[str, str]:
    """Returns the headers that a signature adds; ``digest`` is that of the body."""
    url = url_of(request["url"])
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=nanoseconds // 10**9)
    # strftime's %Y does not pad years before 1000 everywhere.
    date = f"{moment.year:04}{moment:%m%d}"
    stamp = f"{date}T{moment:%H%M%S}Z"
    service, region = config["aws_service"], config["aws_region"]
    added = {"host": url.host, "x-amz-date": stamp}
    if service in ("s3", "glacier"):
        added["x-amz-content-sha256"] = digest
    token = config.get("aws_session_token")
    if isinstance(token, str) and token:
        added["x-amz-security-token"] = token
    # 1. The canonical request
    to_sign = dict(added)
    for name, value in headers.items():
        if name.lower() not in _UNSIGNED_HEADERS:
            to_sign[name.lower()] = value
    names = ";".join(sorted(to_sign))
    lines = "".join(f"{name}:{to_sign[name]}\n" for name in sorted(to_sign))
    canonical_request = (
        f"{request['method']}\n{url.escaped_path}\n{url.raw_query}\n{lines}\n{names}\n{digest}"
    )
    # 2. The string to sign
    scope = f"{date}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(utf8(canonical_request)).hexdigest()
    string_to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"
    # 3. The signing key
    key = utf8("AWS4" + config["aws_secret_access_key"])
    for part in (date, region, service, "aws4_request"):
        key = _mac(key, part)
    # 4. The header
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={config['aws_access_key']}/{scope},"
        f"SignedHeaders={names},Signature={_mac(key, string_to_sign).hex()}"
    )
    return {"Authorization": authorization, **added}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, utf8(text), "sha256")
