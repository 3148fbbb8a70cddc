"""Times, zones and layouts."""

from tests.webhook.rego.builtins.operand_cases import table

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
