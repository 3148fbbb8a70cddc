"""Maps built-ins to modules: a family is loaded when a policy first names a member.

A built-in that is not listed here does not exist.
"""

from __future__ import annotations

from typing import Final

_FAMILIES: Final = {
    "aggregates": "all any count internal.member_2 internal.member_3 max min product sort sum",
    "arithmetic": "abs ceil div floor minus mul plus rem round",
    "arrays": "array.concat array.flatten array.reverse array.slice",
    "aws": "providers.aws.sign_req",
    "bits": "bits.and bits.lsh bits.negate bits.or bits.rsh bits.xor",
    "comparison": "assign eq equal gt gte lt lte neq",
    "conversions": (
        "cast_array cast_boolean cast_null cast_object cast_set cast_string is_array "
        "is_boolean is_null is_number is_object is_set is_string to_number type_name"
    ),
    "crypto": (
        "crypto.hmac.equal crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 "
        "crypto.hmac.sha512 crypto.md5 crypto.sha1 crypto.sha256"
    ),
    "encoding": (
        "base64.decode base64.encode base64.is_valid base64url.decode base64url.encode "
        "base64url.encode_no_pad hex.decode hex.encode uri.is_valid uri.parse urlquery.decode "
        "urlquery.decode_object urlquery.encode urlquery.encode_object"
    ),
    "globs": "glob.match glob.quote_meta",
    "graph": "graph.reachable graph.reachable_paths walk",
    "graphql.family": (
        "graphql.is_valid graphql.parse graphql.parse_and_verify graphql.parse_query "
        "graphql.parse_schema graphql.schema_is_valid"
    ),
    "http.family": "http.send",
    "internals": (
        "internal.print internal.template_string internal.test_case opa.runtime print trace"
    ),
    "json_documents": (
        "json.filter json.is_valid json.marshal json.marshal_with_options json.patch "
        "json.remove json.unmarshal"
    ),
    "json_schema.family": "json.match_schema json.verify_schema",
    "jwt.family": (
        "io.jwt.decode io.jwt.decode_verify io.jwt.encode_sign io.jwt.encode_sign_raw "
        "io.jwt.verify_eddsa io.jwt.verify_es256 io.jwt.verify_es384 io.jwt.verify_es512 "
        "io.jwt.verify_hs256 io.jwt.verify_hs384 io.jwt.verify_hs512 io.jwt.verify_ps256 "
        "io.jwt.verify_ps384 io.jwt.verify_ps512 io.jwt.verify_rs256 io.jwt.verify_rs384 "
        "io.jwt.verify_rs512"
    ),
    "networks": (
        "net.cidr_contains net.cidr_contains_matches net.cidr_expand net.cidr_intersects "
        "net.cidr_is_valid net.cidr_merge net.cidr_overlap net.lookup_ip_addr"
    ),
    "objects": (
        "object.filter object.get object.keys object.remove object.subset object.union "
        "object.union_n"
    ),
    "ranges": "numbers.range numbers.range_step rand.intn",
    "regex": (
        "re_match regex.find_all_string_submatch_n regex.find_n regex.globs_match "
        "regex.is_valid regex.match regex.replace regex.split regex.template_match"
    ),
    "rego": "rego.metadata.chain rego.metadata.rule rego.parse_module",
    "semver": "semver.compare semver.is_valid",
    "sets": "and intersection or set_diff union",
    "strings": (
        "concat contains endswith format_int indexof indexof_n lower replace split sprintf "
        "startswith strings.any_prefix_match strings.any_suffix_match strings.count "
        "strings.replace_n strings.reverse strings.split_n substring trim trim_left "
        "trim_prefix trim_right trim_space trim_suffix upper"
    ),
    "templates": "strings.render_template",
    "times": (
        "time.add_date time.clock time.date time.diff time.format time.now_ns "
        "time.parse_duration_ns time.parse_ns time.parse_rfc3339_ns time.weekday"
    ),
    "units": "units.parse units.parse_bytes",
    "uuids": "uuid.parse uuid.rfc4122",
    "x509.family": (
        "crypto.parse_private_keys crypto.x509.parse_and_verify_certificates "
        "crypto.x509.parse_and_verify_certificates_with_options "
        "crypto.x509.parse_certificate_request crypto.x509.parse_certificates "
        "crypto.x509.parse_keypair crypto.x509.parse_rsa_private_key"
    ),
    "yaml_documents": "yaml.is_valid yaml.marshal yaml.unmarshal",
}
"""The names of each family, by the module below this package."""

HOMES: Final = {
    name: f"webhook.rego.builtins.{module}"
    for module, names in _FAMILIES.items()
    for name in names.split()
}
"""The module of each built-in."""
