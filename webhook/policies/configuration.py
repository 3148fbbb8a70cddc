"""What is wrong with a Config or a SyncSet, and would have no effect without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import CONFIG, CONFIG_NAME, PROCESSES, SYNC_SET, unknown_processes
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import kind_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMAS: Final = {
    CONFIG.group_kind: kind_schemas.CONFIG,
    SYNC_SET.group_kind: kind_schemas.SYNC_SET,
}
GROUPS: Final = frozenset(group for group, _ in _SCHEMAS)


def configuration_faults(document: Mapping[str, Any]) -> list[str]:
    """What is wrong with an object of these groups; nothing is said of others."""
    gvk = gvk_of(document)
    if gvk.group not in GROUPS:
        return []
    schema = _SCHEMAS.get(gvk.group_kind)
    if schema is None:
        return [f"{gvk} is no kind of {gvk.group}"]
    faults = kind_schemas.spec_faults(document, schema)
    if gvk.group_kind == CONFIG.group_kind:
        if name_of(document) != CONFIG_NAME:
            faults.append(f"config resource must have name '{CONFIG_NAME}'")
        faults += [
            f'spec.match: unknown process "{name}": there are {", ".join(PROCESSES)}; '
            "nothing is excluded from it"
            for name in unknown_processes(document)
        ]
    return faults
