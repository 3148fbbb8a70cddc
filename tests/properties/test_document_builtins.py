"""Built-ins that parse documents of strangers: any input ends in a value or in the module's errors."""

import base64
import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.rego.builtins.calling import call, fault
from webhook.golang import url as go_url
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.text import json_text
from webhook.rego.run.values import UNDEFINED

UNTIMED = settings(deadline=None)  # a busy machine is no fault

KEY = ec.derive_private_key(7, ec.SECP256R1())


def _certificate():
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("a.b"), x509.UniformResourceIdentifier("https://a.b/c")]
    )
    limits = x509.NameConstraints([x509.DNSName(".b")], None)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2040, 1, 1, tzinfo=dt.UTC))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(limits, critical=True)
        .sign(KEY, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


CERTIFICATE = _certificate()
PRIVATE = KEY.private_bytes(
    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


def survives(name, *operands):
    """Call the built-in: an error of its own or a value of Rego; others are the test's failure."""
    try:
        answer = call(name, *operands)
    except (BuiltinError, EvaluationError):
        return
    assert answer is UNDEFINED or json_text(answer)


def mutated(data):
    """The bytes with some replaced, some removed and some put in."""
    edit = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 3), st.binary(max_size=3))

    def apply(edits):
        found = bytearray(data)
        for at, removed, added in edits:
            found[at : at + removed] = added
        return bytes(found)

    return st.lists(edit, min_size=1, max_size=4).map(apply)


@UNTIMED
@given(mutated(CERTIFICATE))
def test_damaged_certificates_end_in_an_error_or_a_value(data):
    text = base64.b64encode(data).decode()
    survives("crypto.x509.parse_certificates", text)
    survives("crypto.x509.parse_certificate_request", text)
    survives("crypto.x509.parse_and_verify_certificates", base64.b64encode(data * 2).decode())


@UNTIMED
@given(mutated(PRIVATE), st.sampled_from(["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]))
def test_damaged_keys_end_in_an_error_or_a_value(data, label):
    body = base64.b64encode(data).decode()
    pem = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    for name in ("crypto.x509.parse_rsa_private_key", "crypto.parse_private_keys"):
        survives(name, pem)
    survives("crypto.x509.parse_keypair", base64.b64encode(CERTIFICATE).decode(), pem)


WORDS = st.sampled_from(
    [
        *("query", "mutation", "fragment", "on", "type", "interface", "enum", "input", "union"),
        *("schema", "extend", "directive", "implements", "scalar", "repeatable", "QUERY", "a", "B"),
        *("{", "}", "(", ")", "[", "]", ":", "=", "!", "|", "&", "@", "$", "...", "# c\n", "\n"),
        *('"x"', '"""y"""', "1", "1.5", "true", "null", "Int", "\\", '"', "\ufeff", ","),
    ]
)


@UNTIMED
@given(st.lists(WORDS, max_size=30).map(" ".join))
def test_any_graphql_ends_in_an_error_or_a_value(text):
    survives("graphql.parse_query", text)
    survives("graphql.parse_schema", text)
    survives("graphql.schema_is_valid", text)
    survives("graphql.is_valid", text, "type Query { a(b: [Int!]): Query }")
    survives("graphql.is_valid", "{ a }", text)


KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "anyOf", "not", "$ref", "enum", "const", "required"),
        *("minimum", "multipleOf", "maxLength", "pattern", "format", "dependencies", "if", "$id"),
        *("Operations", "SelectionSet", "Name", "Kind", "Value", "Definitions", "Fields", "Type"),
        *("NamedType", "Elem", "Arguments", "Directives", "kty", "n", "e", "k", "crv", "x", "keys"),
    ]
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@UNTIMED
@given(JSON, JSON)
def test_any_json_schema_ends_in_an_error_or_a_value(document, schema):
    survives("json.match_schema", {"d": document}, {"properties": schema})
    survives("json.match_schema", [document], schema if isinstance(schema, dict) else {})
    survives("json.verify_schema", schema if isinstance(schema, dict | str | list) else {})


@UNTIMED
@given(JSON, JSON)
def test_any_tree_given_as_graphql_ends_in_an_error_or_a_value(query, schema):
    for tree in ({"Operations": query}, {"Definitions": schema}):
        survives("graphql.is_valid", tree, "type Query { a: Int }")
        survives("graphql.is_valid", "{ a }", tree)
        survives("graphql.schema_is_valid", tree)


@UNTIMED
@given(JSON, st.text(max_size=30))
def test_any_key_and_token_ends_in_an_error_or_a_value(key, token):
    web_key = json_text({"keys": key} if isinstance(key, list) else key)
    signed = "eyJhbGciOiJSUzI1NiJ9.e30.YWJj"
    survives("io.jwt.verify_rs256", signed, web_key)
    survives("io.jwt.decode", token)
    survives("io.jwt.decode", f"{token}.{token}.{token}")
    survives("io.jwt.decode_verify", signed, {"cert": web_key})
    survives("io.jwt.encode_sign_raw", '{"alg":"RS256"}', "{}", web_key)


@UNTIMED
@given(st.text(alphabet="ab:/?#[]@%1.\\é \x00-_*", max_size=25))
def test_an_url_that_is_parsed_prints_to_one_that_parses_alike(text):
    try:
        url = go_url.parse(text)
    except ValueError:
        return
    assert go_url.parse(str(url)).path == url.path


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000,
        '{"a":' * 100_000 + "0" + "}" * 100_000,
        '["' + "\\ud800" * 10,
    ],
    ids=["open lists", "lists", "open objects", "objects", "half characters"],
)
def test_texts_made_to_exhaust_a_parser_are_errors(text):
    assert fault("json.match_schema", text, "{}") == "builtin: invalid JSON string"
    assert fault("json.match_schema", "{}", text) == "builtin: invalid JSON string"
