"""What is said of a Namespace that a review needs and the snapshot has not."""

from __future__ import annotations

from typing import Any

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class NamespaceAnswer:
    """What the API server said of a Namespace: the object, None where there is none, or a fault."""

    document: dict[str, Any] | None
    fault: str = ""
