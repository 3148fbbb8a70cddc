"""The OPA version that introduced each built-in, according to OPA's capabilities."""

from __future__ import annotations

from typing import Final

OLDEST: Final = (0, 17, 0)
"""The first version with capabilities; its built-ins are not listed."""

INTRODUCED: Final = {
    (0, 17, 2): "object.filter object.remove object.union",
    (0, 18, 0): "bits.and bits.lsh bits.negate bits.or bits.rsh bits.xor json.remove",
    (0, 19, 0): "net.cidr_contains_matches time.add_date",
    (0, 20, 0): (
        "graph.reachable io.jwt.verify_es384 io.jwt.verify_es512 io.jwt.verify_hs384 "
        "io.jwt.verify_hs512 io.jwt.verify_ps384 io.jwt.verify_ps512 io.jwt.verify_rs384 "
        "io.jwt.verify_rs512 uuid.rfc4122 "
    ),
    (0, 21, 0): "crypto.x509.parse_certificate_request",
    (0, 22, 0): "numbers.range semver.compare semver.is_valid",
    (0, 23, 0): "regex.is_valid regex.match",
    (0, 24, 0): "base64.is_valid net.cidr_merge urlquery.decode_object",
    (0, 25, 0): (
        "base64url.encode_no_pad hex.decode hex.encode json.is_valid json.patch yaml.is_valid "
    ),
    (0, 26, 0): "ceil floor",
    (0, 28, 0): "time.diff",
    (0, 31, 0): "crypto.x509.parse_and_verify_certificates rand.intn",
    (0, 33, 0): "crypto.x509.parse_rsa_private_key",
    (0, 34, 0): "internal.member_2 internal.member_3 internal.print print",
    (0, 35, 0): "net.lookup_ip_addr",
    (0, 36, 0): (
        "array.reverse crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 "
        "crypto.hmac.sha512 strings.reverse "
    ),
    (0, 37, 0): "graph.reachable_paths indexof_n object.union_n",
    (0, 40, 0): "rego.metadata.chain rego.metadata.rule",
    (0, 41, 0): (
        "graphql.is_valid graphql.parse graphql.parse_and_verify graphql.parse_query "
        "graphql.parse_schema units.parse "
    ),
    (0, 42, 0): "object.subset",
    (0, 44, 0): "strings.any_prefix_match strings.any_suffix_match",
    (0, 45, 0): "regex.replace",
    (0, 46, 0): "graphql.schema_is_valid net.cidr_is_valid",
    (0, 47, 0): "object.keys providers.aws.sign_req",
    (0, 48, 0): "time.format",
    (0, 50, 0): "json.match_schema json.verify_schema",
    (0, 52, 0): "crypto.hmac.equal",
    (0, 53, 0): "crypto.x509.parse_keypair",
    (0, 55, 0): "crypto.parse_private_keys",
    (0, 56, 0): "numbers.range_step",
    (0, 57, 0): "uuid.parse",
    (0, 59, 0): "strings.render_template",
    (0, 63, 0): "crypto.x509.parse_and_verify_certificates_with_options",
    (0, 64, 0): "json.marshal_with_options",
    (0, 67, 0): "strings.count",
    (1, 2, 0): "internal.test_case",
    (1, 8, 0): "io.jwt.verify_eddsa",
    (1, 12, 0): "internal.template_string",
    (1, 13, 0): "array.flatten",
    (1, 16, 0): "uri.is_valid uri.parse",
    (1, 19, 0): "strings.split_n",
}
