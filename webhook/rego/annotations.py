"""Metadata: ``# METADATA`` comment blocks, read as YAML and attached to what they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.rego.ast import Annotations, Import, Location, Ref, Rule
    from webhook.rego.errors import RegoLoadError


def read_annotations(
    comments: list[tuple[Location, str]],
) -> tuple[list[Annotations], list[RegoLoadError]]:
    """The blocks among the comments of a file, and what is wrong with them."""
    return [], []


def attach(
    annotations: list[Annotations], package: Ref, imports: list[Import], rules: list[Rule]
) -> tuple[list[Rule], list[Annotations], list[RegoLoadError]]:
    """The rules with their annotations, all annotations with scope, and what is misplaced."""
    return rules, annotations, []
