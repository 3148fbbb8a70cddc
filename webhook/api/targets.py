"""Documents that declare a target: a kind of file that templates and constraints are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind, gvk_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET: Final = GroupVersionKind("targets.waddle.dev", "v1alpha1", "Target")


def declares_target(document: Mapping[str, Any]) -> bool:
    """Whether a document declares a target, in whatever version."""
    return gvk_of(document).group_kind == TARGET.group_kind
