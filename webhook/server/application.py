"""The Starlette application of the admission port."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Match, Route

from webhook.server import namespace_label
from webhook.server.endpoint import ReviewEndpoint
from webhook.server.http.responder import failure
from webhook.server.undecided import answer_unread
from webhook.server.validation import PATH
from webhook.serving.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.decoding import Decoding
    from webhook.server.endpoint import Decide
    from webhook.server.namespace_label import Exemptions
    from webhook.server.traced import TracedEndpoint
    from webhook.server.undecided import AnswerUnread
    from webhook.server.validation import ValidationEndpoint
    from webhook.serving.trace import Tracing


class WholeRecorder(Recorder, Protocol):
    """Records requests that no policy decides."""

    def unread(self, request_uid: str, error: str) -> None:
        """Records a request that was refused because it cannot be reviewed."""


AsgiEndpoint: TypeAlias = "Callable[..., Coroutine[Any, Any, None]]"
"""A plain ASGI application."""


def make_application(  # noqa: PLR0913  # each part that it joins is a parameter
    admit: Decide,
    exemptions: Exemptions,
    registry: Registry,
    log: Logger,
    *,
    decoding: Decoding,
    parts: Mapping[str, Decide] | None = None,
    mutate: Decide | None = None,
    answer_unmutated: AnswerUnread | None = None,
    validation: ValidationEndpoint | None = None,
    recorder: WholeRecorder | None = None,
    answer_unread: AnswerUnread = answer_unread,
    tracing: Tracing | None = None,
) -> AdmissionApplication:
    """Returns the application: routes to plain ASGI endpoints without middleware.

    ``parts`` decide at other paths by constraints of one failure policy. ``mutate`` serves mutation
    and ``validation`` the validation of policies, if given. ``recorder`` records requests that
    policies do not decide; ``admit`` records its own decisions. ``answer_unread`` and
    ``answer_unmutated`` answer requests that are not read. ``decoding`` stops with the application.
    With ``tracing`` sampled requests have traces.
    """

    def admit_label(
        request: AdmissionRequest,
        query: bytes,  # noqa: ARG001  # nothing here takes time
        received_at: float,
    ) -> AdmissionResponse:
        response = namespace_label.decide(request, exemptions)
        if recorder is None:
            return response
        return recorder.answered(request, None, None, received_at, received_at, response)

    others: dict[str, AsgiEndpoint] = {}
    if validation is not None:
        others[PATH] = validation
    decisions = {"/v1/admit": admit, "/v1/admitlabel": admit_label, **(parts or {})}
    if mutate is not None:
        decisions["/v1/mutate"] = mutate
    unread = {"/v1/mutate": answer_unmutated or answer_unread}
    notify_unread = None if recorder is None else recorder.unread
    make: type[ReviewEndpoint] | partial[TracedEndpoint] = ReviewEndpoint
    if tracing is not None:
        # Imported only if tracing is on: the import costs memory and start-up time.
        from webhook.server.traced import TracedEndpoint  # noqa: PLC0415

        make = partial(TracedEndpoint, tracing=tracing)
    reviews = {
        path: make(
            decide,
            registry,
            log,
            decoding=decoding,
            notify_unread=notify_unread,
            answer_unread=unread.get(path, answer_unread),
        )
        for path, decide in decisions.items()
    }
    return AdmissionApplication(reviews, others, decoding.stop)


class ExactRoute(Route):
    """A route with one fixed path and any method, found by comparison instead of a pattern."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the request is for this path."""
        if scope["type"] == "http" and scope["path"] == self.path:
            return Match.FULL, {"endpoint": self.endpoint, "path_params": {}}
        return Match.NONE, {}


class AdmissionApplication(Starlette):
    """Endpoints by path, without Starlette's two layers that turn exceptions into responses.

    Those cost 4 µs a request and would catch nothing: endpoints answer their own faults, and the
    connection answers 500 for the rest.
    """

    def __init__(
        self,
        endpoints: Mapping[str, ReviewEndpoint],
        others: Mapping[str, AsgiEndpoint],
        stop: Callable[[], None],
    ) -> None:
        """``others`` may wait, and are found by routing; ``stop`` ends their work."""
        self.stop = stop
        every: dict[str, AsgiEndpoint] = {**endpoints, **others}
        self._paths = sorted(every)
        super().__init__(
            routes=[
                ExactRoute(path, endpoint, name=path.rpartition("/")[2])
                for path, endpoint in every.items()
            ]
        )
        self.at_once = endpoints
        """The endpoints that a connection calls directly: deciding rarely waits, and routing costs
        5 µs.
        """

    def build_middleware_stack(self) -> ASGIApp:
        """Returns the router without middleware."""
        self.router.redirect_slashes = False
        self.router.default = partial(_not_found, self._paths)
        return self.router


_TURNED_ON_BY: Final = {
    "/v1/mutate": "--operation=mutation-webhook",
    PATH: "--enable-validate-policy",
}
"""The flags for paths that are not always answered."""


async def _not_found(paths: Sequence[str], scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["path"]
    message = f"no such path: {path[:256]}; there are {', '.join(paths)}"
    if path in _TURNED_ON_BY:
        message += f"; {path} needs {_TURNED_ON_BY[path]}"
    response = Response(failure(404, message), 404, media_type="application/json")
    await response(scope, receive, send)
