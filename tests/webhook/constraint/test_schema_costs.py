"""Estimated costs of schema rules: refused as by the API server, with its messages."""

import json

from tests.cluster import ApiError, Cluster
from tests.webhook.constraint.schema_rules import entries, fields, items, ours, rules, text
from tests.webhook.constraint.schemas import CRDS, crd_of
from webhook.cel.check.environment import Environment
from webhook.cel.check.objects import schema_type
from webhook.cel.engine import checked_expression
from webhook.cel.static_cost import static_cost

PARAMETERS = "spec.validation.openAPIV3Schema.properties[spec].properties[parameters]"
INT = {"type": "integer"}


SCHEMAS = (
    # Texts with and without a length.
    text(None, "self.size() > 0"),
    text(None, "self == 'x'"),
    text(None, "self.startsWith('x')"),
    text(None, "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"),
    text(1000, "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"),
    text(None, "self.contains(self)"),
    text(20000, "self.contains(self)"),
    text(None, "self.matches(self)", enum=["a", "bb"]),
    text(None, "self.lowerAscii().upperAscii().trim() == self"),
    text(None, "self.replace('', self) == self"),
    text(None, "self + self + self == self"),
    text(None, "timestamp(self) > timestamp('2020-01-01T00:00:00Z')"),
    text(None, "self > duration('1s')", format="duration"),
    text(None, "self.size() > 0 && self == self", format="byte"),
    # Lists, maps and what is within them.
    items(text(), None, "self.all(x, x.matches('^a'))"),
    items(text(), 100, "self.all(x, x.matches('^a'))"),
    items(text(50), None, "self.all(x, x.matches('^a'))"),
    items(text(50), 100, "self.all(x, x.matches('^a'))"),
    items(text(None, "self.matches('^a')")),
    items(text(10, "self.matches('^a')"), 100),
    items(INT, None, "self.all(x, self.exists(y, x == y))"),
    items(INT, 100, "self.all(x, self.exists(y, x == y))"),
    items(INT, 300, "self.all(x, self.all(y, self.exists(z, x + y == z)))"),
    items(INT, None, "self.isSorted()"),
    items(text(), None, "self.isSorted()"),
    items(text(5), None, "self.map(x, x + 'a').filter(x, x.size() > 2).size() > 0"),
    items(items(items(INT)), None, "self.all(x, x.all(y, y.all(z, z > 0)))"),
    items(items(items(INT, 10), 10), 10, "self.all(x, x.all(y, y.all(z, z > 0)))"),
    items(fields(a=text()), None, "self.all(x, has(x.a) && x.a == 'b')"),
    items(fields(a=text(), required=["a"]), None, "self.all(x, x.a == 'b')"),
    entries(text(), None, "self.all(k, self[k] == 'a')"),
    entries(text(3), 10, "self.all(k, self[k].matches('^a*$') && k.matches('^b*$'))"),
    entries(items(INT, None, "self.all(x, x > 0)")),
    entries(entries(fields("has(self.a)", a=INT), 5), 5),
    # Quantities, addresses, sets, versions, links, formats.
    text(None, "quantity(self).isGreaterThan(quantity('1'))"),
    text(30, "quantity(self) != quantity('1')"),
    items(text(None, "isQuantity(self) && quantity(self) == quantity('1')"), 10),
    items(text(40), 500, "self.all(x, isIP(x) && ip(x).family() == 4)"),
    text(None, "cidr('10.0.0.0/8').containsIP(self) && cidr('10.0.0.0/8').containsCIDR(self)"),
    items(text(20), 1000, "sets.contains(self, self) && sets.equivalent(self, ['a'])"),
    items(text(20), 3000, "self.sort() == self.distinct()"),
    text(None, "isURL(self) && url(self).getHost() == 'a' && url(self) == url(self)"),
    text(200, "!format.dns1123Label().validate(self).hasValue()"),
    # Old values, and optional ones.
    items(INT, None, "self.all(x, x in oldSelf)"),
    {
        **items(INT, 1000),
        **rules("oldSelf.hasValue() && self.all(x, x in oldSelf.value())", optionalOldSelf=True),
    },
    fields("self.?a.orValue('') == 'x'", a=text()),
    fields("self.?a.optMap(x, x + x).orValue('').size() > 0", a=text()),
    fields("self.?a[?'x'].orValue([]).all(x, x > 1)", a=entries(items(INT, 5), 5)),
    # Rules at several levels, and all of a schema together.
    fields("self.a.all(x, x > 0)", "size(self.a) > 1", a=items(INT, 5, "self.all(x, x < 5)")),
    fields(
        **{f"p{at}": items(INT, 500_000, "self.all(x, x < 5 && x > 0)") for at in range(40)},
    ),
    fields(**{f"p{at}": items(INT, 1_000_000, "self.all(x, x < 5)") for at in range(20)}),
    fields(**{f"p{at}": text(None, "self.matches('^aaaa$')") for at in range(70)}),
    fields(**{f"p{at}": items(text(5, "self == 'a'"), 90_000) for at in range(150)}),
    # Messages.
    {"type": "string", **rules("self == 'a'", messageExpression="self.replace('a', self)")},
    {"type": "string", **rules("self == 'a'", messageExpression="self.contains(self) ? 'a' : 'b'")},
    # Schemas without bounds, and odd ones.
    {
        "type": "object",
        "properties": {"a": text(None, "self == 'a'")},
        "additionalProperties": True,
    },
    {**fields(a=INT), "x-kubernetes-preserve-unknown-fields": True, **rules("self.a > 1")},
    items({"x-kubernetes-int-or-string": True}, None, "self.all(x, type(x) == int || x == 'a')"),
    items({"x-kubernetes-int-or-string": True, **rules("string(self).matches('^a')")}),
    items(text(None, "self == 'a'"), 0),
    text(-1, "self.contains(self)"),
    items(
        fields("self.metadata.name == 'a'")
        | {"x-kubernetes-embedded-resource": True}
        | {"x-kubernetes-preserve-unknown-fields": True}
    ),
    # Both ranges are places that go on from x: cel-go takes the first for the second.
    items(fields(b=items(INT), c=text(1)), 100, "self.all(x, x.b.all(y, x.c == 'a' && y > 0))"),
    items(fields(b=items(INT, 3), c=items(INT)), 100, "self.all(x, x.b.all(y, y in x.c))"),
)


def theirs(cluster: Cluster, schema):
    """Returns the API server's refusals of a schema, each as one text."""
    try:
        cluster.api.request("POST", f"{CRDS}?dryRun=All", crd_of("Asked", schema))
    except ApiError as error:
        if error.status != 422:
            raise
        causes = json.loads(error.body)["details"]["causes"]
        return [f"{cause['field']}: {cause['message']}" for cause in causes]
    return []


RICH = fields(
    s=text(20),
    t=text(7),
    e=text(None, enum=["a", "bcd"]),
    d=text(None, format="date-time"),
    w=text(None, format="duration"),
    y=text(9, format="byte"),
    n=INT,
    f={"type": "number"},
    b={"type": "boolean"},
    i={"x-kubernetes-int-or-string": True, "maxLength": 6},
    l=items(text(11), 13),
    k=items(INT, 17),
    o=items(fields(a=text(3), b=items(text(2), 5), c=items(INT, 4), d=INT), 6),
    m=entries(text(8), 10),
    r=entries(items(INT, 3), 7),
    z=items(items(items(text(1), 2), 3), 4),
    namespace=text(5),
    **{"a-b": text(4), "x.y": INT},
)

EXPRESSIONS = (
    "self.s == self.t",
    "self.s != 'abcdefghijklmnopqrstuvwxyz'",
    "self.s < self.t && self.s >= 'x'",
    "self.n == 1 || self.f > 1.5 && !self.b",
    "self.d > timestamp('2020-01-01T00:00:00Z') && self.d == self.d",
    "self.w < duration('1h') && self.w == self.w && self.w != self.w",
    "self.y == self.y && self.y < b'x' && string(self.y) == 'x'",
    "self.i == 'x' || self.i == 1 || type(self.i) == int",
    "string(self.i).size() > 2 && int(self.i) > 1",
    "self.i + self.i == 'x'",
    "self.e.matches('^a') && self.e.size() > 1",
    "has(self.s) && has(self.o) && size(self.l) > 1",
    "self.namespace == 'x' || self.__namespace__ == 'y'",
    "self.a__dash__b == 'x' && self.x__dot__y == 1",
    "self.l[0] == 'x' && self.l[self.n] == self.s",
    "self.m['a'] == 'x' && self.m.a == 'x' && 'a' in self.m",
    "self.s in self.l && self.n in self.k && self.n in [1, 2, 3]",
    "self.l.all(x, x == self.s) && self.l.exists(x, x.startsWith('abc'))",
    "self.l.exists_one(x, x.endsWith(self.t))",
    "self.l.map(x, x + 'suffix').all(y, y.matches('^[a-z]+$'))",
    "self.l.map(x, x.size() > 1, x + x).exists(y, y == 'abc')",
    "self.l.filter(x, x.size() > 3).map(y, y.contains('abcdefghijkl')) == [true]",
    "self.l.map(x, [x, x]).all(y, y.all(z, z == 'abcdefghijklmn'))",
    "self.l.map(x, {'a': x}).all(y, y.a == 'abcdefghijklmn')",
    "self.l.map(x, x == 'a').size() > 1",
    "self.m.all(k, k == self.m[k]) && self.m.exists(k, k.matches('^abcdefg'))",
    "self.m.map(k, self.m[k]).all(v, v == 'abcdefghijklmnopqrst')",
    "self.r.all(k, self.r[k].all(x, x > 1))",
    "self.r.all(k, v, v.all(x, x > 1) && k == 'abcdefghijklmn')",
    "self.l.all(i, x, i > 1 && x == 'abcdefghijklmnopqrst')",
    "self.l.exists(i, x, i > 1 && x == 'abcdefghijklmnopqrst')",
    "self.l.existsOne(i, x, i > 1 && x == 'abcdefghijklmnopqrst')",
    "self.l.transformList(i, x, i > 1, x + x).all(y, y == 'abcdefghijklmnopqrst')",
    "self.m.transformMap(k, v, v + k).all(k, v, v == k)",
    "self.m.transformMap(k, v, k != 'a', v + k)['a'] == 'abcdefghijkl'",
    "self.m.transformMapEntry(k, v, {v: k}).size() > 1",
    "self.o.all(x, x.b.all(y, y in x.b))",
    "self.o.all(x, x.b.all(y, x.c.all(z, z > x.d)))",
    "self.o.all(x, x.c.exists(y, y > 1) && x.b.exists(y, y == x.a))",
    "self.o.all(x, self.o.all(y, x.a != y.a || x.b == y.b))",
    "self.o.all(x, y, y.b.all(z, z == y.a) && y.c.all(z, z > x))",
    "self.o.map(x, x.b).all(y, y.all(z, z == 'abcdefg'))",
    "self.o.map(x, x.a) == self.l && self.o.filter(x, x.d > 1) == self.o",
    "self.z.all(x, x.all(y, y.all(z, z == 'abcdefgh')))",
    "self.z.all(x, x == self.z[0] && x[0] == self.z[0][0] && x[0][0] == 'abcdefghi')",
    "self.z.flatten().flatten().all(x, x == 'abcdefghijk')",
    "dyn(self.z).flatten(2).size() > 1",
    "(self.n > 1 ? self.s : self.t) == 'abcdefghijklmnopqrstuvwxyz'",
    "(self.n > 1 ? self.l : [self.t]).all(x, x == 'abcdefghijklmnopqrstuvwxyz')",
    "(self.l + [self.t] + self.l).all(x, x == 'abcdefghijklmnopqrstuvwxyz')",
    "[self.s, self.t, 'x'].all(x, x.matches('^abcdef'))",
    "{self.s: self.t, 'x': 'yy'}.all(k, v, k.matches(v))",
    "{'a': 1}.a == 1 && {'a': self.s}['a'] == 'abcdefghijklmnopqrstuvwxyz'",
    "[].all(x, x == 1) && {}.all(x, x == 1) && [1, 2] == self.k",
    "self.s.matches(self.t) && matches(self.s, self.t)",
    "self.s.contains(self.t) && self.s.indexOf(self.t) > 1 && self.s.lastIndexOf('a') > 1",
    "self.l.indexOf('x') > 1 && self.k.indexOf(3) > 1 && self.l.lastIndexOf(self.s) > 1",
    "self.s.replace('a', 'bcd').matches('^abcdef') && self.s.replace('', 'x') == self.s",
    "self.s.replace('abc', 'b') == self.s && self.s.replace('a', self.t, 2) == self.s",
    "self.s.replace(self.t, 'a').replace(self.t, self.t) == 'abcdefghijklmnopqrstuvwxyz'",
    "self.s.split(',').all(x, x == 'abc') && self.s.split(',', 3).size() > 1",
    "self.s.split(',').join(';') == self.s",
    "self.l.join() == self.s && self.l.join('--') == 'x' && self.l.join(self.t) == self.s",
    "self.s.lowerAscii() == self.s.upperAscii() && self.s.trim() == self.s.substring(1)",
    "self.s.charAt(1) == 'a' && strings.quote(self.s) == self.s",
    "'%s and %d'.format([self.s, self.n]) == 'abc'",
    "self.s.find('[a-z]+') == 'abc' && self.s.findAll('[a-z]+', 3).all(x, x == 'abcd')",
    "bytes(self.s) == b'abc' && string(bytes(self.s)) == 'abc' && string(self.n) == self.s",
    "self.k.sum() > 1 && self.k.min() > 1 && self.k.max() > 1 && self.k.isSorted()",
    "self.l.min() == 'a' && self.l.max() == 'a' && self.l.isSorted()",
    "self.l.map(x, x + 'abc').isSorted()",
    "self.o.map(x, x.d).sum() > 1",
    "self.l.sort() == self.l && self.k.sort() == self.k && self.l.distinct() == self.l",
    "self.o.sortBy(x, x.a).all(x, x.a == 'abc') && self.o.sortBy(x, x.d)[0].d == 1",
    "self.l.reverse().all(x, x == 'abc') && self.l.slice(1, 3) == ['a'] && self.l.slice(1, self.n) == []",
    "lists.range(4).all(x, x in self.k) && self.l.first().hasValue() && self.l.last().orValue('') == 'a'",
    "sets.contains(self.l, ['a', 'b']) && sets.intersects(self.l, self.l)",
    "sets.equivalent(self.k, [1, 2, 3]) && sets.equivalent([self.n], self.k)",
    "quantity(self.s) == quantity(self.t) && quantity(self.s).isLessThan(quantity('1Mi'))",
    "isQuantity(self.s) && quantity(self.s).add(quantity('1')).sub(1).asInteger() > 1",
    "isIP(self.s) && ip(self.s) == ip(self.t) && ip(self.s).isLoopback() && ip.isCanonical(self.s)",
    "isCIDR(self.s) && cidr(self.s).containsIP(self.t) && cidr(self.s).containsIP(ip(self.t))",
    "cidr(self.s).containsCIDR(self.t) && cidr(self.s).containsCIDR(cidr(self.t))",
    "cidr(self.s).ip().family() == 4 && cidr(self.s).masked().prefixLength() == 8",
    "isURL(self.s) && url(self.s) == url(self.t) && url(self.s).getHost() == 'abc'",
    "url(self.s).getQuery()['a'].all(x, x == 'abc') || url(self.s).getPort() == self.t",
    "isSemver(self.s) && semver(self.s) == semver(self.t) && semver(self.s).major() > 1",
    "!format.dns1123Label().validate(self.s).hasValue() && format.named('uuid').hasValue()",
    "format.uuid() == format.uri() || format.named(self.s).optMap(x, x.validate(self.t)).hasValue()",
    "self.?s.orValue('x') == 'abc' || self.?o[?1].?a.hasValue()",
    "self.?n.orValue(1) == 1 || self.?n.optMap(x, x + 1).orValue(2) > 2",
    "self.?n.optFlatMap(x, optional.of(x + 1)).value() > 1 || optional.none().hasValue()",
    "self.l[?0].hasValue() && self.m[?'a'].hasValue() && optional.ofNonZeroValue(self.n).hasValue()",
    "[?self.?n, 1].all(x, x > 1) && {?'a': self.?n}.size() == 1",
    "optional.of(self.n) == optional.of(1)",
    "oldSelf.s == self.s && self.l.all(x, x in oldSelf.l) && self.o == oldSelf.o",
    "dyn(self.l).all(x, x == 'abc' && dyn(self.n) + 1 == 2)",
    "dyn(self.o)[0].a == 'x' || dyn(self.m).a.b == 'x' || dyn(1) in [1, 2]",
    "timestamp(self.s).getFullYear() > 1 && duration(self.s).getSeconds() > 1 && self.d - self.d < self.w",
    "double(self.s) > 1.0 && int(self.s) > 1 && uint(self.n) > 1u && bool(self.s) && -self.n < 1",
    "self.l.all(x, self.l.all(x, x == 'abcdefghijklmn') && x == 'abcdefghijklmn')",
    "self.l.all(self, self == 'abcdefghijklmn') && self.s == self.t",
    "type(self.n) == int && type(self.s) == string && type(self.l) == list",
)
CALLS_MAX = 20


def in_as_many(of, rule, times):
    """A rule about something in a list of so many."""
    return items({**of, **rules(rule)}, times, **{"x-kubernetes-list-map-keys": ["n"]}) | {
        "x-kubernetes-list-type": "map"
    }


def estimated(of, rule):
    known = schema_type(of, is_root=False)
    names = {"self": known.type, "oldSelf": known.type}
    return static_cost(checked_expression(rule, Environment(names, known.messages)), known.declared)


def test_a_rule_is_refused_for_its_cost_in_the_words_of_the_api_server(cluster: Cluster):
    different = []
    for schema in SCHEMAS:
        whole = {"type": "object", "properties": {"u": schema}}
        mine, causes = ours(whole), theirs(cluster, whole)
        exceeding = [one for one in causes if "exceeds budget" in one]
        if (
            bool(mine) != bool(causes)
            or not all(one in mine for one in exceeding)
            or mine.count("exceeds budget") != len(exceeding)
            # Which of those that cost the same are told is by chance there.
            or mine.count("contributed to") != sum("contributed to" in one for one in causes)
        ):
            different.append((schema, mine, causes))
    assert different == []


def test_estimates_are_those_of_the_api_server_to_the_unit(cluster: Cluster):
    """Each rule is in a list so long that it costs a little too much: the factor has six digits."""
    required = RICH | {"required": ["n"]}
    properties = {}
    for at, rule in enumerate(EXPRESSIONS):
        cost = estimated(required, rule)
        assert cost, rule
        properties[f"p{at}"] = in_as_many(required, rule, 10_000_000 // cost + 1)
    different = []
    for begin in range(0, len(EXPRESSIONS), CALLS_MAX):
        part = dict(list(properties.items())[begin : begin + CALLS_MAX])
        whole = {"type": "object", "properties": part}
        mine, causes = ours(whole), theirs(cluster, whole)
        assert not [one for one in causes if "compilation failed" in one]
        different += [one for one in causes if "exceeds budget" in one and one not in mine]
        for name in part:
            rule = EXPRESSIONS[int(name[1:])]
            if not any(f"[{name}]" in one and "exceeds budget" in one for one in causes):
                different.append((name, rule))
    assert different == []
