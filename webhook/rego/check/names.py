"""Stage 3: the names of a module: its package, rules and imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from webhook.rego.syntax import ast

Globals = dict[str, tuple[str, tuple[str, ...]]]
"""The root and path of each name."""

ROOTS: Final = frozenset({"input", "data"})
"""Names of the two documents that a policy reads."""


def package_path(ref: ast.Ref) -> tuple[str, ...]:
    """Returns the path of a package below ``data``."""
    return tuple(part.value for part in ref.path if isinstance(part, ast.String))


def module_globals(module: ast.Module, exports: Mapping[tuple[str, ...], set[str]]) -> Globals:
    """Returns the meanings of the names of rules and imports in this module."""
    return globals_of(package_path(module.package), module.imports, exports)


def globals_of(
    package: tuple[str, ...],
    imports: Iterable[ast.Import],
    exports: Mapping[tuple[str, ...], set[str]],
) -> Globals:
    """Returns the meanings of names in a package with these imports."""
    names: Globals = {name: ("data", (*package, name)) for name in exports.get(package, ())}
    for imported in imports:
        root, path = import_path(imported)
        if root in ("future", "rego"):
            continue
        names[import_name(imported)] = (root, path)
    return names


def import_path(imported: ast.Import) -> tuple[str, tuple[str, ...]]:
    """Root and path of an import."""
    head = imported.path.head
    root = head.name if isinstance(head, ast.Var) else ""
    return root, tuple(p.value for p in imported.path.path if isinstance(p, ast.String))


def import_name(imported: ast.Import) -> str:
    """Returns the name under which an import is used."""
    root, path = import_path(imported)
    return imported.alias or (path[-1] if path else root)


def head_name(head: ast.Head) -> str:
    """Returns the first name of a rule's reference."""
    assert isinstance(head.ref.head, ast.Var)
    return head.ref.head.name
