"""The cluster's ExpansionTemplates, read once, for an audit without a replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.api.gvk import name_of
from webhook.audit.pages import ListStatistics, Pages
from webhook.cluster.errors import ApiError
from webhook.cluster.page_size import PageSize
from webhook.constraint.expansion import (
    CYCLE,
    GROUP,
    KIND,
    Expansion,
    ExpansionSet,
    InvalidExpansion,
    read_expansion_template,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

_PAGE_OBJECTS: Final = 500


async def read_expansion(
    client: ClusterClient, kinds: Iterable[Resource], log: Logger
) -> Expansion:
    """The templates there are, if ``kinds`` has them: those that the API server lists.

    A broken one, those of a circle, and all of them where they may not be
    read, are left out and logged. Raises
    :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    resource = next((item for item in kinds if item.gvk.group_kind == (GROUP, KIND)), None)
    if resource is None:
        return Expansion()
    expansion = ExpansionSet()
    pages = Pages(client, resource, size=PageSize.first(_PAGE_OBJECTS), statistics=ListStatistics())
    try:
        async for page in pages:
            for item in reversed(page):
                try:
                    expansion.add(read_expansion_template(item))
                except InvalidExpansion as error:
                    log.warning("ExpansionTemplate not used", name=name_of(item), error=str(error))
    except ApiError as error:
        if not error.is_forbidden and not error.is_absent:
            raise
        log.warning("ExpansionTemplates not used", error=str(error))
    for name in sorted(expansion.cyclic):
        log.warning("ExpansionTemplate not used", name=name, error=CYCLE)
    return expansion.expansion
