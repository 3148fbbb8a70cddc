"""Texts that functions read, of each kind some that are right and some that are not."""

from typing import Final

_TIMES: Final = (
    "2024-02-29T12:30:45Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
    "2024-03-31T01:30:00+01:00", "1900-01-01T00:00:00-12:00", "2023-02-29T00:00:00Z", "2024-01-01",
    "2024-01-01T24:00:00Z", "2024-01-01t00:00:00z", "2024-01-01 00:00:00Z", "2024-06-30T23:59:60Z",
    "2024-01-01T00:00:00.5+05:30", "10000-01-01T00:00:00Z", "",
)  # fmt: skip
_ZONES: Final = (
    "UTC", "", "Local", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "+02:30", "-08:00",
    "02:00", "-0:30", "24:00", "1:2:3", "utc", "Nowhere", "../UTC", "x:y",
)  # fmt: skip
_SPANS: Final = (
    "1h30m", "-5s", "0", "1.5h", "1us", "1µs", "100ms", "1d", "1h1", ".5s", "1.s", "-.s", "2562047h",
    "9223372036s", "9223372037s", "+1m", "1e3s", " 1s", "",
)  # fmt: skip
_QUANTITIES: Final = (
    "1", "1.5Gi", "100m", "-3", "+2", "0.5", "1e3", "1E3", "12Mi", "1n", "1u", "5e-3", "1.25k", "0",
    "-0", "1Ki", "1ki", "9223372036854775807", "9223372036854775808", "1e20", "1.0000000001", ".5",
    "5.", "1.5.5", "abc", "1 ", "", "1E", "1Ei", "1e-20", "0.1m", "-1.5Ti",
)  # fmt: skip
_ADDRESSES: Final = (
    "10.0.0.1", "::1", "2001:db8::1", "::ffff:1.2.3.4", "fe80::1%eth0", "224.0.0.1", "169.254.1.1",
    "0.0.0.0", "256.1.1.1", "01.2.3.4", "1.2.3", "2001:DB8::1", "ff02::1", "::", "a", "",
)  # fmt: skip
_RANGES: Final = (
    "10.0.0.0/8", "10.1.2.3/8", "::/0", "2001:db8::/32", "0.0.0.0/0", "10.0.0.0/33", "10.0.0.0",
    "1.2.3.4/032", "::ffff:1.2.3.4/96", "fe80::%a/10", "10.0.0.0/-1", "",
)  # fmt: skip
_LOCATIONS: Final = (
    "https://u:p@host.example:8443/a/b%20c?x=1&y=2&x=3#f", "/rel/path", "//host/p", "http://[::1]:80/",
    "http://a b/", "http://a/%zz", "mailto:a@b.c", "https://host", "http://host:/p", "http://h:x/",
    "https://h/?a=b;c=d&e", "https://h/?%41=%42&+=+", "rel", "ftp://h/a//b/../c", "HTTP://H/", "",
)  # fmt: skip
_VERSIONS: Final = (
    "1.2.3", "v1.2.3", "1.2", "1", "01.2.3", "1.2.3-rc.1", "1.2.3-rc.01", "1.2.3+b", "1.2.3-",
    "1.2.3-a.b-c.1+x.y", "2.0.0", "1.10.0", "99999999999999999999.0.0", "1.2.3.4", "a", "",
)  # fmt: skip
_PATTERNS: Final = (
    "^a+b*$", "[0-9]+", "(a|b)*", "(?i)A", r"\d", "^$", "a{2,3}", r"\pL", "[[:alpha:]]+", "(?P<n>a)",
    r"\bb", "a*?", ".", "", "[^a]", r"\.", "x|", "(?s).", "(?m)^b$", "a**", "(", "[b-a]", r"\1", "(?=a)",
)  # fmt: skip
_NUMBERS: Final = (
    "12", "-1", "+5", "007", "1_0", "0x1F", "1e3", "1.5", ".5", "NaN", "-Inf", "+nan", " 1", "",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "1e400", "0x1p-2", "-0", "true", "T", "False", "yes",
)  # fmt: skip
_NAMES: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri", "uuid",
    "byte", "date", "datetime", "dns1123LabelPrefix", "none", "",
)  # fmt: skip
_NAMED: Final = (
    "my-app", "My-App", "a.b", "-a", "a-", "1a", "a/b", "example.com/a", "a" * 64, "YWJj", "YW",
    "2024-02-29", "2023-02-29", "2024-02-29T12:30:45Z", "123e4567-e89b-12d3-a456-426614174000",
    "https://a.b/c", "", "_", "a_b",
)  # fmt: skip
_PARTS: Final = ("", ",", "a", "b", "ab", " ", "☃", "é", "-", "aa")
_FORMATS: Final = (
    "%s", "%d", "%f", "%.2f", "%e", "%.3e", "%x", "%X", "%o", "%b", "%s|%s", "%d%%", "%", "%q", "%.f",
    "%.1s", "100%", "%5d", "%s %d %s", "%.0f",
)  # fmt: skip

_PARTS_OF_TIMES: Final = (
    "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours",
    "getMilliseconds", "getMinutes", "getMonth", "getSeconds",
)  # fmt: skip

READ: Final[dict[tuple[str, int], tuple[str, ...]]] = {
    ("timestamp", 0): _TIMES,
    **{(name, 1): _ZONES for name in _PARTS_OF_TIMES},
    ("duration", 0): _SPANS,
    **{(name, 0): _QUANTITIES for name in ("quantity", "isQuantity")},
    **{(name, 0): _ADDRESSES for name in ("ip", "isIP", "ip.isCanonical")},
    **{(name, 0): _RANGES for name in ("cidr", "isCIDR")},
    ("containsIP", 1): _ADDRESSES,
    ("containsCIDR", 1): _RANGES,
    **{(name, 0): _LOCATIONS for name in ("url", "isURL")},
    **{(name, 0): _VERSIONS for name in ("semver", "isSemver")},
    **{(name, 1): _PATTERNS for name in ("matches", "find", "findAll")},
    **{(name, 0): _NUMBERS for name in ("int", "uint", "double", "bool")},
    ("format.named", 0): _NAMES,
    ("validate", 1): _NAMED,
    **{(name, 1): _PARTS for name in ("split", "replace", "indexOf", "lastIndexOf", "contains")},
    **{(name, 1): _PARTS for name in ("startsWith", "endsWith", "join")},
    ("replace", 2): _PARTS,
    ("format", 0): _FORMATS,
}
"""By the name of a function and the place of its operand, the target counted."""
