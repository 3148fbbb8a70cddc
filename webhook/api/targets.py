"""Documents that declare a target: a file format that templates and constraints review."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind, gvk_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET: Final = GroupVersionKind("targets.waddle.dev", "v1alpha1", "Target")


def declares_target(document: Mapping[str, Any]) -> bool:
    """Returns whether a document declares a target, in any version."""
    return gvk_of(document).group_kind == TARGET.group_kind
