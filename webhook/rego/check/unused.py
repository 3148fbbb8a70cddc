"""Stage 5: declared variables without a use: OPA refuses ``some x`` without an ``x``.

Variables of ``some`` and of the key and value of ``every`` are checked in every version of the
language (v1/ast/compile.go, checkUnusedDeclaredVars). Imports, arguments and variables assigned by
``:=`` are checked in strict mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from webhook.rego.check.scope import declared_in, is_assignment
from webhook.rego.check.strict import nodes
from webhook.rego.errors import RegoLoadError
from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.syntax.unparse import unparse


def check_unused(module: ast.Module) -> list[RegoLoadError]:
    """Returns the declarations in a module that are in vain."""
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


def check_unused_strictly(module: ast.Module) -> list[RegoLoadError]:
    """Returns errors for imports, arguments and assigned variables without a use in the module.

    A name that occurs again counts as used, in any scope.
    """
    faults = _unused_imports(module)
    for rule in module.rules:
        faults += _unused_arguments(rule)
        for node in nodes(rule):
            if isinstance(node, ast.Rule):
                head = node.head
                faults += _unassigned(node.body, (head.ref.path, head.key, head.value))
            else:
                for body, outside in _bodies(node):
                    faults += _unassigned(body, outside)
    return faults


def _unused_imports(module: ast.Module) -> list[RegoLoadError]:
    used = _names(module.rules)
    faults = []
    for import_ in module.imports:
        path = import_.path
        if isinstance(path.head, ast.Var) and path.head.name in ("future", "rego"):
            continue
        last = path.path[-1] if path.path else path.head
        name = import_.alias or (last.value if isinstance(last, ast.String) else unparse(last))
        if name not in used:
            alias = "" if import_.alias is None else f" as {import_.alias}"
            message = f"import {unparse(path)}{alias} unused"
            faults.append(RegoLoadError("rego_compile_error", message, import_.location))
    return faults


def _unused_arguments(rule: ast.Rule) -> list[RegoLoadError]:
    if not rule.head.args:
        return []
    counts = Counter(node.name for node in nodes(rule) if isinstance(node, ast.Var))
    hint = "(hint: use _ (wildcard variable) instead)"
    # An `else` branch has the arguments of its rule.
    branches = 0
    branch: ast.Rule | None = rule
    while branch is not None:
        branches += branch.head.args is not None
        branch = branch.else_
    return [
        RegoLoadError(
            "rego_compile_error", f"unused argument {node.name}. {hint}", rule.head.location
        )
        for node in nodes(rule.head.args)
        if isinstance(node, ast.Var) and not node.is_wildcard and counts[node.name] <= branches
    ]


def _unassigned(body: ast.Body, around: Any) -> list[RegoLoadError]:
    assigned = [
        (name, literal)
        for literal in body
        if isinstance(literal, ast.Expr)
        and isinstance(literal.term, ast.Call)
        and is_assignment(literal.term)
        for name in declared_in((literal,))
    ]
    if not assigned:
        return []
    counts = Counter(node.name for node in nodes((body, around)) if isinstance(node, ast.Var))
    return [
        RegoLoadError("rego_compile_error", f"assigned var {name} unused", literal.location)
        for name, literal in sorted(assigned, key=lambda pair: pair[0])
        if counts[name] <= 1 and name[0] != "$"
    ]


def _bodies(node: Any) -> Iterator[tuple[ast.Body, Any]]:
    """Yields the bodies of a node, each with the terms that see its variables."""
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
        _fault(name, variable.location)
        for variable in declared
        for name in variable.names
        if name.name not in used
    ]


def _unused_iteration(every: ast.Every) -> list[RegoLoadError]:
    used = _names(every.body)
    names = [name for name in (every.key, every.value) if name is not None]
    return [
        _fault(name, every.body[0].location)  # as in OPA
        for name in names
        if not name.is_wildcard and name.name not in used
    ]


def _fault(name: ast.Var, location: Location) -> RegoLoadError:
    return RegoLoadError("rego_compile_error", f"declared var {name.name} unused", location)


def _names(parts: Any) -> set[str]:
    """Variables that occur, declarations left out."""
    nodes_ = nodes(parts, skip=ast.SomeDecl)
    return {node.name for node in nodes_ if isinstance(node, ast.Var)}
