"""Generates ``docs/api.md``: the library's classes with their docstrings and signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

_DOORS: Final = (
    ("waddle", "Policies"),
    ("waddle", "Violations"),
    ("waddle", "Violation"),
    ("waddle", "Excuse"),
    ("waddle", "InvalidPoliciesError"),
    ("waddle", "InvalidInputError"),
    ("waddle", "NoVerdictError"),
    ("waddle", "UnknownPathError"),
    ("waddle", "WaddleError"),
    ("waddle", "Rego"),
    ("waddle", "Answer"),
    ("webhook.constraint.targets.documents", "DocumentTarget"),
    ("webhook.constraint.review", "Document"),
)
"""The public names for other programs: module and name."""

_ROLE: Final = re.compile(r":\w+:`~?([^`]*)`")


def api_page(made_by: str) -> str:
    """Returns every public class with its public members; ``made_by`` is the pages' remark."""
    lines = [
        "# The library, in full",
        "",
        made_by,
        "",
        "[library.md](library.md) has an example of each. Names that are not here may change.",
    ]
    for module, name in _DOORS:
        lines += _class(module, getattr(importlib.import_module(module), name))
    return "\n".join(lines) + "\n"


def _class(module: str, of: Any) -> Iterator[str]:
    name = of.__name__
    yield from ("", f"## `{name}`", "", f"`from {module} import {name}`", "", *_text(of))
    fields = getattr(of, "__dataclass_fields__", {})
    if fields:
        given = ", ".join(f"{field.name}: {field.type}" for field in fields.values())
        yield from ("", f"Its fields: `{given}`.")
    for key, value in vars(of).items():
        if key.startswith("_") or key in fields:
            continue
        if inspect.isabstract(of) and key not in of.__abstractmethods__:
            continue  # not part of the interface for subclasses
        if isinstance(value, property):
            returned = inspect.signature(value.fget).return_annotation  # type: ignore[arg-type]
            yield from ("", f"### `{name}.{key}: {returned}`", "", *_text(value))
        elif isinstance(value, classmethod) or inspect.isfunction(value):
            yield from ("", f"### `{name}.{key}{_signature(getattr(of, key))}`", "")
            yield from _text(value)


class _Written(str):
    """An annotation in source form: without the quotes of a text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(function: Any) -> str:
    """Returns the signature without ``self``."""
    signature = inspect.signature(function)
    given = [
        parameter.replace(annotation=_Written(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    returned = _Written(signature.return_annotation)
    return str(signature.replace(parameters=given, return_annotation=returned))


def _text(documented: Any) -> list[str]:
    """Returns a docstring, its references by their last name."""
    text = inspect.getdoc(documented) or ""
    return _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", text).splitlines()
