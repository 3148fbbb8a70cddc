"""Documents that declare a target: a file format that templates and constraints review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.api.gvk import GroupVersionKind, gvk_of

TARGET: Final = GroupVersionKind("targets.waddle.dev", "v1alpha1", "Target")


def declares_target(document: Mapping[str, Any]) -> bool:
    """Returns whether a document declares a target, in any version."""
    return gvk_of(document).group_kind == TARGET.group_kind
