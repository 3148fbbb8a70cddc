"""``/healthz``, ``/readyz`` and ``/metrics``: answered by a thread of their own.

A review keeps the admission thread busy until it ends, and a probe that waited
for it would have a busy replica restarted or taken out of service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.server.http.pages import Page, PageApplication, query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.metrics.exposition import Exposition
    from webhook.server.http.pages import AnswerPage

    Checks = Mapping[str, Callable[[], str]]
    """Each check by name: why it fails, or an empty text."""

UNHEALTHY: Final = 503

# A fault quotes user input: plain text, and browsers must not sniff another type.
_HEADERS: Final = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


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
) -> PageApplication:
    """The application of the health port; ``notes`` are faults that leave the process ready."""
    return PageApplication(
        {
            "/healthz": _checked("healthz", live, tuple),
            "/readyz": _checked("readyz", ready, notes),
        }
    )


def _checked(title: str, checks: Checks, notes: Callable[[], Sequence[str]]) -> AnswerPage:
    async def answer(scope: dict[str, Any]) -> Page:
        verbose = "verbose" in query_of(scope)
        passed, text = report(title, checks, verbose=verbose, notes=notes())
        return Page(text.encode(), 200 if passed else UNHEALTHY, headers=_HEADERS)

    return answer


def make_metrics_application(exposition: Exposition) -> PageApplication:
    """Returns the application of the metrics port."""

    async def scrape(scope: dict[str, Any]) -> Page:
        accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
        body, content_type = exposition.render(accept)
        return Page(body, content_type=content_type.encode())

    return PageApplication({"/metrics": scrape})
