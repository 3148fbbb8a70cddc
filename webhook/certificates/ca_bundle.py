"""The CA bundle in a webhook configuration: whether it is right, who wrote it, and a copy with another.

Configurations are documents of the API server's. Bundles are PEM, in base64.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
import json
from collections.abc import Mapping
from typing import Any

from webhook.api.gvk import text
from webhook.api.shapes import Json, object_of, objects_of
from webhook.certificates import plan as planning
from webhook.certificates.reading import decoded, known_authorities, read_bundle


def bundles_of(configuration: Mapping[str, Any]) -> set[str | None]:
    """Returns the bundles of all webhooks; None for one without a bundle."""
    return {
        webhook["clientConfig"].get("caBundle") or None
        for webhook in configuration.get("webhooks") or ()
    }


def trusts(configuration: Mapping[str, Any], data: Mapping[str, bytes]) -> bool:
    """Whether every webhook's bundle is right for the data of our Secret."""
    now = dt.datetime.now(tz=dt.UTC)
    return all(
        planning.is_trusted(_decoded_bundle(bundle), data, now)
        for bundle in bundles_of(configuration)
    )


def is_foreign(configuration: Mapping[str, Any], data: Mapping[str, bytes]) -> bool:
    """Whether a bundle holds authorities, and none that the data of our Secret ever had.

    A bundle that merely lacks a new authority is our own: calls have succeeded all the time.
    """
    known = set(known_authorities(data))
    return any(
        bundle is not None and known.isdisjoint(read_bundle(_decoded_bundle(bundle)))
        for bundle in bundles_of(configuration)
    )


def with_bundle(configuration: Json, bundle: bytes) -> Json:
    """Returns a copy in which every webhook has this bundle."""
    encoded = base64.b64encode(bundle).decode()
    webhooks = [
        webhook | {"clientConfig": webhook["clientConfig"] | {"caBundle": encoded}}
        for webhook in configuration.get("webhooks") or ()
    ]
    return configuration | {"webhooks": webhooks}


def writer_of(configuration: Mapping[str, Any]) -> str:
    """Returns the field manager that wrote a bundle last; empty if ``managedFields`` do not say."""
    fields = objects_of(object_of(configuration.get("metadata")).get("managedFields"))
    writers = [
        (text(item, "time"), text(item, "manager"))
        for item in fields
        if '"f:caBundle"' in json.dumps(item.get("fieldsV1"))
    ]
    return max(writers, default=("", ""))[1]


@functools.lru_cache(maxsize=4)  # for each configuration its current and its planned bundle
def _decoded_bundle(bundle: str | None) -> bytes:
    """Decodes a webhook's bundle; each check of the bundle needs it."""
    return decoded(bundle)
