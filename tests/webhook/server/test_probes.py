"""The texts of probes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from webhook.server.http.pages import PageApplication
from webhook.server.probes import make_health_application, report

GOOD = {"a": str, "b": str}
BAD: dict[str, Callable[[], str]] = {"a": str, "b": lambda: "not yet"}


def test_a_passing_probe_says_ok() -> None:
    assert report("readyz", GOOD, verbose=False) == (True, "ok")


def test_a_verbose_probe_lists_its_checks() -> None:
    assert report("readyz", GOOD, verbose=True) == (True, "[+]a ok\n[+]b ok\nreadyz check passed\n")


def test_a_failing_probe_says_why_unasked() -> None:
    text = "[+]a ok\n[-]b failed: not yet\nreadyz check failed\n"
    assert report("readyz", BAD, verbose=False) == (False, text)


def test_notes_are_for_who_asks_and_fail_nothing() -> None:
    assert report("readyz", GOOD, verbose=False, notes=["x"]) == (True, "ok")
    assert "[!]x\n" in report("readyz", GOOD, verbose=True, notes=["x"])[1]


def ask(
    pages: PageApplication, path: str, method: str = "GET"
) -> tuple[int, dict[bytes, bytes], bytes]:
    """The code, headers and body of an answer."""
    path, _, query = path.partition("?")
    scope = {"method": method, "path": path, "query_string": query.encode(), "headers": []}
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        raise AssertionError("nobody reads the body of a probe")

    asyncio.run(pages(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.mark.parametrize("path", ["/healthz", "/healthz/", "/healthz?timeout=1s"])
def test_a_probe_is_answered_in_plain_text(path: str) -> None:
    status, headers, body = ask(make_health_application(GOOD, BAD), path)
    assert (status, body) == (200, b"ok")
    assert headers[b"content-type"] == b"text/plain; charset=utf-8"
    assert headers[b"x-content-type-options"] == b"nosniff"


@pytest.mark.parametrize(
    ("path", "line"),
    [("/readyz", b"[-]b failed: not yet\n"), ("/healthz?verbose", b"[+]b ok\n")],
)
def test_a_probe_lists_its_checks(path: str, line: bytes) -> None:
    assert line in ask(make_health_application(GOOD, BAD), path)[2]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/", 404), ("GET", "/healthz/x", 404), ("POST", "/healthz", 405)],
)
def test_a_health_port_answers_nothing_else(method: str, path: str, code: int) -> None:
    assert ask(make_health_application(GOOD, BAD), path, method)[0] == code
