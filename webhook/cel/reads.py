"""Finds the reads of an expression, by interpreting it over abstract values.

A *shallow* read uses a value's presence and type, a *whole* read its complete content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.syntax import ast
from webhook.reads.abstract import ANYTHING, EMPTY, Abstract, Unclear, constant, united
from webhook.reads.read_set import EVERY_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.cel.check.checker import Checked
    from webhook.reads.abstract import AbstractReader

VARIABLES: Final = ".variables"

_LOGICAL: Final = frozenset({"_&&_", "_||_", "!_"})
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})
_STEPS: Final = frozenset({"_[_]", "_[?_]"})
_UNWRAPPING: Final = frozenset({"value", "optional.of", "optional.ofNonZeroValue", "dyn"})


class ExpressionReads:
    """Finds the reads of one checked expression.

    ``roots`` are the variables of the review, ``composed`` gives the policy's own by name.
    """

    def __init__(
        self,
        checked: Checked,
        reader: AbstractReader,
        roots: Mapping[str, Abstract],
        composed: Callable[[str], Abstract],
    ) -> None:
        self._checked = checked
        self._reader = reader
        self._roots = roots
        self._composed = composed

    def value(self) -> Abstract:
        """Returns the abstract value of the expression; raises Unclear if it is too complex."""
        return self._value(self._checked.parsed.root, {})

    def _value(self, node: ast.Expr, env: Mapping[str, Abstract]) -> Abstract:
        self._reader.pay()
        meaning = self._checked.names.get(node)
        if meaning is not None:
            return self._named(meaning, env)
        match node:
            case ast.Constant():
                return constant(node.value)
            case ast.Name():
                return env.get(node.name) or ANYTHING
            case ast.Select():
                return self._select(node, env)
            case ast.Call():
                return self._call(node, env)
            case ast.ListOf():
                items = [
                    self._part(item, env, is_optional=at in node.optional)
                    for at, item in enumerate(node.items)
                ]
                return Abstract(items=united(items), container=True)
            case ast.MapOf():
                return self._map(node, env)
            case ast.Message():
                for field in node.fields:
                    self._reader.whole(self._value(field.value, env))
                return ANYTHING
            case ast.Fold():
                return self._fold(node, env)
            case ast.OptMap():
                target = self._shallow_value(node.target, env)
                return (
                    united((self._value(node.body, {**env, node.variable.name: target}), ANYTHING))
                    or ANYTHING
                )
            case ast.SortBy():
                return self._sorted(node, env)
        raise Unclear

    def _named(self, meaning: str, env: Mapping[str, Abstract]) -> Abstract:
        """Returns the value of a name: of a root, a variable of a macro, or a type."""
        if not meaning.startswith("."):
            return env.get(meaning) or ANYTHING
        root = self._roots.get(meaning)
        if root is not None:
            return root
        if meaning in env:
            return env[meaning]
        raise Unclear

    def _shallow_value(self, node: ast.Expr, env: Mapping[str, Abstract]) -> Abstract:
        """Returns the value of an operand, after a shallow read of it."""
        value = self._value(node, env)
        self._reader.shallow(value)
        return value

    def _below(self, value: Abstract, key: Any = EVERY_KEY) -> Abstract:
        """Returns the value at a key, after a shallow read; a missing one is an error or none."""
        below = self._reader.step(value, key if type(key) in (str, int) else EVERY_KEY)
        if below is None:
            return ANYTHING
        self._reader.shallow(below)
        return below

    def _select(self, node: ast.Select, env: Mapping[str, Abstract]) -> Abstract:
        if self._checked.names.get(node.operand) == VARIABLES:
            return self._composed(node.field)
        below = self._below(self._shallow_value(node.operand, env), node.field)
        return ANYTHING if node.tests else below

    def _map(self, node: ast.MapOf, env: Mapping[str, Abstract]) -> Abstract:
        values = []
        for entry in node.entries:
            self._reader.whole(self._value(entry.key, env))
            values.append(self._part(entry.value, env, is_optional=entry.optional))
        return Abstract(items=united(values), container=True)

    def _part(self, node: ast.Expr, env: Mapping[str, Abstract], *, is_optional: bool) -> Abstract:
        """Returns a part of a list or map; the error for one that is no optional shows its value."""
        value = self._value(node, env)
        if is_optional and self._checked.types[node].name != "optional_type":
            self._reader.whole(value)
        return value

    def _fold(self, node: ast.Fold, env: Mapping[str, Abstract]) -> Abstract:
        range_ = self._shallow_value(node.range, env)
        self._reader.keys(range_)
        item = self._below(range_)
        inner = dict(env)
        if node.second is None:
            inner[node.first] = united((item, ANYTHING)) or ANYTHING  # of a map it is a key
        else:
            inner |= {node.first: ANYTHING, node.second: item}
        if node.test is not None:
            self._reader.shallow(self._value(node.test, inner))
        body = self._value(node.body, inner)
        if node.kind in ("map", "list", "map_value"):
            return Abstract(items=body, container=True)
        if node.kind == "map_entry":
            self._reader.whole(body)
            return ANYTHING
        self._reader.shallow(body)
        if node.kind == "filter":
            return Abstract(items=inner[node.first], container=True)
        return ANYTHING

    def _sorted(self, node: ast.SortBy, env: Mapping[str, Abstract]) -> Abstract:
        target = self._shallow_value(node.target, env)
        self._reader.keys(target)
        item = self._below(target)
        self._reader.whole(self._value(node.key, {**env, node.name: item}))
        return Abstract(items=item, container=True)

    def _call(self, node: ast.Call, env: Mapping[str, Abstract]) -> Abstract:
        name = self._checked.functions.get(node, node.function)
        parts = [] if node.target is None or node in self._checked.functions else [node.target]
        if node.function in _STEPS:
            return self._item(node, env)
        values = [self._value(part, env) for part in (*parts, *node.args)]
        return self._result(name, node.function, values)

    def _item(self, node: ast.Call, env: Mapping[str, Abstract]) -> Abstract:
        value = self._shallow_value(node.args[0], env)
        key = self._value(node.args[1], env)
        known = key.known
        if known is None:
            self._reader.whole(key)
            return self._below(value)
        return united(self._below(value, name) for _, name in known) or ANYTHING

    def _result(self, name: str, function: str, values: list[Abstract]) -> Abstract:
        """Returns the result of a call; a function that has no case here reads its operands whole."""
        reader = self._reader
        if function in _COMPARISONS and len(values) == 2:
            reader.compare(*values)
            return ANYTHING
        if function in _LOGICAL or function in {"type", "hasValue"}:
            for value in values:
                reader.shallow(value)
            return ANYTHING
        if function == "_?_:_" and len(values) == 3:
            reader.shallow(values[0])
            return united(values[1:]) or ANYTHING
        if function in ("or", "orValue") and len(values) == 2:
            reader.shallow(values[0])
            return united(values) or ANYTHING
        if (function in _UNWRAPPING or name in _UNWRAPPING) and len(values) == 1:
            if name.endswith("NonZeroValue"):
                reader.whole(values[0])
            reader.shallow(values[0])
            return values[0]
        return self._of_collections(function, values)

    def _of_collections(self, function: str, values: list[Abstract]) -> Abstract:
        reader = self._reader
        if function == "size" and len(values) == 1:
            reader.shallow(values[0])
            reader.keys(values[0])
            return ANYTHING
        if function in ("@in", "_in_") and len(values) == 2:
            reader.shallow(values[1])
            reader.keys(values[1])
            reader.compare(values[0], reader.step(values[1]) or EMPTY)
            return ANYTHING
        if function == "_+_" and len(values) == 2:
            for value in values:
                reader.shallow(value)
                reader.keys(value)
            return united((*values, ANYTHING)) or ANYTHING
        for value in values:
            reader.whole(value)
        return ANYTHING
