"""Imports every family of built-ins, so that the registry is complete.

A family that is not imported here does not exist.
"""

from webhook.rego.builtins import (  # noqa: F401  # imported to be registered
    aggregates,
    arithmetic,
    arrays,
    bits,
    comparison,
    conversions,
    encoding,
    globs,
    graph,
    internals,
    json_documents,
    networks,
    objects,
    ranges,
    regex,
    semver,
    sets,
    strings,
    times,
    units,
    uuids,
)
