"""``POST /v1/validate-policy``: what admission would say of policies, and what they would change.

For pipelines that can reach a replica. Nothing is kept. The body is a template,
a constraint, a list of them, or YAML documents. Of objects in the cluster the
answer has counts alone: whoever reaches this port need not have the right to
read them. ``waddle check --cluster`` shows more, to those who have.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from webhook import metrics
from webhook.api.documents import InvalidDocument, read_documents
from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.policies.validation import is_policy
from webhook.server.exchange import JSON_ALONE
from webhook.server.status import failure

if TYPE_CHECKING:
    from concurrent.futures import Future

    from webhook.log import Logger
    from webhook.metrics import Registry
    from webhook.server.exchange import Receive, Send

ANSWER_SECONDS: Final = 20.0
"""Compiling, trying and comparing are bounded apart; this is for what waits before it."""

POLICIES_MAX: Final = 200
WAITING_MAX: Final = 2
"""Calls at a time: one is worked at, one waits. Templates being admitted use the same thread."""


class PolicyValidator(Protocol):
    """Validates policies on top of those in force."""

    def validate(self, documents: list[dict[str, Any]]) -> Future[dict[str, Any]]:
        """The answer as JSON; called by any thread."""


class RefusedError(Exception):
    """A call without an answer: the HTTP code and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ValidationEndpoint:
    """Takes policies and answers what is wrong with them, as plain ASGI."""

    def __init__(
        self, validator: PolicyValidator, registry: Registry, log: Logger, *, body_max: int
    ) -> None:
        self._validator = validator
        self._registry = registry
        self._log = log
        self._body_max = body_max
        self._waiting = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one call."""
        try:
            body = await self._body(receive)
            code, content = 200, await self._answer(scope, body)
        except RefusedError as refusal:
            code, content = refusal.code, failure(refusal.code, str(refusal))
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._registry.count(metrics.REFUSED, "bug")
            self._log.fault("bug while validating policies", error)
            code, content = 500, failure(500, "internal error: see the webhook's log")
        await send({"type": "http.response.start", "status": code, "headers": JSON_ALONE})
        await send({"type": "http.response.body", "body": content})

    async def _body(self, receive: Receive) -> bytes:
        body: bytes = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._body_max:
                raise RefusedError(413, f"body larger than {self._body_max} bytes")
            if not message.get("more_body"):
                return body

    async def _answer(self, scope: dict[str, Any], body: bytes) -> bytes:
        if scope["method"] != "POST":
            raise RefusedError(405, f"method {scope['method']} is not allowed: POST policies")
        documents = read_policies(body)
        if self._waiting >= WAITING_MAX:
            raise RefusedError(429, "other policies are being validated: ask again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                future = self._validator.validate(documents)
                content: bytes = encode(await asyncio.wrap_future(future))
                return content
        except TimeoutError:
            raise RefusedError(504, "not validated in time") from None
        finally:
            self._waiting -= 1


def read_policies(body: bytes) -> list[dict[str, Any]]:
    """The templates and constraints of a body."""
    try:
        found: list[Any] = [orjson.loads(body)]
    except orjson.JSONDecodeError:
        try:
            text = body.decode()
            found = [document.value for document in read_documents(text, "kubernetes")]
        except (InvalidDocument, UnicodeDecodeError) as error:
            raise RefusedError(400, f"neither JSON nor YAML: {error}") from None
    documents = [item for value in found for item in _items(value)]
    if not documents:
        raise RefusedError(400, "no template and no constraint in the body")
    if len(documents) > POLICIES_MAX:
        raise RefusedError(400, f"{len(documents)} policies: {POLICIES_MAX} at most in a call")
    for number, item in enumerate(documents):
        if type(item) is not dict or not is_policy(item):
            raise RefusedError(
                400, f"item {number} is neither a ConstraintTemplate nor a constraint"
            )
        if not name_of(item):
            raise RefusedError(400, f"item {number} ({gvk_of(item).kind}) has no metadata.name")
    return documents


def _items(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    if type(value) is dict and type(value.get("items")) is list:
        items: list[Any] = value["items"]
        return items
    return [value]
