"""Schemas, certificates, tokens, GraphQL and modules: our answers beside the real OPA's."""

import datetime as dt
import ipaddress
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from tests.webhook.rego.builtins.calling import opa_answers, our_answer
from tests.webhook.rego.builtins.schema_cases import Generator

GRAPHQL_SCHEMA = """
type Query { a(x: Int!, y: [String], e: E, i: I): A  s: String u: U l: [Int] }
type A implements N { n: String a: A  c(z: Int): Int }
type B { n: Int }
interface N { n: String }
union U = A | B
enum E { ONE TWO }
input I { p: Int! q: String }
directive @d(k: Int!) on FIELD
"""
QUERIES = [
    *("{ s }", "{ zzzz }", "{ a { n } }", '{ a(x:"s") { n } }', "{ a(x:1.5) { n } }"),
    *("{ a(x:1) }", "{ a(x:1) { n(q:1) } }", "{ s @zz }", "{ s @d }", "{ s @d(k:1) @d(k:1) }"),
    *("{ ...F }", "{ s } fragment F on Query { s }", "query A { s } query A { s }"),
    *("query($v: Int) { s }", "query A($v: String) { a(x:$v) { n } }", "{ a(x:1,x:2) { n } }"),
    *("{ a(x:1,i:{p:1,p:2}) { n } }", "{ a(x:1,e:THREE) { n } }", "{ a(x:1,e:ONE) { n } }"),
    *("{ a(x:null) { n } }", "{ a(x:99999999999) { n } }", "{ u { ... on A { n } } }"),
    *("{ u { ... on Query { s } } }", "{ a(x:1) { n } a(x:2) { n } }", "mutation { m }"),
    *("{ __schema { types { name } } }", "{ __type { name } }", "{", "query", "{ a(x: ", "}"),
    *("{ a(x: [[1], {k: $v}]) @d(k: 1) { ...F ... on A { b: n } } }", '"x"', "{ a(x: 'x') }"),
    *("# c\nquery A(# v\n$a: Int # w\n) { # y\n f(# z\n a: # q\n 1) # e\n ... # r\n on T { g } }",),
    *('"d" query A { s }', '"d" { s }', '# a\n"d" # b\nquery A("v" $a: Int) { s }', '"" { s }'),
    *('"f" fragment F on Query { s } { ...F }', '# a\n"""b"""\nmutation { m }', '"x" "y" { s }'),
    *('query A(# a\n"v" # b\n$a: Int) { a(x: $a) { n } }', 'query A($a: Int "v") { s }'),
    *(r'{ a(x:1,y:"\u{1F600}") { n } }', r'{ a(x:1,y:"\uD83D\uDE00") { n } }', r'{ s(a:"\u{}") }'),
    *(
        r'{ s(a:"\uD83Dx") }',
        r'{ s(a:"\uD83D\u0041") }',
        r'{ s(a:"\u{D800}") }',
        r'{ s(a:"\u{0") }',
    ),
    *(r'{ s(a:"\u{110000}") }', r'{ s(a:"\u{00000041}") }', r'{ s(a:"\u{000000041}") }'),
    *(r'{ s(a:"\uDE00\uD83D") }', r'{ s(a:"\u{g}") }', '{ s(a:"\x07\x7f\x85") }'),
    *(
        "{ u { ... on A { k: n } ... on B { k: n } } }",
        "{ u { ... on A { k: a { n } } ... on B { k: n } } }",
    ),
    *("{ u { ... on A { ...C } ... on B { k: n } } } fragment C on A { k: n }",),
    *("{ ...F } fragment F on Query { ...G } fragment G on Query { ...F }",),
    *("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",),
]
SCHEMAS = [
    *("", "type A { a: Int }", "type Query { a: Zed }", "type Query { a: Int a: Int }"),
    *("extend type Query { a: Int }", "type A { __a: Int }", "input I { i: I! }", "enum E { A A }"),
    *("union U = Zed", "interface I { a: Int } type Q implements I { b: Int }", "scalar Int"),
    *("type Q { a: Int @deprecated(reason: 1) }", "directive @d(a: Int @d) on ARGUMENT_DEFINITION"),
    *("schema { query: A } type A { a: Int }", "extend union U = Q type Q { a: Int }", "type Q {"),
    '# c\n"d" # e\ntype A { # y\n "desc" # k\n a(# o\n b: [Int] = # l\n [# m\n 1]): Int # z\n }\n#e',
    '"""\n  block\n    string\n"""\nenum E @x(y: """a""") { "v" V }',
    *("extend directive @d @e directive @e on DIRECTIVE_DEFINITION directive @d on FIELD",),
    *("extend directive @d @e", "extend directive @d", "# a\nextend # b\ndirective @deprecated @e"),
    *("directive @d @deprecated on FIELD", "directive @d @d on FIELD | DIRECTIVE_DEFINITION"),
    *("directive @d @deprecated(reason: 1) repeatable on FIELD", "directive @d @skip on FIELD"),
    *("directive @d @deprecated on FIELD extend directive @d @deprecated",),
    *("directive @d(a: Int a: Int) on FIELD", "type A { a(b: Int b: Int): Int }", "union U"),
    *("interface I { a: Int } extend interface J implements I interface J { a: Int }",),
    *("interface I { a: Int } extend interface J implements I { b: Int } interface J { a: Int }",),
    *(
        "interface I { a: Int } type A implements I & I { a: Int }",
        "interface I implements I { a: Int }",
    ),
    *(
        "enum E { __A }",
        "enum E { true }",
        'type A { a: Int @deprecated(reason: "a", reason: "b") }',
    ),
    *(
        "input I { a: J = {b: 1, b: 2} } input J { b: Int }",
        "input I { a: [J] = [{b: 1}, {b: 2, b: 3}] } input J { b: Int }",
    ),
    *("type A { a(b: I = {c: 1, c: 2}): Int } input I { c: Int }",),
    *("directive @d(a: I) on OBJECT type A @d(a: {c: 1, c: 2}) { a: Int } input I { c: Int }",),
    *("schema { query: A query: A } type A { a: Int }", "schema { query: E } enum E { A }"),
    *("schema { query: A } extend schema { query: A } type A { a: Int }", "enum Mutation { A }"),
    *(
        "extend schema { query: A } type A { a: Int }",
        "scalar Query",
        "input Subscription { a: Int }",
    ),
    *("schema { query: A mutation: I } type A { a: Int } input I { a: Int }",),
    *("directive @skip(if: Int) on FIELD directive @skip(if: Boolean) on FIELD type A { a: Int }",),
    *(
        '"" extend type A { a: Int } type A { b: Int }',
        '"d" extend type A { a: Int } type A { b: Int }',
    ),
    *(
        '# a\n"d" # b\ndirective # c\n@d # e\n@e on # f\nFIELD',
        'scalar S @specifiedBy(url: "\\u{41}")',
    ),
]
MODULES = [
    "package a\np contains x if { some x in [1, 2]; not x == 2 } else := 3",
    'package a.b\nimport data.x as y\n# c\nf(a, b) := {"k": [i | i := a[_]]} if every v in b { v }',
    'package a\ndefault p := 1.50\nr.x[y] if y := {1, "s", null}\nq := $`t {1 + 2} u`',
]
TOKENS = [
    *("a", "a.b", "a.b.c", "!!!!.b.c", "e30.b.c", "e30.W10.c", "e30.e30.c", "e30.e30.YWI"),
    *("W10.e30.YWI", "e30.bm9wZQ.YWI", "bm9wZQ.bm9wZQ.YWI", "..", "eyJjcml0IjpbXX0.e30.YWI"),
]
WEB_KEYS = [
    *("xx", "", "{}", '{"keys":[]}', '{"keys":1}', '{"kty":"RSA"}', '{"kty":"zz"}'),
    *('{"kty":"oct","k":"AQ"}', '{"kty":"oct"}', '{"kty":"oct","k":"AQ","kid":1}'),
    *('{"kty":"RSA","n":"AQ","e":"AQAB"}', '{"kty":"RSA","n":"A?Q","e":"AQAB"}'),
    *('{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}', '{"kty":"OKP","crv":"X","x":"AQ"}'),
    '{"keys":[{"kty":"zz"}]}',
    "-----BEGIN FOO-----\nYWJj\n-----END FOO-----",
]


@pytest.fixture
def differences(program, tmp_path):
    """Compares all cases in one run of OPA; what differs, in words."""

    def compare(cases):
        answers = opa_answers(str(program("opa")), cases, tmp_path)
        return [
            f"{case}\n  OPA:  {answer}\n  ours: {ours}"
            for case, answer in zip(cases, answers, strict=True)
            if (ours := our_answer(case)) != answer
        ]

    return compare


def case(name, *operands):
    """Returns a case, its operands as JSON."""
    return name, tuple(json.dumps(operand) for operand in operands)


def certificate(key, *, extensions=(), pss=False):
    """A certificate with every kind of name."""
    attributes = [
        (NameOID.COUNTRY_NAME, "US"),
        (NameOID.COMMON_NAME, "a <b> & c"),
        (NameOID.ORGANIZATION_NAME, "Ö"),
        (NameOID.SERIAL_NUMBER, "77"),
        (NameOID.DOMAIN_COMPONENT, "dc"),
    ]
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(2**100 + 5)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2060, 1, 1, 1, 2, 3, tzinfo=dt.UTC))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    scheme = padding.PSS(padding.MGF1(hashes.SHA256()), 32) if pss else None
    signed = builder.sign(key, digest, rsa_padding=scheme)
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def extensions():
    """Returns an extension of each kind that Go reads, and an unknown one."""
    names = [
        x509.DNSName("a.b"),
        x509.IPAddress(ipaddress.ip_address("1.2.3.4")),
        x509.IPAddress(ipaddress.ip_address("::1")),
        x509.RFC822Name("a@b.c"),
        x509.UniformResourceIdentifier("https://u:p@a.b/c%20d?q#f"),
        x509.UniformResourceIdentifier("urn:x:y"),
    ]
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ObjectIdentifier("1.2.3.4")]
    point = x509.DistributionPoint(
        [x509.UniformResourceIdentifier("http://crl/x")], None, None, None
    )
    within = [
        x509.DNSName(".a.b"),
        x509.IPAddress(ipaddress.ip_network("10.0.0.0/8")),
        x509.RFC822Name("b.c"),
        x509.UniformResourceIdentifier("host.com"),
    ]
    policy = x509.PolicyInformation(ObjectIdentifier("1.2.3.4.5"), None)
    unknown = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4.6"), b"\x05\x00")
    return [
        (x509.SubjectAlternativeName(names), False),
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.ExtendedKeyUsage(usage), False),
        (x509.CRLDistributionPoints([point]), False),
        (x509.CertificatePolicies([policy]), False),
        (x509.NameConstraints(within, [x509.DNSName("x.y")]), True),
        (x509.PolicyConstraints(3, None), True),
        (x509.InhibitAnyPolicy(0), True),
        (unknown, True),
    ]


def private_pem(key, form=serialization.PrivateFormat.PKCS8):
    """A private key's text."""
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key.private_bytes(encoding, form, plain).decode()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_schemas_find_the_faults_that_gojsonschema_finds(program, seed, tmp_path):
    """In any order: Go walks the members of objects at random."""
    generator = Generator(seed)
    cases = []
    while len(cases) < 400:
        schema = generator.schema()
        if '"#/definitions' in json.dumps(schema.get("definitions", {})):
            continue  # a reference among definitions may recur without end, which ends OPA
        cases.append(case("json.match_schema", generator.document(), schema))
    answers = opa_answers(str(program("opa")), cases, tmp_path)
    differing = []
    for sample, answer in zip(cases, answers, strict=True):
        ours = our_answer(sample)
        if answer[0] != "ok" or ours[0] != "ok":
            same = answer[0] == ours[0]  # of two faults of a schema either may come first
        else:
            (valid, faults), (our_valid, our_faults) = json.loads(answer[1]), json.loads(ours[1])
            same = valid == our_valid and in_order(faults) == in_order(our_faults)
        if not same:
            differing.append(f"{sample}\n  OPA:  {answer}\n  ours: {ours}")
    assert not differing, "\n".join(differing[:5])


def in_order(faults):
    """Faults in an order of their own."""
    return sorted(faults, key=lambda fault: sorted(fault.items()))


@pytest.mark.slow
def test_certificates_and_keys_are_shown_as_go_shows_them(differences):
    curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    plain = rsa.generate_private_key(65537, 2048)
    texts = [
        certificate(curve, extensions=extensions()),
        certificate(edwards),
        certificate(plain, pss=True),
        certificate(plain),
    ]
    keys = [private_pem(curve), private_pem(edwards), private_pem(plain)]
    traditional = serialization.PrivateFormat.TraditionalOpenSSL
    keys += [private_pem(curve, traditional), private_pem(plain, traditional)]
    cases = [case("crypto.x509.parse_certificates", text) for text in [*texts, "".join(texts), "x"]]
    for key in [*keys, "", "eHh4eHg="]:
        cases.append(case("crypto.x509.parse_rsa_private_key", key))
        cases.append(case("crypto.parse_private_keys", key))
    cases += [
        case("crypto.x509.parse_keypair", text, key)
        for text in [*texts, keys[0]]
        for key in [*keys, texts[0]]
    ]
    cases += [
        case("crypto.x509.parse_and_verify_certificates", "".join(chain))
        for chain in (texts[1:3], [texts[3], texts[3]], texts[:1], [texts[0], texts[0]])
    ]
    assert not differences(cases)


@pytest.mark.slow
def test_tokens_and_their_keys_are_judged_as_opa_judges_them(differences):
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = public.public_bytes(serialization.Encoding.PEM, form).decode()
    token = "eyJhbGciOiJSUzI1NiJ9.e30.YWJj"
    cases = [case("io.jwt.decode", text) for text in TOKENS]
    cases += [case("io.jwt.verify_es256", text, pem) for text in TOKENS]
    cases += [case("io.jwt.verify_hs256", text, "x") for text in TOKENS]
    cases += [case("io.jwt.decode_verify", text, {"secret": "x"}) for text in TOKENS]
    cases += [case("io.jwt.verify_rs256", token, key) for key in WEB_KEYS]
    key = {"kty": "oct", "k": "AQ"}
    for headers in ({"alg": "HS256"}, {"alg": "none"}, {"alg": 1}, {}, {"alg": "ES256"}):
        cases.append(case("io.jwt.encode_sign", headers, {"a": 1.50, "b": "<é>"}, key))
    for head, payload in (("", ""), ("e", "{}"), ('{"alg":"HS256"}', "{"), ("[1]", "{")):
        cases.append(case("io.jwt.encode_sign_raw", head, payload, json.dumps(key)))
    assert not differences(cases)


@pytest.mark.slow
def test_graphql_is_parsed_and_judged_as_gqlparser_does(differences):
    cases = [case("graphql.is_valid", query, GRAPHQL_SCHEMA) for query in QUERIES]
    cases += [case("graphql.parse", query, GRAPHQL_SCHEMA) for query in QUERIES[-9:]]
    cases += [case("graphql.parse_query", query) for query in QUERIES]
    for schema in SCHEMAS:
        cases.append(case("graphql.schema_is_valid", schema))
        cases.append(case("graphql.parse_schema", schema))
        cases.append(case("graphql.parse", "{ a }", schema))
    differing = [words for words in differences(cases) if "graphql.parse'" not in words]
    assert not differing, "\n".join(differing[:5])


@pytest.mark.slow
def test_modules_are_opas_trees(differences):
    assert not differences([case("rego.parse_module", "x.rego", text) for text in MODULES])
