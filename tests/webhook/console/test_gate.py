"""Requests that are refused before any page is made."""

import pytest

from webhook.console.gate import HEADERS, LOOPBACK, host_name, refusal


@pytest.mark.parametrize("host", ["localhost:8090", "127.0.0.1", "[::1]:8090", "LOCALHOST"])
def test_a_browser_on_this_machine_may_ask(host: str):
    assert refusal("GET", "/", {"host": host}, LOOPBACK) is None


@pytest.mark.parametrize("host", ["evil.example:8090", "", "localhost.evil.example", "[::1]x"])
def test_a_name_that_was_made_to_lead_here_is_refused(host: str):
    refused = refusal("GET", "/", {"host": host}, LOOPBACK)
    assert refused is not None
    assert refused[0] == 421


def test_a_probe_may_name_the_address_of_the_pod():
    assert refusal("GET", "/readyz", {"host": "10.1.2.3:8090"}, LOOPBACK) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str]):
    refused = refusal("POST", "/playground", {"host": "localhost:1", **headers}, LOOPBACK)
    assert refused is not None
    assert refused[0] == 403


def test_a_form_of_our_own_and_a_program_without_an_origin_may_ask():
    for headers in ({}, {"origin": "http://localhost:1", "sec-fetch-site": "same-origin"}):
        assert refusal("POST", "/playground", {"host": "localhost:1", **headers}, LOOPBACK) is None


def test_nothing_inline_runs_and_nothing_comes_from_elsewhere():
    rules = dict(
        part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";")
    )
    assert rules["default-src"] == "'none'"
    assert set(rules.values()) <= {"'none'", "'self'"}


def test_the_port_is_no_part_of_a_name():
    assert [host_name(one) for one in ("a:1", "a", "[::1]:2", "[::1]")] == [
        "a",
        "a",
        "[::1]",
        "[::1]",
    ]
