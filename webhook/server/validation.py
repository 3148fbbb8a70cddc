"""``POST /v1/validate-policy``: the result of admission for policies, and their effect.

For pipelines that can reach a replica, where it is enabled. Nothing is stored. The body is a
template, a constraint, a list of them, or YAML documents. The caller is authenticated first. The
effect, in counts, is shown only to callers who may read every object that policies can: a template
can be written to count arbitrary data, such as a secret letter by letter. ``waddle check
--cluster`` shows more, with the caller's own rights.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.metrics.admission import REFUSED
from webhook.server.http.exchange import JSON_ALONE
from webhook.server.http.responder import JSON, HttpHeader, failure
from webhook.values import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future

    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.http.exchange import Receive, Send

PATH: Final = "/v1/validate-policy"

ANSWER_SECONDS: Final = 20.0
"""The time limit of one call; its work ends then. A library of 34 templates takes a second or two.
"""

POLICIES_MAX: Final = 200
BODY_BYTES_MAX: Final = 2 * 1024 * 1024
"""The size limit of a body. A policy is no larger than etcd's limit of 1.5 MiB."""

WAITING_MAX: Final = 2
"""The limit of concurrent calls: of authenticated callers, and of those being authenticated, each.
"""

TOKEN_BYTES_MAX: Final = 8 * 1024


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a caller: 200, or the code and message of a refusal."""

    code: int
    message: str = ""
    reads: bool = False
    """Whether they may read every object that policies can."""


class Callers(Protocol):
    """Checks which callers may validate policies."""

    def ask(self, token: str) -> Future[Access]:
        """Returns the access of a caller with this bearer token, or empty; called by any thread."""


class PolicyValidator(Protocol):
    """Validates policies on top of those in force."""

    def validate(self, body: bytes, *, with_effect: bool) -> Future[dict[str, Any]]:
        """Returns the answer as JSON for a body for :func:`read_policies`; called by any thread.

        This method and the future raise :class:`PoliciesRefused`. The body is not parsed on the
        caller's thread: two MiB of YAML take seconds.
        """


WITHHELD: Final = "shown only to users with the right to list every synced kind in all namespaces"


class PoliciesRefused(Exception):
    """A call without an answer: the HTTP code and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ValidationEndpoint:
    """Validates policies and answers their problems, as plain ASGI."""

    def __init__(
        self, validator: PolicyValidator, callers: Callers, registry: Registry, log: Logger
    ) -> None:
        self._validator = validator
        self._callers = callers
        self._registry = registry
        self._log = log
        self._asking = 0
        self._waiting = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answers one call."""
        headers: tuple[HttpHeader, ...] = JSON_ALONE
        try:
            access = await self._access(scope)
            body = await self._body(receive)
            code, content = 200, await self._answer(body, reads=access.reads)
        except PoliciesRefused as refusal:
            code, content = refusal.code, failure(refusal.code, str(refusal))
            if code == 401:
                headers = (JSON, (b"www-authenticate", b"Bearer"))
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._registry.count(REFUSED, "bug")
            self._log.fault("bug while validating policies", error)
            code, content = 500, failure(500, "internal error: see the webhook's log")
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _access(self, scope: dict[str, Any]) -> Access:
        """Returns the access of the caller; raises :class:`PoliciesRefused`."""
        if scope["method"] != "POST":
            raise PoliciesRefused(405, f"method {scope['method']} is not allowed: POST policies")
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        shown = token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
        if len(shown) > TOKEN_BYTES_MAX:
            raise PoliciesRefused(401, "the bearer token is not valid")
        if self._asking >= WAITING_MAX:
            raise PoliciesRefused(
                429, "the API server is busy with other callers' rights: try again in a moment"
            )
        self._asking += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                access = await asyncio.wrap_future(self._callers.ask(shown))
        except TimeoutError:
            raise PoliciesRefused(504, "the API server did not say in time who calls") from None
        finally:
            self._asking -= 1
        if access.code != 200:
            raise PoliciesRefused(access.code, access.message)
        return access

    async def _body(self, receive: Receive) -> bytes:
        body: bytes = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > BODY_BYTES_MAX:
                raise PoliciesRefused(413, f"body larger than {BODY_BYTES_MAX} bytes")
            if not message.get("more_body"):
                return body

    async def _answer(self, body: bytes, *, reads: bool) -> bytes:
        if self._waiting >= WAITING_MAX:
            raise PoliciesRefused(429, "other policies are being validated: try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                future = self._validator.validate(body, with_effect=reads)
                answered = await asyncio.wrap_future(future)
            if not reads:
                answered = {**answered, "effect": None, "effectWithheld": WITHHELD}
            return encode(answered)
        except TimeoutError:
            raise PoliciesRefused(504, "the validation exceeded its time limit") from None
        finally:
            self._waiting -= 1


def read_policies(body: bytes) -> list[dict[str, Any]]:
    """Returns the templates and constraints of a body; raises :class:`PoliciesRefused`."""
    # Imported here: few replicas validate for pipelines. YAML and the advice take 17 ms of a start.
    from webhook.api.documents import InvalidDocument, read_documents  # noqa: PLC0415
    from webhook.policies.validation import is_policy  # noqa: PLC0415

    try:
        values: list[Any] = [orjson.loads(body)]
    except orjson.JSONDecodeError:
        try:
            text = body.decode()
            values = [document.value for document in read_documents(text, "kubernetes")]
        except (InvalidDocument, UnicodeDecodeError) as error:
            raise PoliciesRefused(400, f"the body is neither JSON nor YAML: {error}") from None
    documents = [item for value in values for item in _items(value)]
    if not documents:
        raise PoliciesRefused(400, "the body has no template and no constraint")
    if len(documents) > POLICIES_MAX:
        raise PoliciesRefused(400, f"{len(documents)} policies: {POLICIES_MAX} at most in a call")
    for number, item in enumerate(documents):
        if type(item) is not dict or not is_policy(item):
            raise PoliciesRefused(
                400, f"item {number} is neither a ConstraintTemplate nor a constraint"
            )
        if not name_of(item):
            raise PoliciesRefused(400, f"item {number} ({gvk_of(item).kind}) has no metadata.name")
    return documents


def _items(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    if type(value) is dict and type(value.get("items")) is list:
        items: list[Any] = value["items"]
        return items
    return [value]
