"""The texts of probes."""

from collections.abc import Callable

from webhook.server.probes import report

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
