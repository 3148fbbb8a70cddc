"""``/healthz``, ``/readyz`` and ``/metrics``: answered by a thread of their own.

A review keeps the admission thread busy until it ends, and a probe that waited
for it would have a busy replica restarted or taken out of service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from webhook.metrics.exposition import Exposition

    Checks = Mapping[str, Callable[[], str]]
    """Each check by name: why it fails, or an empty text."""

UNHEALTHY: Final = 503


def report(
    title: str, checks: Checks, *, verbose: bool, notes: Sequence[str] = ()
) -> tuple[bool, str]:
    """Returns whether every check passes, and the answer in Kubernetes' form.

    ``notes`` appear in verbose answers only, and fail nothing.
    """
    lines = []
    passed = True
    for name, check in checks.items():
        fault = check()
        passed = passed and not fault
        lines.append(f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok")
    lines += [f"[!]{note}" for note in notes]
    lines.append(f"{title} check {'passed' if passed else 'failed'}")
    if verbose or not passed:
        return passed, "\n".join(lines) + "\n"
    return passed, "ok"


def make_health_application(
    live: Checks, ready: Checks, notes: Callable[[], Sequence[str]] = tuple
) -> Starlette:
    """The application of the health port; ``notes`` are faults that leave the process ready."""
    return Starlette(
        routes=[
            Route("/healthz", _checked("healthz", live, tuple), name="healthz"),
            Route("/readyz", _checked("readyz", ready, notes), name="readyz"),
        ]
    )


def _checked(
    title: str, checks: Checks, notes: Callable[[], Sequence[str]]
) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        verbose = "verbose" in request.query_params
        passed, text = report(title, checks, verbose=verbose, notes=notes())
        # A fault quotes user input: plain text, and browsers must not sniff another type.
        headers = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
        return PlainTextResponse(text, 200 if passed else UNHEALTHY, headers)

    return answer


def make_metrics_application(exposition: Exposition) -> Starlette:
    """Returns the application of the metrics port."""

    async def scrape(request: Request) -> Response:
        body, content_type = exposition.render(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return Starlette(routes=[Route("/metrics", scrape, name="metrics")])
