"""Kubernetes' rules for names, labels and string formats."""

from __future__ import annotations

import pytest

from webhook.constraint import formats
from webhook.constraint.names import label_value_faults, qualified_name_faults, subdomain_faults


@pytest.mark.parametrize("name", ["a", "a-b", "a.b-c.d", "0", "a" * 253])
def test_subdomains_are_valid(name):
    assert subdomain_faults(name) == []


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a..b", "a_b", "a\n"])
def test_what_is_no_subdomain_says_the_rule(name):
    (fault,) = subdomain_faults(name)
    assert fault.startswith("a lowercase RFC 1123 subdomain must consist of")


def test_a_subdomain_may_have_253_bytes():
    assert subdomain_faults("a" * 254) == ["must be no more than 253 bytes"]


@pytest.mark.parametrize("name", ["a", "A_b.c-d", "example.com/x", "a.b/C", "x" * 63])
def test_label_keys_are_valid(name):
    assert qualified_name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "beginnings"),
    [
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("/x", ["prefix part must be non-empty"]),
        ("A.B/x", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("a/b/c", ["a qualified name must consist of"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("-x", ["name part must consist of"]),
    ],
)
def test_what_is_no_label_key_says_which_part(name, beginnings):
    faults = qualified_name_faults(name)

    assert len(faults) == len(beginnings)
    for fault, beginning in zip(faults, beginnings, strict=True):
        assert fault.startswith(beginning)


def test_label_values_may_be_empty_and_63_bytes_long():
    assert label_value_faults("") == label_value_faults("a" * 63) == []
    assert label_value_faults("a" * 64) == ["must be no more than 63 bytes"]
    assert label_value_faults("a b")[0].startswith("a valid label must be an empty string or")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28"),
        ("datetime", "2026-02-28T10:00:00+02:00", "now"),
        ("byte", "aGk=", "a"),
        ("uuid", "705ab4f5-6393-11e8-b7cc-42010a800002", "705ab4f5"),
        ("email", "a@b.c", "a"),
        ("hostname", "a-b.example", "-a"),
        ("mac", "00:1a:2b:3c:4d:5e", "00:1a"),
        ("uri", "https://a/b", "a/b"),
        ("duration", "1h30m", "soon"),
    ],
)
def test_formats_are_checked(name, good, bad):
    assert formats.holds(name, good)
    assert not formats.holds(name, bad)


def test_an_unknown_format_holds_for_all():
    assert formats.holds("zork", "anything")
