"""The cluster's ExpansionTemplates, read at the beginning of each sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.api.gvk import GroupVersionKind, name_of
from webhook.audit.pages import ListStatistics, Pages
from webhook.cluster.errors import ApiError
from webhook.cluster.resource import Resource
from webhook.constraint.expansion import (
    GROUP,
    KIND,
    Expansion,
    InvalidExpansion,
    read_expansion_template,
)

if TYPE_CHECKING:
    from webhook.cluster.client import Client
    from webhook.constraint.expansion import ExpansionTemplate
    from webhook.log import Logger

RESOURCE: Final = Resource(
    GroupVersionKind(GROUP, "v1beta1", KIND), "expansiontemplate", namespaced=False
)


async def read_expansion(client: Client, log: Logger) -> Expansion:
    """The templates there are; a broken one, or those in a circle, are left out and logged.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.UnreachableError`; a cluster without the kind
    has none.
    """
    found: list[ExpansionTemplate] = []
    pages = Pages(client, RESOURCE, page_objects=500, statistics=ListStatistics())
    try:
        async for page in pages:
            for item in reversed(page):
                try:
                    template = read_expansion_template(item)
                    Expansion([*found, template])
                except InvalidExpansion as error:
                    log.warning("ExpansionTemplate not used", name=name_of(item), error=str(error))
                else:
                    found.append(template)
    except ApiError as error:
        if not error.is_absent:
            raise
    return Expansion(found)
