"""Checks the references of a template's Rego to ``data.inventory`` and ``data.lib``.

The rules, their order and their messages are Gatekeeper's. They separate templates from each other,
and let their packages have any name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from webhook.constraint.errors import InvalidTemplate
from webhook.rego.check.strict import nodes
from webhook.rego.run.text import display
from webhook.rego.syntax import ast

ENTRY: Final = "template"
"""The package and file name under which a template's own module is compiled."""

RULE: Final = "violation"


def library_file(index: int) -> str:
    """Returns the file name of a library, which its errors carry."""
    return f'libs["lib_{index}"]'


def check_entry(module: ast.Module) -> None:
    """Refuses a template without a ``violation`` rule."""
    heads = [rule.head for rule in module.rules if rule.head.ref.head == ast.Var(RULE)]
    if any(map(_names_itself, heads)):
        return
    message = f"invalid rego: invalid module: missing required rules: [{RULE}]"
    if any(head.ref.path and type(head.ref.path[0]) is not ast.String for head in heads):
        message += f'. Its "{RULE}" is an object; write: {RULE} contains {{"msg": msg}} if {{ … }}'
    raise _invalid(message)


def _names_itself(head: ast.Head) -> bool:
    """Whether OPA names the rule by this head alone: ``p``, ``p[x]`` of a set, ``p[x] = y``.

    It does not for ``p.q``, for ``p[x] if``, which is ``p[x] = true``, and for ``p[x][y]``.
    """
    path = head.ref.path
    if not path:
        return True
    return len(path) == 1 and head.value is not None and type(path[0]) is not ast.String


def check_references(libraries: Sequence[ast.Module], entry: ast.Module) -> None:
    """Refuses forbidden references and package names."""
    for module in libraries:
        path = _path(module.package)
        if len(path) < 3 or path[:2] != ["data", "lib"]:
            shown = ref_text(module.package)
            raise _invalid(f"invalid lib prefix: path {shown} not found in lib prefixes")
    for module in (*libraries, entry):
        for item in module.imports:
            _check_import(item)
    for module in (*libraries, entry):
        refused = [ref for rule in module.rules for ref in data_refs(rule) if not _allowed(ref)]
        if refused:
            lines = "".join(f"disallowed ref {ref_text(ref)}\n" for ref in refused)
            raise _invalid(
                f"invalid data references: check refs failed on module {{{module.file}}}: "
                f"errors ({len(refused)}):\n{lines}"
            )


def as_entry(module: ast.Module) -> ast.Module:
    """Returns the module under the package that the driver queries."""
    package = ast.Ref(ast.Var("data"), (ast.String(ENTRY),), location=module.package.location)
    return dataclasses.replace(module, package=package)


def _invalid(message: str) -> InvalidTemplate:
    return InvalidTemplate(f"invalid ConstraintTemplate: {message}", "ingest_error")


def _check_import(item: ast.Import) -> None:
    path = _path(item.path)
    text = ref_text(item.path).replace("\\", "\\\\").replace('"', '\\"')
    shown = f'"{text}"'
    if path[0] == "input":
        raise _invalid(f"invalid import: cannot import input: {shown}")
    if path[:2] != ["data", "lib"] and path[0] != "future":
        raise _invalid(f"invalid import: bad import: {shown}")


def _allowed(ref: ast.Ref) -> bool:
    return len(ref.path) > 0 and ref.path[0] in {ast.String("inventory"), ast.String("lib")}


def _path(ref: ast.Ref) -> list[str]:
    head = ref.head.name if type(ref.head) is ast.Var else ""
    names = [item.value if type(item) is ast.String else "" for item in ref.path]
    return [head, *names]


def data_refs(node: Any) -> Iterator[ast.Ref]:
    """Yields every reference into data below a node, including the bare ``data``."""
    heads: set[int] = set()
    for part in nodes(node):
        if type(part) is ast.Ref and type(part.head) is ast.Var and part.head.name == "data":
            heads.add(id(part.head))
            yield part
        elif type(part) is ast.Var and part.name == "data" and id(part) not in heads:
            yield ast.Ref(part, ())


def ref_text(ref: ast.Ref) -> str:
    """Returns a reference in OPA's notation."""
    text = ref.head.name if type(ref.head) is ast.Var else "…"
    for item in ref.path:
        match item:
            case ast.String(value=value):
                plain = value.isidentifier() and value.isascii()
                text += f".{value}" if plain else f"[{display(value)}]"
            case ast.Var():
                text += f"[{'_' if item.is_wildcard else item.name}]"
            case ast.Ref():
                text += f"[{ref_text(item)}]"
            case ast.Number(text=number):
                text += f"[{number}]"
            case _:
                text += "[…]"
    return text
