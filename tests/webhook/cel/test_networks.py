"""Errors of Go's net/netip about texts that are no addresses."""

import pytest

from webhook.cel.library.addresses import InvalidAddress, parse_address, parse_prefix


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x", "unable to parse IP"),
        ("%eth0", "missing IPv6 address"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.03.4", "IPv4 field has octet with leading zero"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.a", 'unexpected character (at "a")'),
        ("::1%", "zone must be a non-empty string"),
        ("1:2:3", "address string too short"),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
        ("1:", 'colon must be followed by more characters (at ":")'),
        ("1:g", 'each colon-separated field must have at least one digit (at "g")'),
        (
            "1:2.3.4.5",
            'embedded IPv4 address must replace the final 2 fields of the address (at "2.3.4.5")',
        ),
    ],
)
def test_a_text_that_is_no_address_is_refused_with_the_words_of_go(text, fault):
    with pytest.raises(InvalidAddress) as refused:
        parse_address(text)
    assert str(refused.value) == f'ParseAddr("{text}"): {fault}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::", "::"),
        ("2001:DB8::0:1", "2001:db8::1"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
    ],
)
def test_an_address_is_read(text, shown):
    assert str(parse_address(text)[0]) == shown


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1.2.3.4", "no '/'"),
        ("1.2.3.4/", 'bad bits after slash: ""'),
        ("1.2.3.4/01", 'bad bits after slash: "01"'),
        ("1.2.3.4/33", "prefix length out of range"),
        ("fe80::1%a/10", "IPv6 zones cannot be present in a prefix"),
    ],
)
def test_a_text_that_is_no_range_is_refused_with_the_words_of_go(text, fault):
    with pytest.raises(InvalidAddress) as refused:
        parse_prefix(text)
    assert str(refused.value) == f'netip.ParsePrefix("{text}"): {fault}'
