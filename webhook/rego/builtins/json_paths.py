"""Paths into a document: ``a/b~1c`` or ``["a", "b/c"]`` (OPA v1/topdown/json.go, parsePath)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import type_name

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


def read_path(path: Value) -> list[Value]:
    """The steps of a path; raises BuiltinError for what is none."""
    if type(path) is list:
        return path
    if type(path) is not str:
        raise BuiltinError(
            "operand 2 must be one of {set, array} containing string paths or array of path "
            f"segments but got {type_name(path)}",
            kind="type",
        )
    if not path:
        return []
    parts = path.lstrip("/").split("/")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]
