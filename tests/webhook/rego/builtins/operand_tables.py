"""Operands on which our built-ins and the real OPA are compared: one table for each built-in.

Where a table has more combinations than wanted, some are drawn, always the same ones.
"""

import itertools
import json
import random
from dataclasses import dataclass
from typing import Any

from tests.webhook.rego.builtins.calling import Case
from webhook.rego.builtins.registry import BUILTINS

RANDOM = random.Random(7)

CASES: list[Case] = []


@dataclass(frozen=True)
class Raw:
    """An operand whose JSON must stay as written."""

    text: str


def _text(operand: Any) -> str:
    if isinstance(operand, Raw):
        return operand.text
    if isinstance(operand, list):
        return f"[{', '.join(map(_text, operand))}]"
    return json.dumps(operand, ensure_ascii=False)


def table(name: str, *pools: Any, most: int = 150) -> None:
    """Cases of one built-in: combinations of the operands in the pools."""
    combinations = list(itertools.product(*pools))
    if len(combinations) > most:
        combinations = RANDOM.sample(combinations, most)
    CASES.extend((name, tuple(map(_text, chosen))) for chosen in combinations)


def raw(name: str, *operands: str) -> None:
    """One case, its operands given as JSON."""
    CASES.append((name, operands))


times = [
    0,
    1,
    -1,
    1445412480000000000,
    1585852421593912000,
    951782400000000000,
    -9223372036854775808,
    9223372036854775807,
    1700000000123456789,
    1172332800000000000,
]
zones = [
    "UTC",
    "",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Foo/Bar",
    "../etc",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Etc/GMT+5",
    "Australia/Lord_Howe",
]
layouts = [
    "ANSIC",
    "RFC822",
    "RFC850",
    "RFC1123Z",
    "RFC3339Nano",
    "RFC3339",
    "2006-01-02",
    "Mon Jan _2 15:04:05.000 MST 2006",
    "__2 002 06 3:04PM pm .999 ,000000 Z0700 Z07 -07 -070000 -07:00:00 January Monday 1 2 4 5 03 15",
    "xyz",
    "Janet Monk 01 _2006",
    "2006-01-02T15:04:05Z07:00",
    "UnixDate",
    "RubyDate",
]
table("time.date", times, most=99)
table("time.date", [[t, z] for t in times for z in zones], most=120)
table("time.clock", [[t, z] for t in times for z in zones], most=120)
table("time.weekday", [[t, z] for t in times for z in zones], most=60)
table("time.format", [[t, z, layout] for t in times for z in zones for layout in layouts], most=600)
table("time.add_date", times, [0, 1, -1, 5, -300], [0, 1, -13, 25], [0, 1, -31, 366], most=200)
table(
    "time.add_date",
    [[t, z] for t in times for z in zones],
    [0, 1, -1],
    [0, 1, -13, 7],
    [0, 1, -31],
    most=200,
)
table(
    "time.diff",
    [[t, z] for t in times for z in zones],
    [[t, z] for t in times for z in zones],
    most=300,
)
vals = [
    "2015-10-21T07:28:00Z",
    "2020-04-02T21:53:41.593912Z",
    "Mon Jan  2 15:04:05 2006",
    "2006-01-02",
    "2006-13-02",
    "2006-02-30",
    "02 Jan 06 15:04 MST",
    "02 Jan 06 15:04 -0700",
    "Monday, 02-Jan-06 15:04:05 CEST",
    "2020-01-01T00:00:00+25:00",
    "2020-01-01T24:00:00Z",
    "1600-01-01T00:00:00Z",
    "2020-01-01T00:00:00.1234567891Z",
    "2020-01-01",
    "",
    "2020-01-01T00:00:00+01:00 extra",
    "mon jan 12 1:2:3 2020",
    "060 2020",
    "366 2019",
    "GMT+3",
    "2020-01-01T00:00:00,5Z",
]
lay2 = [*layouts, "002 2006", "MST", "2006-01-02T15:04:05.000Z07:00", "3:04PM"]
table("time.parse_ns", lay2, vals, most=400)
table("time.parse_rfc3339_ns", vals)
table(
    "time.parse_duration_ns",
    [
        "1h",
        "1h30m",
        "-1.5h",
        "2w",
        "1d2h",
        "1y",
        "1.5d",
        ".5s",
        "s",
        "1",
        "",
        "+5ms",
        "1µs",
        "9223372036854775807ns",
        "9223372036854775808ns",
        "-9223372036854775808ns",
        "1x",
        "1dd",
        "d",
        "1.2.3d",
        "1d1x",
        "0",
        "3000000h",
        "1e3s",
        "1.123456789123456789h",
        "300y",
        "1Mo",
    ],
)
pats = [
    "a",
    "^a+$",
    "a*",
    "(a)(b)?",
    "[a-z]+",
    "\\d+",
    "x*",
    "^",
    "$",
    "(?P<n>a)|b",
    "\\bfoo\\b",
    "(",
    "[",
    "a**",
    "a{2}",
    "(?i)AB",
    "é+",
    "[^a]",
    "a|b|",
    "",
    "(a|ab)(c|bcd)(d*)",
    "^[a-z0-9-]+\\.[a-z]{2,3}$",
    "^(foo|bar)$",
    "a.c",
    "[[:alpha:]]+",
    "\\pL",
    "a{1001}",
    "*a",
    "\\",
    "(?<n>a",
    "[z-a]",
    "foo$",
    "(?s).",
    "(?=a)",
    "\\Z",
    "x{2,1}",
]
subj = [
    "a",
    "aa",
    "ab",
    "abc",
    "",
    "xaay",
    "foo bar",
    "foo",
    "éé",
    "A1b2",
    "a\nb",
    "foo\n",
    "abcd",
    "test-1.com",
    "日本",
    "aXbX",
]
table("regex.match", pats, subj, most=600)
table("regex.is_valid", pats)
table("regex.find_n", pats, subj, [-1, 0, 1, 2], most=500)
table("regex.split", pats, subj, most=400)
table("regex.find_all_string_submatch_n", pats, subj, [-1, 1], most=400)
table(
    "regex.replace",
    subj,
    pats,
    ["X", "$0", "$1", "${1}x", "$1x", "$$", "$n", "${n}", "$", "<$9>", "é"],
    most=700,
)
table(
    "regex.template_match",
    ["urn:foo:{.*}", "a{[0-9]+}b", "{", "}", "x{(}y", "a.b"],
    ["urn:foo:bar", "a12b", "x", "a.b", "acb"],
    ["{", "<", ""],
    ["}", ">", "ab"],
    most=150,
)
globs = [
    "*",
    "**",
    "a*",
    "*.com",
    "*.*.com",
    "?",
    "a?c",
    "[abc]",
    "[!abc]",
    "[a-c]*",
    "{a,b}*",
    "{a,{b,c}d}x",
    "\\*",
    "a\\",
    "[",
    "{",
    "}",
    "a,b",
    "{a,}",
    "[]",
    "[!]",
    "[a-",
    "[c-a]",
    "a**c",
    "ab{c,d*}",
    "[a,b]",
    "{*.com,x?}",
    "日?",
    "*[!a]",
    "a.b-c",
    "[\\]]",
    "[^a]",
    "[--z]",
    "[ab-d]",
]
table(
    "glob.match",
    globs,
    [None, [], ["."], ["/"], [".", ":"], ["ab"], [1]],
    [
        "",
        "a",
        "abc",
        "a.com",
        "x.y.com",
        "b",
        "*",
        "a,b",
        "ax",
        "bdx",
        "日本",
        "abcd",
        "c",
        "ac",
        "a/b/c",
        ":",
        "]",
    ],
    most=1500,
)
table("glob.quote_meta", globs)
table(
    "regex.globs_match",
    [
        "a.b",
        "[a-z]+",
        "a*",
        "a+b",
        "[0-9]*x",
        "",
        "*",
        "a[",
        "b]",
        "a\\",
        "[z-a]",
        "x.*y",
        "[ab]+c",
        ".*",
        ".+",
        "[-a]",
    ],
    ["a.b", "[a-z]+", "b*", "a+b", "[0-9]*x", "", "x.*y", "abc", "xay", ".*"],
    most=200,
)
units = [
    "10",
    "10K",
    "10Ki",
    "1.5Gi",
    "100m",
    "1e3",
    "1e3K",
    "0.1Ki",
    "5 G",
    "",
    "G",
    "1.2.3",
    "1e",
    "1E",
    "10b",
    "10kB",
    "10KiB",
    "-5M",
    "+3",
    "1e-3K",
    "3.7m",
    "0.001",
    "1e9999999",
    "12Pi",
    "1eI",
    "2mi",
    "2mI",
    '"10"',
    "1_0",
    ".5Mi",
    "5.",
    "1e6KB",
    "1.5e3MB",
    "abc",
    "1i",
    "10 KB",
    "0.5",
]
table("units.parse", units)
table("units.parse_bytes", units)
sv = [
    "1.2.3",
    "v1.2.3",
    "1.2.3-a.1",
    "1.2.3-a.b",
    "1.2.3+x",
    "1.2",
    "1.2.3-01",
    "01.2.3",
    "1.2.3-",
    "99999999999999999999.0.0",
    "1.2.3-alpha.beta",
    "1.2.3-1",
    "1.2.3-rc.1",
    "a",
    "1.2.3-rc.99999999999999999999",
]
table("semver.compare", sv, sv, most=250)
table("semver.is_valid", sv)
cidrs = [
    "10.0.0.0/8",
    "10.1.2.3/24",
    "192.168.1.0/33",
    "::1/128",
    "2001:db8::/32",
    "::ffff:10.0.0.0/104",
    "10.0.0.1",
    "::1",
    "1.2.3.4/32",
    "0.0.0.0/0",
    "::/0",
    "fe80::1%eth0/64",
    "010.0.0.1/8",
    "10.0.0.0/08",
    "x",
    "10.0.0.0/",
    "1.2.3/8",
    "::ffff:1.2.3.4",
    "2001:db8::1/64",
]
table("net.cidr_contains", cidrs, cidrs, most=400)
table("net.cidr_intersects", cidrs, cidrs, most=400)
table("net.cidr_is_valid", cidrs)
table("net.cidr_expand", ["10.0.0.0/30", "1.2.3.4/32", "::1/126", "x", "::ffff:10.0.0.0/126"])
table(
    "net.cidr_merge",
    [
        RANDOM.sample(
            [
                "10.0.0.0/9",
                "10.128.0.0/9",
                "10.0.0.0/24",
                "10.0.1.0/24",
                "192.168.0.1",
                "10.0.0.5",
                "2001:db8::/33",
                "2001:db8:8000::/33",
                "::1/128",
                "172.16.0.1",
                "10.0.0.0/8",
                "11.0.0.0/8",
                "::/0",
                "x",
                1,
            ],
            k,
        )
        for k in (0, 1, 2, 3, 4)
        for _ in range(12)
    ],
)
table(
    "net.cidr_contains_matches",
    ["10.0.0.0/8", ["10.0.0.0/8", ["1.2.3.4/32", "x"]], {"a": "10.0.0.0/8"}, [[]], [1]],
    ["10.1.1.1", ["10.2.2.2", "1.2.3.4"], {"k": ["10.1.1.1", 2]}, {"$set": ["10.1.1.1/32"]}, [[]]],
    most=99,
)
y = [
    "a: 1\nb: [1,2]",
    "- a\n- b: c",
    "yes",
    "true",
    "~",
    "0x1F",
    "0o17",
    "017",
    "1_000",
    "1.5",
    "1e3",
    ".5",
    "2020-01-01",
    "a: *x",
    "&a [*a]",
    "a: &x {b: 1}\nc: *x",
    "<<: {a: 1}\nb: 2",
    "[1,2,3",
    "a: b: c",
    "\ta",
    "{a: 1, a: 2}",
    "!!str 1",
    "!!int x",
    "--- 1\n--- 2",
    "",
    "# c",
    "'a'",
    '"a\\tb"',
    "|\n a\n b\n",
    ">\n a\n b\n",
    ".inf",
    "1: 2",
    "null: 1",
    "1.5: a",
    "true: x",
    "a: !foo bar",
    "- - 1\n  - 2",
    "12345678901234567890",
    "99999999999999999999999",
    "18446744073709551616",
    "-9223372036854775809",
    "1e400",
    "-0",
    "+5",
    "0b11",
    "1:30",
    "a\n b",
    "x: |-\n  y",
    "key: 'it''s'",
    "%YAML 1.1\n---\na",
    "@x",
    "a: `b`",
]
table("yaml.unmarshal", y)
table("yaml.is_valid", y)
docs = [
    {"a": 1, "b": [1, 2, {"c": None}], "d": {}},
    [],
    ["x", ["y"], {}],
    "a\nb",
    "a\nb\n",
    " lead",
    "trail ",
    "yes",
    "1",
    "1.5",
    "null",
    "",
    "a: b",
    "#c",
    "- x",
    "'q'",
    '"q"',
    "a#b",
    "a #b",
    "é",
    "\u0001",
    "2020-01-01",
    "1:30",
    "<<",
    "~",
    True,
    None,
    1.5,
    1e21,
    0.1,
    {"a10": 1, "a2": 2, "b": 3, "A": 4, "_": 5, "1": 6, "10": 7, "2": 8},
    "multi\n  indented\n",
    "\n",
    "a\t b",
    "{x}",
    "[x]",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "key:",
    "a,b",
    "x" * 200,
    "x y " * 60,
    "=",
    "|",
    ">",
    {"k": "l1\nl2"},
    ["l1\nl2"],
    {"a": [[1, [2]], {"b": [{"c": 1}]}]},
    123456789.125,
    "0x1F",
    "1_000",
    "\ufeff",
    "a\r\nb",
    "?",
    "? a",
    "-",
    "--- a",
    "a\n\nb",
    "  \n a",
    "a\U0001f600",
    "a\tb\U0001f600",
    "x\n\U0001f600\ny",
    {"\U0001f600": ["\U0001f600"]},
    "a \x85 b",
    "\x85\x85a",
    "a\x85 \x85b\x85",
    {"a\x85b": 1},
    " \x85x",
    "a\n\x85 b",
    "\x7f",
    "\ufffe",
    "a\x80",
    {"\x9f": 1},
]
table("yaml.marshal", docs)
table("json.marshal", docs)
table(
    "json.marshal_with_options",
    docs[:12],
    [
        {"pretty": True},
        {"indent": "  "},
        {"prefix": ">"},
        {"pretty": False, "indent": "x"},
        {},
        {"bad": 1},
        {"pretty": 1},
        {"indent": 1},
        {"prefix": "", "indent": ""},
    ],
    most=150,
)
js = [
    "{",
    "[1,2",
    '{"a":1}',
    "1.0",
    "1e400",
    "01",
    '"\\ud800"',
    "nul",
    "[1,]",
    '{"a":}',
    " 1 2",
    "",
    "1e999999",
    "-",
    '"a',
    "[1.50, 1E3]",
    '{"a":1,"a":2}',
    "tru",
]
table("json.unmarshal", js)
table("json.is_valid", js)
b64 = [
    "",
    "aGVsbG8=",
    "aGVsbG8",
    "a",
    "aGk=\n",
    "!!!!",
    "_-8=",
    "+/8=",
    "====",
    "aGVs bG8=",
    "aG=k",
]
for f in ("base64.decode", "base64.is_valid", "base64url.decode", "hex.decode", "urlquery.decode"):
    table(f, [*b64, "6869", "zz", "abc", "%41+b", "%zz", "%", "a%2", "é", "00ff"])
for f in (
    "base64.encode",
    "base64url.encode",
    "base64url.encode_no_pad",
    "hex.encode",
    "urlquery.encode",
):
    table(f, ["", "hé<>?~!*'()", "a b&c=d/", "\u0000"])
table(
    "urlquery.encode_object",
    [{"a": "b c", "d": ["x", "y"], "e": {"$set": ["2", "1"]}}, {"a": 1}, {"a": [1]}, {}],
)
table(
    "urlquery.decode_object",
    ["a=1&b=2&a=3", "a", "=x", "a;b=1", "%zz=1", "a=1&&b", "a=%zz&b;c", ""],
)
table(
    "uri.parse",
    [
        "http://u:p@h:80/p%2Fq?x=1#f",
        "/a",
        "",
        "http://[::1]:8",
        "::",
        "a:b",
        "http://h:xx/",
        "?q",
        "%zz",
        "mailto:x@y",
    ],
)
table("uri.is_valid", ["http://h", "", "%zz", " "])
up = [
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "00000000-0000-0000-0000-000000000000",
    "urn:uuid:6ba7b810-9dad-21d1-80b4-00c04fd430c8",
    "{6ba7b810-9dad-41d1-80b4-00c04fd430c8}",
    "6ba7b8109dad11d180b400c04fd430c8",
    "x",
    "000003e8-48b9-21ee-b200-325096b39f47",
    "6ba7b810-9dad-11d1-c0b4-00c04fd430c8",
    "6ba7b810-9dad-11d1-e0b4-03c04fd430c8",
]
table("uuid.parse", up)
table(
    "format_int",
    [10, -10, 15.9, -15.9, 10**20, 0, "x", Raw("1e3"), Raw("10.0")],
    [2, 8, 10, 16, 3, Raw("10.0")],
    most=99,
)
table(
    "to_number",
    [
        "1",
        "1.5",
        "1e3",
        "abc",
        " 1",
        "",
        "1e999",
        "inf",
        "-Infinity",
        "nan",
        "0x10",
        "-5",
        "1e",
        "NaN",
        None,
        True,
        False,
        [],
        {},
        Raw("1.0"),
    ],
)
doc = {"a": {"b": [1, 2, {"c": 3}], "d/e": 4, "f~": 5}, "g": [[0]], "s": {"$set": [1, [2]]}}
ops = [
    {"op": "add", "path": "a/x", "value": 1},
    {"op": "add", "path": "/a/b/0", "value": 9},
    {"op": "add", "path": "/a/b/-", "value": 9},
    {"op": "remove", "path": "/a/b/1"},
    {"op": "remove", "path": "/a/zz"},
    {"op": "replace", "path": "/a/d~1e", "value": "n"},
    {"op": "move", "from": "/a/b", "path": "/m"},
    {"op": "copy", "from": "/a", "path": "/g/0"},
    {"op": "test", "path": "/g/0/0", "value": 0},
    {"op": "test", "path": "/g", "value": 1},
    {"op": "x", "path": "a"},
    {"op": 1, "path": "a"},
    {"path": "a"},
    {"op": "add"},
    {"op": "add", "path": "a"},
    {"op": "add", "path": "", "value": 3},
    {"op": "add", "path": ["s", 7], "value": 7},
    {"op": "add", "path": ["s", 7], "value": 8},
    {"op": "remove", "path": ["s", 1]},
    {"op": "remove", "path": ["s", 5]},
    {"op": "add", "path": "/a/b/07", "value": 1},
    {"op": "add", "path": "/a/b/9", "value": 1},
    {"op": "add", "path": "/a/b/x", "value": 1},
    {"op": "add", "path": "/a/d~1e/q", "value": 1},
    {"op": "remove", "path": "/a/d~1e/q/r"},
    {"op": "copy", "from": "/nope", "path": "/m"},
    3,
    {"op": "add", "path": {}, "value": 1},
    {"op": "add", "path": ["s", [2], 0], "value": 1},
]
table("json.patch", [doc], [[o] for o in ops])
table("json.patch", [doc], [[a, b] for a in ops[:6] for b in ops[:6]], most=40)
paths = [
    ["a"],
    ["a/b"],
    ["a/b/0", "g"],
    [["a", "b"]],
    [["s", 1]],
    [""],
    ["zz"],
    [["a", ["x"]]],
    ["a", "a/b"],
    ["a/b", "a"],
    "x",
    [1],
    {"$set": ["a/b/2/c"]},
    ["s"],
    [[]],
    ["/a/d~1e"],
]
table("json.filter", [doc], paths)
table("json.remove", [doc], paths)
table(
    "object.subset",
    [doc, {"a": {"b": [1, 2]}}, [1, 2, 3], {"$set": [1, 2]}, "x", [1, 1, 2]],
    [
        doc,
        {"a": {"b": [1, 2]}},
        [2, 3],
        {"$set": [1, 2]},
        [1, 2],
        {},
        [],
        {"$set": []},
        {"a": {"b": [2, {"c": 3}]}},
    ],
    most=99,
)
table(
    "object.get",
    [doc],
    [
        "a",
        ["a", "b"],
        ["a", "b", 2, "c"],
        [],
        ["a", "b", "2"],
        ["s", 1],
        ["s", [2]],
        ["zz"],
        1,
        None,
        ["a", "b", Raw("1.0")],
    ],
    ["def"],
)
table(
    "graph.reachable",
    [{"a": ["b"], "b": ["c", "a"], "c": [], "d": None}],
    [["a"], ["d"], ["x"], {"$set": ["c", "b"]}, "a"],
)
table(
    "graph.reachable_paths",
    [{"a": ["b", "x"], "b": ["c", "a"], "c": [], "d": None, "e": ["e"]}],
    [["a"], ["d"], ["x"], {"$set": ["c", "b"]}, "a", ["e"]],
)
table(
    "strings.replace_n",
    [
        {"a": "b", "b": "c"},
        {"ab": "x", "a": "y"},
        {"": "-"},
        {},
        {"a": 1},
        {"": "-", "a": "z"},
        {"é": "e"},
    ],
    ["abab", "éa", "", "xyz"],
)
table("strings.split_n", ["a,b,c", "", "abc"], [",", "", "x"], [0, 1, 2, 5, -1, -2, -9])
table(
    "strings.any_prefix_match",
    ["abc", ["abc", "x"], {"$set": ["q", "abc"]}, [1], 1, []],
    ["ab", ["z", "ab"], {"$set": ["x"]}, ["a", 1], {"$set": [1, "a"]}, [], 2],
)
table(
    "strings.any_suffix_match",
    ["abc", ["abc", "x"], {"$set": ["q", "abc"]}],
    ["bc", ["z", "bc"], {"$set": ["x"]}, ["a", 1]],
)
table("strings.count", ["aaaa", "", "é"], ["a", "", "aa"])
table("indexof_n", ["aaaa", "éaéa"], ["aa", "é", "", "a"])
table("sum", [[1, 2], [Raw("1.5")], [], ["a"], {"$set": [1, "x"]}])
raw("sum", "[0.1,0.2,0.3]")
raw("sum", '[1.5,2,"a"]')
raw("product", "[1.5,2,1e20]")
raw("product", "[0.1,3]")
raw("product", "[-0.5,0]")
raw("product", "[0.1,123456789012345678901,3]")
raw("sum", "[0.1,123456789012345678901,3]")
raw("sum", "[9223372036854775807,1]")
raw("sum", "[1.0,2]")
for f in ("abs", "ceil", "floor", "round"):
    for n in [
        "1.5",
        "-1.5",
        "2.5",
        "-0.5",
        "1e20",
        "1.0",
        "-3",
        "99999999999999999999999",
        "0.5",
        "1e-5",
    ]:
        raw(f, n)
for f in ("plus", "minus", "mul", "div", "rem"):
    for a in ["1.5", "-7", "7", "1.0", "1e20", "0", "0.0", "3"]:
        for b in ["2", "-2", "0", "0.0", "1.5", "3.0", "1e3"]:
            raw(f, a, b)
TEMPLATE_DATA = {
    "a": 1,
    "b": "str",
    "n": None,
    "t": True,
    "f": False,
    "l": [1, "x", [2]],
    "m": {"k": "v", "z": {"y": 1.50}},
    "e": [],
    "html": "<a href='x'>&\"</a>",
    "s": "héllo",
}
TEMPLATES = [
    "{{.a}}",
    "{{.b}} {{.n}} {{.zz}} {{.t}}",
    "{{.l}} {{.m}}",
    "{{.m.k}} {{.m.z.y}}",
    "{{.m.q.r}}",
    "{{.b.c}}",
    "{{.n.c}}",
    "{{if .t}}yes{{else}}no{{end}}",
    "{{if .f}}1{{else if .t}}2{{else}}3{{end}}",
    "{{range .l}}[{{.}}]{{end}}",
    "{{range $i,$x := .l}}{{$i}}={{$x}};{{end}}",
    "{{range .e}}x{{else}}empty{{end}}",
    "{{range $k,$v := .m}}{{$k}}:{{$v}} {{end}}",
    "{{with .m}}{{.k}}{{$.a}}{{end}}",
    "{{with .n}}x{{else}}none{{end}}",
    "{{with .n}}x{{else with .m}}{{.k}}{{end}}",
    "{{len .l}} {{len .s}} {{len .m}} {{len .a}}",
    "{{len .t}}",
    '{{index .l 0}} {{index .m "k"}} {{index .l 2 0}}',
    "{{index .l 9}}",
    '{{index .m "nope"}}',
    "{{slice .b 1 2}} {{slice .l 1}}",
    '{{eq .b "str"}} {{eq .b "x" "str"}} {{ne .b "q"}}',
    "{{eq .a 1}}",
    '{{eq .a "1"}}',
    '{{lt 1 2}} {{le 2 2}} {{gt 1 2}} {{ge 2 2}} {{lt "a" "b"}}',
    "{{and .t .b}} {{or .f .b}} {{not .f}} {{and .f .zz.q}}",
    '{{printf "%s-%v-%d" .b .a 5}}',
    "{{print .a .b 1 2}} {{println .a}}",
    "{{html .html}} {{js .html}} {{urlquery .html}}",
    '{{.html | html | printf "%q"}}',
    '{{$x := .b}}{{$x}}{{$x = "n"}}{{$x}}',
    "a {{- .a -}} b",
    "a {{- /* c */ -}} b",
    "{{/* c */}}x",
    '{{define "t"}}<{{.}}>{{end}}{{template "t" .b}}{{template "t"}}',
    '{{block "q" .a}}[{{.}}]{{end}}',
    '{{template "nope"}}',
    '{{range .l}}{{if eq . "x"}}{{break}}{{end}}{{.}}{{end}}',
    "{{range .l}}{{continue}}{{end}}|",
    "{{break}}",
    "{{",
    "{{.a",
    "{{end}}",
    "{{if .a}}",
    "{{if}}x{{end}}",
    "{{nope .a}}",
    "{{$y}}",
    "{{.a | }}",
    '{{"a\\tb" | len}}',
    "{{`raw`}} {{'a'}} {{1.5}} {{0x1F}} {{1e3}} {{-3}}",
    "{{true}} {{nil}}",
    "{{(index .l 2)}} {{(len .b)}}",
    "{{(.m).k}} {{(.m.z).y}}",
    "{{.a .b}}",
    "{{.b | .a}}",
    "{{1 | 2}}",
    "{{range 3}}{{.}}{{end}}",
    "{{range .t}}{{end}}",
    "{{range .b}}{{end}}",
    "{{if not .e}}E{{end}}",
    "x}}y",
    "{{else}}",
    "{{.}}",
    "{{$}}",
    "{{$.b}}",
    "{{range $x := .l}}{{$x}},{{end}}",
    "{{.l.x}}",
    "{{len}}",
    "{{not 1 2}}",
    "{{.a}}{{/* unclosed",
    '{{"unclosed}}',
    "{{.a.}}",
    "{{.a,b}}",
    "{{(.a}}",
    "{{.a)}}",
    "{{eq .l .l}}",
    "{{lt .t .f}}",
    "{{eq .n .n}} {{eq .zz .n}}",
    "{{index .n 1}}",
    "{{\n.zz\n}}\n{{.b.c}}",
    "{{if .a}}{{$q := 1}}{{end}}{{$q}}",
    '{{define "r"}}{{template "r"}}{{end}}ok',
    '{{printf "%5.2f|%-5s|%T" 1.5 .b .a}}',
    '{{printf "%d" .a}}',
    '{{.a | printf "%03d %s" 7}}',
    "{{with $x := .b}}{{$x}}{{end}}",
    "{{if $x := .b}}{{$x}}{{end}}",
    "{{- .a}}",
    "{{.a -}}  \n x",
    "{{3 -}} x",
    "{{ -3}}",
    "{{print nil}}",
    "{{print}}",
    "{{slice .b 2 1}}",
    "{{index .b 0}}",
    "{{range $i,$x,$y := .l}}{{end}}",
    "{{template .a}}",
]
table("strings.render_template", TEMPLATES, [TEMPLATE_DATA])

# Every built-in on whatever operands: types that fit mostly, and all others.
STRINGS = ['""', '"a"', '"abc"', '"aXbXc"', '"éàü日本"', '"X"', '" a b "', '"\\n\\t x"', '"a,b,,c"']
STRINGS += ['"ab"', '"ABC"', '"İßſ"', '"aaa"', '"1"', '"10"']
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3.5",
    "1.0",
    "-2.7",
    "10",
    "100",
    "1e3",
    "99999999999999999999",
    "16",
]
OTHERS = ["null", "true", "[]", '["a"]', '["a","b",1]', "{}", '{"a":1}', '{"$set":["a","b"]}']
OTHERS += ['{"$set":[]}', '[3,1,"x",null,{"a":1},[1],2.5,true]', '{"a":{"b":[1,{"c":2}]}}']
OTHERS += [
    '{"$object":[[1,"a"],["b",2]]}',
    '{"$set":[{"$set":[1]},{"$set":[1,2]}]}',
    '["x",["a",0]]',
]
OTHERS += ['[{"a":1},{"a":{"b":2}},{"a":{"c":3}}]', '["/a/b","a"]', '{"a":"X","b":"Y"}']
ANYTHING = STRINGS + NUMBERS + OTHERS

# Chance, time, effects, and what the compiler replaces; the families that need keys or schemas
# have tests of their own.
ELSEWHERE = (
    *("print", "internal.", "time.now_ns", "rand.intn", "uuid.rfc4122", "net.lookup_ip_addr"),
    *("opa.runtime", "walk", "trace", "assign", "strings.render_template", "crypto.", "io.jwt."),
    *("graphql.", "http.send", "rego.", "providers.", "json.match_schema", "json.verify_schema"),
)
# A shift by 10^20 ends the real OPA itself.
NOT_HUGE = ("bits.lsh", "bits.rsh", "numbers.range", "numbers.range_step")


def _fitting(operand: str) -> list[str]:
    fits = {"string": STRINGS, "number": NUMBERS}.get(operand, ANYTHING)
    return fits if RANDOM.random() < 0.9 else ANYTHING


def mixed_cases(count: int = 25) -> list[Case]:
    """Cases of every built-in that is not :data:`ELSEWHERE`."""
    cases: list[Case] = []
    for name, builtin in BUILTINS.items():
        if name == "eq" or name.startswith(ELSEWHERE):
            continue
        if len(builtin.operands) == 1:
            cases.extend((name, (operand,)) for operand in ANYTHING)
            continue
        for _ in range(count):
            chosen = [RANDOM.choice(_fitting(str(operand))) for operand in builtin.operands]
            cases.append((name, tuple(chosen)))
    return [
        case for case in cases if case[0] not in NOT_HUGE or "99999999999999999999" not in case[1]
    ]
