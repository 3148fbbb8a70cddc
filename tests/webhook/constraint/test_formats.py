"""The formats of schemas: what the real API server takes, and nothing else."""

import json
import random

from tests.cluster import ApiError, Cluster
from tests.patience import until
from tests.policies import definition
from webhook.constraint import formats

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "formats.waddle.dev"

VALUES = {
    "bsonobjectid": [
        "507f1f77bcf86cd799439011",
        "507F1F77BCF86CD799439011",
        "507f1f77bcf86cd79943901",
        "507f1f77bcf86cd79943901g",
    ],
    "byte": ["aGk=", "aGk", "", "aGkh", "a+/=", "a-_=", "aGk=\n", "====", "YQ=="],
    "cidr": [
        "10.0.0.0/8",
        "10.0.0.0",
        "10.0.0.0/33",
        "010.0.0.1/08",
        "::/0",
        "::1/129",
        "fe80::1%a/64",
        "10.0.0/8",
        "10.0.0.0/+8",
        "::ffff:1.2.3.4/120",
        "1.2.3.4/",
        "/8",
        "1.2.3.4/8/8",
    ],
    "creditcard": [
        "4111 1111 1111 1111",
        "4111-1111-1111-1112",
        "378282246310005",
        "6011111111111117",
        "5555555555554444",
        "x4111111111111111y",
        "2131000000000008",
        "",
        "30569309025904",
    ],
    "date": [
        "2026-02-28",
        "2026-02-29",
        "2024-02-29",
        "0000-01-01",
        "2026-2-1",
        "26-01-01",
        "2026-01-01 ",
        "2026-13-01",
        "٢026-01-01",
    ],
    "date-time": [
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T24:00:00Z",
        "2026-01-01T23:59:60Z",
        "2026-01-01T00:00:00.5+01:00",
        "2026-01-01T00:00:00x5Z",
        "2026-01-01T00:00:00+0100",
        "2026-02-30T00:00:00Z",
        "2026-01-01T00:00:00Ztz",
        "T00:00:00Z",
    ],
    "datetime": ["2026-01-01T00:00:00Z", "no"],
    "duration": [
        "1s",
        "1h30m",
        "22 ns",
        "3 weeks",
        "-1.5h",
        "1",
        "",
        "x",
        "0",
        "5 foo",
        "2 foo 3 days",
        "1 hr",
        "2 secs",
        "1µs",
        "1μs",
        "99999999999999999999 s",
        "1D",
        "about 3 minutes",
        "1y",
        "9223372036854775808ns",
        "1 MICROSECOND",
        "3 dayss",
        "1 hrs",
        "1.5 days",
    ],
    "email": [
        "a@b",
        "a@b.c",
        "Bob <a@b.c>",
        "a",
        "@b",
        "a@",
        "a b@c",
        '"a b"@c',
        "a@b, c@d",
        "a@b c",
        "<a@b>",
        "a@[1.2.3.4]",
        "a..b@c",
        ".a@b",
        "a@b.",
        "",
        "é@b.c",
        "a@é.c",
        "(x) a@b",
        "a@b (x)",
    ],
    "hexcolor": ["#fff", "fff", "#FFFFFF", "#ffff", "fffffg", "#", "#fffffff"],
    "hostname": [
        "a",
        "a.b",
        "a.bc",
        "-a",
        "a-",
        "a-b.com",
        "a_b",
        "",
        "x" * 63,
        "x" * 64,
        "é",
        "é.com",
        "☃.com",
        "1.2.3.4",
        "a.b1",
        "a.com.",
        "a--b.com",
        f"{'a.' * 130}com",
        "a--b",
        "a-b-c",
        "é" * 32,
    ],
    "ipv4": [
        "1.2.3.4",
        "01.02.03.004",
        "1.2.3",
        "256.1.1.1",
        "::ffff:1.2.3.4",
        "1.2.3.4 ",
        "::",
        "1.2.3.4%a",
        "1.2.3.-4",
        "٣.2.3.4",
        "::1.2.3.4",
        "::ffff:01.2.3.4",
    ],
    "ipv6": [
        "::",
        "::1",
        "1.2.3.4",
        "::ffff:1.2.3.4",
        "::ffff:01.2.3.4",
        "fe80::1%eth0",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "::12345",
        "1::2::3",
        "1:2:3:4:5:6:7::",
        "::g",
    ],
    "isbn": [
        "0321751043",
        "978-0321751041",
        "0-321-75104-3",
        "0321751044",
        "080442957X",
        "080442957x",
        "9780321751042",
        "",
        "978 0321751041",
    ],
    "isbn10": ["0321751043", "978-0321751041", "080442957X"],
    "isbn13": ["0321751043", "978-0321751041", "9780321751041"],
    "k8s-long-name": ["a.b", "a..b", "A", "a" * 253, "a" * 254, "", "-a", "a-.b", "a.b-c.d1"],
    "k8s-short-name": ["a", "a.b", "A", "a" * 63, "a" * 64, "a-", "", "1"],
    "mac": [
        "00:11:22:33:44:55",
        "00-11-22-33-44-55",
        "0011.2233.4455",
        "00:11:22:33:44",
        "00:11-22:33:44:55",
        "00:11:22:33:44:55:66:77",
        "0011.2233.4455.6677",
        "00:11:22:33:44:5g",
        "001122334455",
        ":".join(["00"] * 20),
        ":".join(["00"] * 19),
        ".".join(["0011"] * 10),
        "00:11:22:33:44:55:66",
    ],
    "password": ["", "x"],
    "rgbcolor": [
        "rgb(1,2,3)",
        "rgb( 1 , 2 , 3 )",
        "rgb(256,0,0)",
        "rgb(01,0,0)",
        "RGB(1,2,3)",
        "rgb(1,2)",
        "rgb(255,255,255)",
        "rgb (1,2,3)",
        "rgb(1,2,3) ",
    ],
    "rgb": ["x"],
    "ssn": ["111-22-3333", "111 22 3333", "111223333", "111-223333", "111-22-333", "11a-22-3333"],
    "uri": [
        "http://a",
        "/a",
        "a",
        "",
        "a:b",
        "//a/b",
        "http://a b",
        "http://a/%zz",
        "*",
        "http://[::1]",
        "http://[::1",
        ":a",
        "http://a/#x",
        "http://a:b",
        "http://é",
        "a/b",
        "?x",
        "urn:a",
        "1a:b",
        "http://a\tb",
    ],
    "uuid": ["00000000-0000-0000-0000-000000000000", "0" * 32, "0" * 31, "A" * 32, "x" * 32],
    "uuid3": ["00000000-0000-3000-0000-000000000000", "00000000-0000-4000-0000-000000000000"],
    "uuid4": [
        "00000000-0000-4000-8000-000000000000",
        "00000000-0000-4000-0000-000000000000",
        "00000000-0000-4000-B000-000000000000",
    ],
    "uuid5": ["00000000-0000-5000-a000-000000000000", "00000000-0000-5000-c000-000000000000"],
    "int32": ["x"],
    "zork": ["x"],
    "u-u-i-d": ["x", "0" * 32],
    "date_time": ["x"],
}
""""By format, values that are one and values that are none."""

MUTATIONS = 12
"""Of each value, with one character changed, left out or put in."""


def values() -> dict[str, list[str]]:
    """The table, and each value a little changed."""
    chance = random.Random(37)
    made = {}
    for name, given in VALUES.items():
        changed = [_changed(chance, value) for value in given for _ in range(MUTATIONS)]
        made[name] = list(dict.fromkeys(given + changed))
    return made


def _changed(chance: random.Random, value: str) -> str:
    at = chance.randrange(len(value) + 1)
    put = chance.choice(["", *'0159aAfFgTtzZ :-./@%+_"<>()[]#,\n', "é", "µ"])
    return value[:at] + put + value[at + chance.randrange(2) :]


def refused(cluster: Cluster, given: dict[str, list[str]]) -> set[tuple[str, str]]:
    """Returns the fields and values that the API server refuses."""
    items = {"type": "array"}
    properties = {name: items | {"items": {"type": "string", "format": name}} for name in given}
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    crd = definition("Formatted", "formatteds", GROUP, schema=schema)
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Formatted",
        "metadata": {"name": "a"},
        "spec": given,
    }
    cluster.api.request("POST", CRDS, crd)
    try:
        causes: list[list[dict[str, str]]] = []

        def is_judged() -> bool:
            try:
                cluster.api.request("POST", f"/apis/{GROUP}/v1/formatteds?dryRun=All", body)
            except ApiError as error:
                if error.status != 422:
                    return False
                causes.append(json.loads(error.body)["details"]["causes"])
                return True
            raise AssertionError("nothing was refused")

        until(is_judged, "the kind is served")
    finally:
        cluster.api.request("DELETE", f"{CRDS}/formatteds.{GROUP}")
    found = set()
    for cause in causes[0]:
        name, _, index = cause["field"].removeprefix("spec.").removesuffix("]").rpartition("[")
        found.add((name, given[name][int(index)]))
    return found


def test_each_format_is_checked_as_the_api_server_checks_it(cluster: Cluster) -> None:
    given = values()
    theirs = refused(cluster, given)
    ours = {
        (name, value)
        for name, of in given.items()
        for value in of
        if not formats.holds(name, value)
    }
    assert not sorted(ours ^ theirs)
