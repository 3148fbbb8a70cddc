"""Files of several formats: what conftest's parsers make of them, and that both refuse the others."""

import json

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

READ = [
    ("edn", '#inst "2024-01-02T03:04:05.250Z"', "2024-01-02 03:04:05.25 +0000 UTC"),
    ("edn", '{:at #inst "2024-01-02T03:04:05Z"}', {":at": "2024-01-02 03:04:05 +0000 UTC"}),
    ("edn", "[\\a \\newline \\space]", ["97", "10", "32"]),
    ("edn", '["x\\n\\u0041\\"y\\""]', ['x\nA"y"']),
    ("edn", "[1 #_ 2 3]", ["1", "3"]),
    ("edn", "[#my/tag {:a 1}]", ["#my/tag map[:a:1]"]),
    ("edn", "{:a {:b [1 {:c nil}]}, :d #{1 2}}", {":a": {":b": ["1", {":c": "<nil>"}]}, ":d": "map[1:true 2:true]"}),
    ("edn", "[a/b c.d -1 +2]", ["a/b", "c.d", "-1", "2"]),
    ("edn", "[1 ]]", ["1"]),
    ("edn", "[0 -0 +1.5e+3 5M 9223372036854775807 -9223372036854775808 #{1 1 2}]", ["0", "0", "1500", "5", "9223372036854775807", "-9223372036854775808", "map[1:true 2:true]"]),
    ("edn", "(a+ 0{:x/y\\c} \\}\\u0041 /\\n .b -.5)", ["a+", "0", {":x/y": "99"}, "125", "65", "/", "110", ".b", "-.5"]),
    ("edn", "[1N -2N]", ["1", "-2"]),
    ("xml", '<?xml version="1.1"?>\n<a b="1">x</a>\n', {"a": {"#content": "x", "-b": "1"}}),
    ("edn", '#inst "2020-01-01T0:00:00Z"', "2020-01-01 00:00:00 +0000 UTC"),
    ("ini", "; c\n[server]\nhost = example.com\nport: 8080\nratio = 0.5\ndebug = off\n- = one\n- = two\n", {"server": {"#1": "one", "#2": "two", "debug": "off", "host": "example.com", "port": 8080, "ratio": 0.5}}),
    ("ini", '[a]\n"x y" = 1\n`k` = `v # w`\nt = """one\ntwo"""\n', {"a": {"k": "v # w", "t": "one\ntwo", "x y": 1}}),
    ("ini", '[a]\nlong = one \\\n  two \\\n  three\nb = "q;r" ; c\n', {"a": {"b": '"q', "long": "one two three"}}),
    ("ini", "[a]\nb = 'x'\nc =\nd = `one\ntwo`\n", {"a": {"b": "x", "c": "", "d": "one\ntwo"}}),
    ("nginx", "http {\n  server {\n    listen 80;\n    location / {\n      proxy_pass http://app;\n    }\n  }\n}\n", {"directives": [{"block": {"directives": [{"block": {"directives": [{"name": "listen", "parameters": ["80"]}, {"block": {"directives": [{"name": "proxy_pass", "parameters": ["http://app"]}]}, "name": "location", "parameters": ["/"]}]}, "name": "server"}]}, "name": "http"}]}),
    ("nginx", "user www; # c\nevents { worker_connections 1024; }\n", {"directives": [{"name": "user", "parameters": ["www"]}, {"block": {"directives": [{"name": "worker_connections", "parameters": ["1024"]}]}, "name": "events"}]}),
    ("nginx", "http {\n  content_by_lua_block {\n    if x { y }\n  }\n}\n", {"directives": [{"block": {"directives": [{"block": {"directives": []}, "name": "content_by_lua_block"}]}, "name": "http"}]}),
    ("nginx", "upstream u { server a backup weight=2 max_fails=1; ip_hash; server b; }\nhttp { server { listen 80; } gzip on; }\n", {"directives": [{"block": {"directives": [{"name": "ip_hash"}, {"name": "server", "parameters": ["a", "max_fails=1", "weight=2", "backup"]}, {"name": "server", "parameters": ["b"]}]}, "name": "upstream", "parameters": ["u"]}, {"block": {"directives": [{"name": "gzip", "parameters": ["on"]}, {"block": {"directives": [{"name": "listen", "parameters": ["80"]}]}, "name": "server"}]}, "name": "http"}]}),
    ("nginx", "return 200 `a b`;", {"directives": [{"name": "return", "parameters": ["200", "`a b`"]}]}),
    ("properties", "a=1\nb = x\\ty\\n\nc\\ d : e\\=f\n#g\nh\n", {"a": "1", "b": "x\ty\n", "c d": "e=f", "h": ""}),
    ("properties", "a.b=${c}\nc=1\n", {"a.b": "${c}", "c": "1"}),
    ("properties", "a=${b} ${b}\nb=${c}\nc=1\n", {"a": "${b} ${b}", "b": "${c}", "c": "1"}),
    ("jsonc", '# x\n{"a": "#1" # y\n}\n', {"a": "#1"}),
    ("hcl2", 'a = "${var.x}"\nb = "a-${b ? "c" : "d"}-e"\nc = "%{ for x in y }${x}%{ endfor }"\n', {"a": "${var.x}", "b": "a-%{if b}c%{else}d%{endif}-e", "c": "%{for x in y}${x}%{endfor}"}),
    ("hcl2", 'a = "$${b} %%{c}"\n', {"a": "$${b} %%{c}"}),
    ("hcl2", 'a = "\\u00e9\\n\\t\\"x\\" \\U0001F600"\n', {"a": 'é\n\t"x" 😀'}),
    ("hcl2", "a = <<EOF\nx ${y}\n%{ if z }w%{ endif }\nEOF\n", {"a": "x ${y}\n%{if z}w%{endif}\n"}),
    ("hcl2", "a = <<-E\n    x\n    %{ for i in y ~}\n    - ${i}\n    %{ endfor ~}\n    z\nE\n", {"a": "x\n%{for i in y}    - ${i}\n%{endfor}    z\n"}),
    ("hcl2", "a = <<-E\n  x\n  ${~ y ~}\n  z\nE\n", {"a": "  x\n${y}  z\n"}),
    ("hcl2", 'a = "x ${~ y ~} \\n z"\n', {"a": "x${y}z"}),
    ("hcl2", 'a = "an\u0303os"\n', {"a": "a\u00f1os"}),
    ("hcl2", 'a = "${~ b ~}"\n', {"a": "${b}"}),
    ("hcl2", 'a = [for k, v in m : "${k}=${v}" if v != ""]\nb = {for k in l : k => upper(k)...}\n', {"a": '${[for k, v in m : "${k}=${v}" if v != ""]}', "b": "${{for k in l : k => upper(k)...}}"}),
    ("hcl2", 'a = b.*.c\nd = e[*].f\ng = h["i"].j[0]\n', {"a": "${b.*.c}", "d": "${e[*].f}", "g": '${h["i"].j[0]}'}),
    ("hcl2", "a = 1 + 2 * 3\nb = !c && (d || e)\nf = -g\nh = 7 % 2 >= 1\n", {"a": "${1 + 2 * 3}", "b": "${!c && (d || e)}", "f": "${-g}", "h": "${7 % 2 >= 1}"}),
    ("hcl2", 'a = f(1, "x", [2]...)\nb = p::q(1)\n', {"a": '${f(1, "x", [2]...)}', "b": "${p::q(1)}"}),
    ("hcl2", 'a = 1e3\nb = 0.5\nc = null\nd = ["x", 1, true]\n', {"a": 1000, "b": 0.5, "c": None, "d": ["x", 1, True]}),
    ("hcl2", 'locals {\n  a = {\n    "x y" = 1\n    z : 2\n  }\n}\n', {"locals": [{"a": {"x y": 1, "z": 2}}]}),
    ("hcl2", 'dynamic "x" {\n  for_each = y\n  content {\n    a = x.value\n  }\n}\n', {"dynamic": {"x": [{"content": [{"a": "${x.value}"}], "for_each": "${y}"}]}}),
    ("dockerfile", "# escape=`\nFROM a\nRUN b `\n  c\n", [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "run", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["b   c"]}]]),
    ("dockerfile", "FROM a\nHEALTHCHECK --interval=5m --timeout=3s CMD curl -f http://localhost/ || exit 1\nHEALTHCHECK NONE\n", [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "healthcheck", "Flags": ["--interval=5m", "--timeout=3s"], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["CMD", "curl -f http://localhost/ || exit 1"]}, {"Cmd": "healthcheck", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["NONE"]}]]),
    ("dockerfile", 'FROM a\nCMD ["b", "c"]\nSHELL ["/bin/bash", "-c"]\nSTOPSIGNAL SIGTERM\nUSER 1000:1000\nVOLUME /data /x\nWORKDIR /app\nEXPOSE 80/tcp 443\n', [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "cmd", "Flags": [], "JSON": True, "Stage": 0, "SubCmd": "", "Value": ["b", "c"]}, {"Cmd": "shell", "Flags": [], "JSON": True, "Stage": 0, "SubCmd": "", "Value": ["/bin/bash", "-c"]}, {"Cmd": "stopsignal", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["SIGTERM"]}, {"Cmd": "user", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["1000:1000"]}, {"Cmd": "volume", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["/data", "/x"]}, {"Cmd": "workdir", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["/app"]}, {"Cmd": "expose", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["80/tcp", "443"]}]]),
    ("dockerfile", "FROM a\n  # b\n## c\nUSER d\n", [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "comment", "Flags": None, "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["# b"]}, {"Cmd": "comment", "Flags": None, "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["# c"]}, {"Cmd": "user", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["d"]}]]),
    ("dockerfile", 'ARG V=1\nFROM a:${V} AS b\nARG X Y=2\nLABEL a="b c" d=e\nLABEL k v w\nENV K v w\n', [[{"Cmd": "arg", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["V=1"]}, {"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a:${V}", "AS", "b"]}, {"Cmd": "arg", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["X", "Y=2"]}, {"Cmd": "label", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a", '"b c"', "=", "d", "e", "="]}, {"Cmd": "label", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["k", "v w", ""]}, {"Cmd": "env", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["K", "v w", ""]}]]),
    ("dockerfile", 'FROM a\nADD --chown=1:2 --checksum=sha256:24454f830cdb571e2c4ad15481119c43b3cafd48dd869a9b2945d1036d1dc68d https://example.com/x /y\nCOPY ["a b", "/c"]\nRUN --mount=type=cache,target=/x --network=none b\n', [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "add", "Flags": ["--chown=1:2", "--checksum=sha256:24454f830cdb571e2c4ad15481119c43b3cafd48dd869a9b2945d1036d1dc68d"], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["https://example.com/x", "/y"]}, {"Cmd": "copy", "Flags": [], "JSON": True, "Stage": 0, "SubCmd": "", "Value": ["a b", "/c"]}, {"Cmd": "run", "Flags": ["--mount=type=cache,target=/x", "--network=none"], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["b"]}]]),
    ("dockerfile", "FROM a\nRUN <<EOF bash\necho b\nEOF\nCOPY <<x /y\nz\nx\n", [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["a"]}, {"Cmd": "run", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["<<EOF bash"]}, {"Cmd": "copy", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["<<x", "/y"]}]]),
    ("dockerfile", "FROM scratch\nMAINTAINER Jane <jane@example.com>\nONBUILD COPY . /app\n", [[{"Cmd": "from", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["scratch"]}, {"Cmd": "maintainer", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "", "Value": ["Jane <jane@example.com>"]}, {"Cmd": "onbuild", "Flags": [], "JSON": False, "Stage": 0, "SubCmd": "COPY", "Value": [".", "/app"]}]]),
]  # fmt: skip
REFUSED = [
    ("edn", '#inst "zork"', 1),
    ("edn", ")", 1),
    *(("edn", f"{{:a {number}}}", 1) for number in ("1e400", "9223372036854775808", "1/2", "01", "1.", "0x1F", "1a", "1e5N", ".5")),
    ("edn", '"x', 1),
    *(("edn", f"[{word}]", 1) for word in (":a|", "@", "a@b", "b/", "/y", "a/b/c", "::a", ":/", "\\ ", "\\newlin", "1|", '"\\q"', "#1", "#é|", "a`")),
    *(("edn", f'#inst "2020-01-01{rest}"', 1) for rest in ("", "-00:00:00Z", "T00:00:00:00Z", "T00:00:00", "T25:00:00Z")),
    ("edn", "# 1", 1),
    ("edn", "#a", 1),
    ("edn", "", 1),
    ("ini", '[a]\n"x = 1\n', 2),
    ("ini", '[a]\n"x" 1\n', 2),
    ("ini", "[a]\n= 1\n", 2),
    ("ini", "[]\n", 1),
    ("ini", "[a]\nb = `x\n", 2),
    ("nginx", "http { server { listen 80 } }", 1),
    ("nginx", "location a b c { }", 1),
    ("hcl2", 'a = "${b"\n', 1),
    ("hcl2", 'a = "\\q"\n', 1),
    ("hcl2", "a = b.0.1\n", 1),
    ("hcl2", 'a = "%{ if b }c"\n', 1),
    ("hcl2", "a = (1\n", 2),
    ("hcl2", "a = f(1\n", 2),
    *(("hcl2", f"a = <<E\nx\nE{end}", 1) for end in ("", " ", "\r")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "shape"), READ)
def test_a_file_is_read_in_conftests_shape(name, text, shape):
    found = parsers.parse(name, text.encode())

    assert json.loads(json.dumps(found)) == shape


def test_numbers_of_yaml_pass_through_a_float():
    """From a million on OPA shows them with an exponent."""
    document = parsers.parse(
        "yaml", b"[999999, 1000000, -12345678, 1e3, 0.5, 99999999999999999999]"
    )

    assert list(map(repr, document)) == [
        "999999",
        "1000000.0",
        "-12345678.0",
        "1000",
        "0.5",
        "1e+20",
    ]


@pytest.mark.parametrize(("name", "text", "line"), REFUSED)
def test_a_file_that_conftest_refuses_is_refused_with_its_line(name, text, line):
    with pytest.raises(ParseError) as error:
        parsers.parse(name, text.encode())

    assert error.value.line == line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('a = "\\e\\x41\\\\e"', {"a": "\x1bA\\e"}),
        ('a = {b = "}", # c\n c = [1,\n 2,],\n}', {"a": {"b": "}", "c": [1, 2]}}),
        ("a = [{b = 1,\n}, {}]", {"a": [{"b": 1}, {}]}),
        ("a = 07:32", {"a": "0000-01-01T07:32:00Z"}),
        ("a = 1979-05-27T07:32-07:00", {"a": "1979-05-27T07:32:00-07:00"}),
    ],
)
def test_toml_is_version_1_1(text, value):
    assert parsers.parse("toml", text.encode()) == value


@pytest.mark.parametrize("text", ["a = {,}", "a = {b = 1,,}", 'a = "\\q"', "a = 7:32", "a = {\n"])
def test_what_is_no_toml_of_any_version_is_refused(text):
    with pytest.raises(ParseError):
        parsers.parse("toml", text.encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":1} x', "invalid character 'x' after top-level value"),
        ('{"a":1}\n{"a":2}', "invalid character '{' after top-level value"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":"\x01"}', r"invalid character '\x01' in string literal"),
        ('["a"', "unexpected end of JSON input"),
        ("", "unexpected end of JSON input"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("[-Infinity]", "invalid character 'I' in numeric literal"),
    ],
)
def test_json_is_refused_in_the_words_of_go(text: str, words: str) -> None:
    with pytest.raises(ParseError) as refused:
        parsers.parse("json", text.encode())
    assert refused.value.message == f"unmarshal json: {words}"


@pytest.mark.parametrize(
    ("encoding", "codec", "text"),
    [
        ("ISO-8859-1", "cp1252", "é’"),
        ("iso-8859-15", "iso8859-15", "€"),
        ("windows-1252", "cp1252", "€"),
        ("US-ASCII", "ascii", "a"),
        ("Shift_JIS", "shift_jis", "あ"),
        ("KOI8-R", "koi8-r", "ж"),
        ("UTF8", "utf-8", "é"),
        ("UTF-16", "utf-16", "é"),
        ("ISO-8859-1", "utf-8-sig", "é"),
    ],
)
def test_xml_is_read_in_the_encoding_that_it_names(encoding: str, codec: str, text: str) -> None:
    """A mark at its beginning counts for more than what it says."""
    document = f'<?xml version="1.0" encoding="{encoding}"?><a>{text}</a>'
    assert parsers.parse("xml", document.encode(codec)) == {"a": text}


@pytest.mark.parametrize("parser", ["edn", "properties", "ini", "json", "yaml", "ignore"])
@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_says_the_encoding(parser: str, codec: str) -> None:
    """UTF-32's begins with that of UTF-16: names had NULs between their letters."""
    text = {"edn": '{:a "b"}', "json": '{"a": "b"}', "ini": "[s]\na = b\n"}.get(parser, "a: b\n")
    assert parsers.parse(parser, text.encode(codec)) == parsers.parse(parser, text.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.b = 1\n[a]\n", "Cannot declare a twice"),
        ("[a.b]\n[a.b]\n", "Cannot declare a.b twice"),
        ("[a]\nb = {}\n[a.b.c]\n", "Cannot"),
    ],
)
def test_a_name_of_a_toml_file_is_quoted_as_it_is_written(text: str, message: str) -> None:
    with pytest.raises(ParseError) as fault:
        parsers.parse("toml", text.encode())
    assert message in fault.value.message
    assert "(" not in fault.value.message
