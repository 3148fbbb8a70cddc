"""Applies a JSON Patch (RFC 6902) as API servers do (gopkg.in/evanphx/json-patch.v4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from webhook.api.encoding import is_same_json
from webhook.cel.errors import EvaluationError

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_MISSING: Final = "missing value"
_INVALID: Final = "invalid index referenced"


class TestFailed(Exception):
    """A ``test`` of the patch fails: the object stays unchanged."""

    __test__ = False


class _Missing(Exception):
    """A path leads to no value."""


def patched(document: dict[str, Any], operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the document after all operations; does not change the argument.

    Raises :class:`TestFailed`, and :class:`~webhook.cel.errors.EvaluationError` for an operation
    that does not apply.
    """
    result: Any = _copied(document)
    for operation in operations:
        result = _OPERATIONS.get(operation["op"], _unknown)(result, operation)
    if type(result) is not dict:
        raise EvaluationError("JSON Patch: what is left is not an object")
    return result


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if type(value) is list else value


def _unknown(document: Any, operation: dict[str, Any]) -> Any:
    del document
    raise _fault(f"Unexpected kind: {operation['op']}")


def _fault(text: str) -> EvaluationError:
    return EvaluationError(f"JSON Patch: {text}")


def _holder(document: Any, path: str) -> tuple[Any, str]:
    """Returns the object or list that holds the last part of a path, and that part.

    Returns None for a path that leads nowhere.
    """
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]
    if len(parts) < 2:
        return None, ""
    for part in parts[1:-1]:
        try:
            document = _at(document, part)
        except _Missing:
            return None, ""
        if type(document) not in {dict, list}:
            return None, ""
    return (document, parts[-1]) if type(document) in {dict, list} else (None, "")


def _index(part: str, size: int) -> int:
    """Returns an index into a list; a negative one counts from the end."""
    if _NUMBER.fullmatch(part) is None:
        raise _Missing(f"value was not a proper array index: '{part}'")
    at = int(part)
    if at >= size or at < -size:
        raise _Missing(f"Unable to access invalid index: {at}: {_INVALID}")
    return at + size if at < 0 else at


def _at(holder: Any, part: str) -> Any:
    """Returns the value of a field, None for a missing one; or an item of a list."""
    return holder.get(part) if type(holder) is dict else holder[_index(part, len(holder))]


def _put(holder: Any, part: str, value: Any) -> None:
    if type(holder) is dict:
        holder[part] = value
    elif part == "-":
        holder.append(value)
    else:
        holder.insert(_index(part, len(holder) + 1), value)


def _take(holder: Any, part: str) -> None:
    if type(holder) is list:
        del holder[_index(part, len(holder))]
    elif part in holder:
        del holder[part]
    else:
        raise _Missing(f"Unable to remove nonexistent key: {part}: {_MISSING}")


def _placed(document: Any, path: str, verb: str, text: str = "") -> tuple[Any, str]:
    holder, part = _holder(document, path)
    if holder is None:
        why = text or f'doc is missing path: "{path}"'
        raise _fault(f"{verb} operation does not apply: {why}: {_MISSING}")
    return holder, part


def _add(document: Any, operation: dict[str, Any], verb: str = "add") -> Any:
    path = operation["path"]
    text = "" if verb == "add" else f"doc is missing destination path: {path}"
    holder, part = _placed(document, path, verb, text)
    try:
        _put(holder, part, _copied(operation.get("value")))
    except _Missing as error:
        if verb == "copy":
            raise _fault(f"error while adding value during copy: {error}") from None
        raise _fault(f"error in {verb} for path: '{path}': {error}") from None
    return document


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    path = operation["path"]
    holder, part = _placed(document, path, "remove")
    try:
        _take(holder, part)
    except _Missing as error:
        raise _fault(f"error in remove for path: '{path}': {error}") from None
    return document


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    path, value = operation["path"], operation.get("value")
    if path == "":
        if type(value) not in {dict, list}:
            raise _fault("replace operation value must be object or array")
        return _copied(value)
    holder, part = _placed(document, path, "replace", f"doc is missing path: {path}")
    try:
        if type(holder) is list:
            holder[_index(part, len(holder))] = _copied(value)
        else:
            holder[part] = _copied(value)  # json-patch.v4 does not check that the field exists
    except _Missing:
        raise _fault(
            f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
        ) from None
    return document


def _source(document: Any, operation: dict[str, Any], verb: str) -> tuple[Any, str, Any]:
    start = operation.get("from", "")
    holder, part = _holder(document, start)
    if holder is None:
        raise _fault(
            f"{verb} operation does not apply: doc is missing from path: {start}: {_MISSING}"
        )
    try:
        return holder, part, _at(holder, part)
    except _Missing as error:
        where = f"path: '{part}'" if verb == "move" else f"from: '{start}'"
        raise _fault(f"error in {verb} for {where}: {error}") from None


def _move(document: Any, operation: dict[str, Any]) -> Any:
    holder, part, value = _source(document, operation, "move")
    try:
        _take(holder, part)
    except _Missing as error:
        raise _fault(f"error in move for path: '{part}': {error}") from None
    return _add(document, {**operation, "value": value}, "move")


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    _, _, value = _source(document, operation, "copy")
    return _add(document, {**operation, "value": value}, "copy")


def _test(document: Any, operation: dict[str, Any]) -> Any:
    path = operation["path"]
    if path == "":
        value = document
    else:
        holder, part = _placed(document, path, "test", f"is missing path: {path}")
        try:
            value = _at(holder, part)
        except _Missing as error:
            raise _fault(f"error in test for path: '{path}': {error}") from None
    if not is_same_json(value, operation.get("value")):
        raise TestFailed
    return document


_OPERATIONS: Final = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
