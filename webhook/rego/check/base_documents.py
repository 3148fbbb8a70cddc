"""Rules that stand where base documents have something (OPA v1/ast/conflicts.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.errors import RegoLoadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.check.tree import Node, Tree


def conflicts_with_data(tree: Tree, data: dict[str, Any]) -> list[RegoLoadError]:
    """A fault for each rule whose path the base documents have."""
    return list(_below(tree.root, data))


def _below(node: Node, documents: Any) -> Iterator[RegoLoadError]:
    if not isinstance(documents, dict):
        return
    for child in node.children.values():
        if not isinstance(child.name, str) or child.name not in documents:
            continue
        if child.rules:
            path = "/".join(map(str, child.path))
            message = f"conflicting rule for data path {path} found"
            yield RegoLoadError("rego_compile_error", message, child.rules[0].location)
        yield from _below(child, documents[child.name])
