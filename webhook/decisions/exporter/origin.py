"""Who decides, as each record says it."""

from __future__ import annotations

import uuid
from dataclasses import field
from typing import TYPE_CHECKING

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Origin:
    """Who decides: the pod, and this start of its process."""

    pod_uid: str = ""
    pod: str = ""
    namespace: str = ""
    node: str = ""
    process: str = field(default_factory=lambda: uuid.uuid4().hex[:16])


def origin_from_environment(environment: Mapping[str, str]) -> Origin:
    """The pod as the downward API tells it: POD_UID, POD_NAME, POD_NAMESPACE, NODE_NAME."""
    return Origin(
        pod_uid=environment.get("POD_UID", ""),
        pod=environment.get("POD_NAME", ""),
        namespace=environment.get("POD_NAMESPACE", ""),
        node=environment.get("NODE_NAME", ""),
    )
