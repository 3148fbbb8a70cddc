"""Texts, numbers and templates."""

from tests.webhook.rego.builtins.operand_cases import Raw, raw, table

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
