"""Imports every family of built-ins, so that the registry is complete.

A family that is not imported here does not exist.
"""

from webhook.rego.builtins import (  # noqa: F401  # imported to be registered
    aggregates,
    arithmetic,
    arrays,
    aws,
    bits,
    comparison,
    conversions,
    crypto,
    encoding,
    globs,
    graph,
    graphql,
    http_send,
    internals,
    json_documents,
    json_schema,
    jwt,
    networks,
    objects,
    ranges,
    regex,
    rego,
    semver,
    sets,
    strings,
    templates,
    times,
    units,
    uuids,
    x509,
    yaml_documents,
)
