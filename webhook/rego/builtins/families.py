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
    internals,
    json_documents,
    networks,
    objects,
    ranges,
    regex,
    rego,
    semver,
    sets,
    strings,
    times,
    units,
    uuids,
    yaml_documents,
)
from webhook.rego.builtins.graphql import family as graphql  # noqa: F401  # imported to be registered
from webhook.rego.builtins.http import family as http_send  # noqa: F401  # imported to be registered
from webhook.rego.builtins.json_schema import family as json_schema  # noqa: F401  # imported to be registered
from webhook.rego.builtins.jwt import family as jwt  # noqa: F401  # imported to be registered
from webhook.rego.builtins.templates import family as templates  # noqa: F401  # imported to be registered
from webhook.rego.builtins.x509 import family as x509  # noqa: F401  # imported to be registered
