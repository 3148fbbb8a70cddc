"""Stage 5: declared variables that nothing uses: OPA refuses ``some x`` without an ``x``.

Checked of ``some`` and of the key and value of ``every`` in every version of the
language (v1/ast/compile.go, checkUnusedDeclaredVars).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.check.strict import nodes
from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.location import Location


def check_unused(module: ast.Module) -> list[RegoLoadError]:
    """The declarations in a module that are in vain."""
    if "some" not in module.source and "every" not in module.source:
        return []
    faults: list[RegoLoadError] = []
    for rule in module.rules:
        branch: ast.Rule | None = rule
        while branch is not None:
            head = branch.head
            around = (head.ref, head.args or (), head.key, head.value)
            faults += _unused(branch.body, around)
            for node in nodes((around, branch.body)):
                for body, outside in _bodies(node):
                    faults += _unused(body, outside)
                if isinstance(node, ast.Every):
                    faults += _unused_iteration(node)
            branch = branch.else_
    return faults


def _bodies(node: Any) -> Iterator[tuple[ast.Body, Any]]:
    """The bodies of a node, each with the terms that see its variables."""
    if isinstance(node, ast.ArrayComprehension | ast.SetComprehension):
        yield node.body, node.term
    elif isinstance(node, ast.ObjectComprehension):
        yield node.body, (node.key, node.value)
    elif isinstance(node, ast.Every | ast.Not):
        yield node.body, ()
    elif isinstance(node, ast.Logic):
        yield node.left, ()
        yield node.right, ()


def _unused(body: ast.Body, around: Any) -> list[RegoLoadError]:
    declared = [literal for literal in body if isinstance(literal, ast.SomeDecl)]
    if not declared:
        return []
    used = _names((body, around))
    return [
        _fault(name, one.location)
        for one in declared
        for name in one.names
        if name.name not in used
    ]


def _unused_iteration(every: ast.Every) -> list[RegoLoadError]:
    used = _names(every.body)
    names = [name for name in (every.key, every.value) if name is not None]
    return [
        _fault(name, every.location)
        for name in names
        if not name.is_wildcard and name.name not in used
    ]


def _fault(name: ast.Var, location: Location) -> RegoLoadError:
    return RegoLoadError("rego_compile_error", f"declared var {name.name} unused", location)


def _names(parts: Any) -> set[str]:
    """Variables that occur, declarations left out."""
    found = nodes(parts, skip=ast.SomeDecl)
    return {node.name for node in found if isinstance(node, ast.Var)}
