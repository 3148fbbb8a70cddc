"""Stage 5: what functions inside functions share, where a body nests more than CPython allows."""

from __future__ import annotations

import ast

Lines = list[tuple[int, str]]


def share(lines: Lines) -> Lines:
    """The lines of a function, whose inner functions say which names are the outer's.

    A name that is assigned within an inner function and outside of it is one variable.
    """
    source = "\n".join("    " * indent + text for indent, text in lines)
    try:
        (outer,) = ast.parse(source).body
    except SyntaxError:
        return lines  # beyond CPython's own bounds: whoever compiles it says so
    everywhere = _assigned(outer)
    shared: dict[int, list[str]] = {}
    for inner in ast.walk(outer):
        if isinstance(inner, ast.FunctionDef) and inner is not outer:
            within = _assigned(inner)
            names = [name for name, count in within.items() if everywhere[name] > count]
            if names:
                shared[inner.lineno] = sorted(names)
    found: Lines = []
    for number, (indent, text) in enumerate(lines, 1):
        found.append((indent, text))
        if number in shared:
            found.append((indent + 1, f"nonlocal {', '.join(shared[number])}"))
    return found


def _assigned(function: ast.AST) -> dict[str, int]:
    """How often each name is assigned."""
    found: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, 0) + 1
    return found
