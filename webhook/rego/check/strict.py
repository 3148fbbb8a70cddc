"""Stage 2: checks of v1 that v0 lacks: shadowed roots and imports, deprecated built-ins.

OPA applies them to modules that are v1 or import ``rego.v1`` (v1/ast/rego_v1.go). It goes on
compiling, so these errors come together with the errors of later stages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax import ast
from webhook.rego.syntax.unparse import unparse

_ROOTS: Final = ("data", "input")

DEPRECATED: Final = frozenset(
    {
        "all",
        "any",
        "cast_array",
        "cast_boolean",
        "cast_null",
        "cast_object",
        "cast_set",
        "cast_string",
        "net.cidr_overlap",
        "re_match",
        "set_diff",
    }
)
"""Built-ins that OPA's capabilities mark as deprecated (v1/ast/builtins.go)."""

_SUSPECT: Final = re.compile(
    r"\b(?:input|data)\s*:=|\bassign\b|\b(?:"
    + "|".join(map(re.escape, sorted(DEPRECATED)))
    + r")\s*\)*\s*\("
)

_UNKNOWN_KEYWORD: Final = "unexpected keyword, must be one of [contains every if in not]"
_UNKNOWN_IMPORTS: Final = {
    "rego.v2": "invalid import `rego.v2`, must be `rego.v1`",
    "future.keywords.and": _UNKNOWN_KEYWORD,
    "future.keywords.or": _UNKNOWN_KEYWORD,
}
"""Imports that the OPA inside Gatekeeper refuses, with its messages."""

_LEAVES: Final = ("location", "annotations", "name", "text", "raw", "infix", "assign", "contains")
"""Fields of nodes that hold no nodes."""
_BRANCHES: Final[dict[type, tuple[str, ...]]] = {}
"""The other fields of each kind of node, filled by :func:`_branches`."""


def check_imports(module: ast.Module, level: str) -> list[RegoLoadError]:
    """Returns the imports that the OPA inside Gatekeeper does not know; none at other levels."""
    if level != GATEKEEPER:
        return []
    faults = []
    for import_ in module.imports:
        message = _UNKNOWN_IMPORTS.get(".".join(_names(import_.path)))
        if message is not None:
            faults.append(RegoLoadError("rego_parse_error", message, import_.path.location))
    return faults


def _names(ref: ast.Ref) -> list[str]:
    names = [ref.head.name] if isinstance(ref.head, ast.Var) else []
    return names + [part.value for part in ref.path if isinstance(part, ast.String)]


def check_strict(module: ast.Module, *, strict: bool = False) -> list[RegoLoadError]:
    """Returns the errors of v1 in the module; none in v0 unless ``strict``."""
    if module.version == "v0" and not strict:
        return []
    faults = _imports(module)
    for rule in module.rules:
        faults += _heads(rule)
    # Walking the tree takes longer than parsing; the text tells whether it may find anything.
    if _SUSPECT.search(module.source) or not module.source:
        names = {unparse(rule.head.ref.head) for rule in module.rules}
        for rule in module.rules:
            for node in nodes(rule):
                if isinstance(node, ast.Expr):
                    faults += _assignment(node)
                elif isinstance(node, ast.Call):
                    faults += _deprecated(node, names)
    return faults


def _imports(module: ast.Module) -> list[RegoLoadError]:
    seen: dict[str, ast.Import] = {}
    faults = []
    for import_ in module.imports:
        last = import_.path.path[-1] if import_.path.path else import_.path.head
        name = import_.alias or (last.value if isinstance(last, ast.String) else unparse(last))
        first = seen.setdefault(name, import_)
        if first is not import_:
            alias = "" if first.alias is None else f" as {first.alias}"
            message = f"import must not shadow import {unparse(first.path)}{alias}"
            faults.append(RegoLoadError("rego_compile_error", message, import_.location))
    return faults


def _heads(rule: ast.Rule) -> list[RegoLoadError]:
    faults = []
    name = rule.head.ref.head
    if isinstance(name, ast.Var) and name.name in _ROOTS:
        message = f"rules must not shadow {name.name} (use a different rule name)"
        faults.append(RegoLoadError("rego_compile_error", message, rule.location))
    for arg in rule.head.args or ():
        if isinstance(arg, ast.Var) and arg.name in _ROOTS:
            message = f"args must not shadow {arg.name} (use a different variable name)"
            faults.append(RegoLoadError("rego_compile_error", message, arg.location))
    return faults


def _assignment(literal: ast.Expr) -> list[RegoLoadError]:
    call = literal.term
    if not isinstance(call, ast.Call) or call.operator != ast.Var("assign") or not call.args:
        return []
    target = call.args[0]
    if not isinstance(target, ast.Var) or target.name not in _ROOTS:
        return []
    message = f"variables must not shadow {target.name} (use a different variable name)"
    return [RegoLoadError("rego_compile_error", message, literal.location)]


def _deprecated(call: ast.Call, names: set[str]) -> list[RegoLoadError]:
    """Returns the fault of a call of a deprecated built-in; rules in ``names`` may shadow it."""
    name = unparse(call.operator)
    if name not in DEPRECATED or name in names:
        return []
    message = f"deprecated built-in function calls in expression: {name}"
    return [RegoLoadError("rego_type_error", message, call.location)]


def nodes(node: Any, skip: type | None = None) -> Iterator[Any]:
    """Yields the nodes of a tree, parents first, without subtrees of kind ``skip``."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo.extend(reversed(part))
            continue
        if part is None or type(part) is skip:
            continue
        yield part
        for name in _branches(type(part)):
            todo.append(getattr(part, name))  # noqa: PERF401  # most have none or one


def _branches(kind: type) -> tuple[str, ...]:
    """Returns the fields of a kind of node that may hold nodes, in reverse order."""
    children = _BRANCHES.get(kind)
    if children is None:
        names = (
            () if not kind.__module__.endswith(".ast") else (field.name for field in fields(kind))
        )
        children = _BRANCHES[kind] = tuple(name for name in names if name not in _LEAVES)[::-1]
    return children
