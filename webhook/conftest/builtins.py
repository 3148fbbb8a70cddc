"""conftest's built-ins, which read configurations within policies (builtins/parse_config.go).

``parse_config_file`` and ``parse_combined_config_files`` take paths relative to the policy's
folder: :func:`placed` writes that folder into their calls before a module is compiled.
"""

from __future__ import annotations

import os.path
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from webhook import parsers
from webhook.conftest.configurations import FileError, combined, read_one
from webhook.parsers.errors import ParseError
from webhook.rego.builtins.registry import make_builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.syntax.ast import Call, Module, Ref, String, Var
from webhook.rego.types import ANY, STRING, array_of, object_of

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

_FILE: Final = "parse_config_file"
_FILES: Final = "parse_combined_config_files"
_IN_FOLDER: Final = {_FILE: "conftest.parse_config_file", _FILES: "conftest.parse_config_files"}
PRIVATE: Final = frozenset(_IN_FOLDER.values())
"""Names of built-ins in compiled modules, which policies do not use."""


def _parse(name: str, configuration: str) -> Value:
    try:
        return parsers.parse(name, configuration.encode("utf-8", "surrogateescape"), "")
    except ParseError as error:
        raise BuiltinError(f"unmarshal config: {error}") from None


def _parse_file(folder: str, path: str) -> Value:
    try:
        return read_one(_beside(folder, path)).value
    except FileError as error:
        raise BuiltinError(f"unmarshal config: {error}") from None


def _parse_files(folder: str, paths: list[Value]) -> Value:
    values = []
    for path in paths:
        try:
            values.append(read_one(_beside(folder, str(path))))
        except FileError as error:
            raise BuiltinError(f"parse combine configurations: {error}") from None
    return combined(values)


def _beside(folder: str, path: str) -> str:
    """Returns a path below a folder like Go's ``filepath.Join``, even if it begins with ``/``."""
    return os.path.normpath(f"{folder or '.'}/{path}")


_CONFIGURATION: Final = object_of(STRING, ANY)

TABLE: Final = {
    declaration.name: declaration
    for declaration in (
        make_builtin("parse_config", [STRING, STRING], _CONFIGURATION, _parse),
        make_builtin(_FILE, [STRING], _CONFIGURATION, lambda path: _parse_file("", path)),
        make_builtin(
            _FILES, [array_of(STRING)], _CONFIGURATION, lambda paths: _parse_files("", paths)
        ),
        make_builtin(_IN_FOLDER[_FILE], [STRING, STRING], _CONFIGURATION, _parse_file),
        make_builtin(_IN_FOLDER[_FILES], [STRING, array_of(STRING)], _CONFIGURATION, _parse_files),
    )
}
"""The built-ins by name."""


def named(error: Exception) -> str:
    """Returns an error's text with the names that policies use."""
    text = str(error)
    for name, private in _IN_FOLDER.items():
        text = text.replace(f"{private}:", f"{name}:")
    return text


def placed(module: Module) -> Module:
    """Returns the module with its folder in each call that reads files."""
    if _FILE not in module.source and _FILES not in module.source:
        return module
    folder = os.path.dirname(module.file)  # noqa: PTH120  # must stay textual
    return replace(module, rules=tuple(_placed(rule, folder) for rule in module.rules))


def _placed(node: Any, folder: str) -> Any:
    if isinstance(node, tuple):
        return tuple(_placed(item, folder) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple) or is_dataclass(value):
            changed = _placed(value, folder)
            if changed is not value:
                changes[field.name] = changed
    altered = replace(node, **changes) if changes else node
    if isinstance(altered, Call) and len(altered.args) == 1:
        name = _name(altered.operator)
        if name in _IN_FOLDER:
            head, step = _IN_FOLDER[name].split(".")
            operator = Ref(Var(head), (String(step),), location=altered.location)
            beside = String(folder, location=altered.location)
            return replace(altered, operator=operator, args=(beside, *altered.args))
    return altered


def _name(operator: Any) -> str:
    if isinstance(operator, Ref) and not operator.path:
        operator = operator.head
    return operator.name if isinstance(operator, Var) else ""
