"""Finds the paths of the review that a template in CEL reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError as ExpressionError
from webhook.cel.kubernetes import admission
from webhook.cel.reads import VARIABLES, ExpressionReads
from webhook.constraint.drivers.cel_source import ANY_OBJECT, INVENTORY, PARAMS, CelSource
from webhook.constraint.errors import CompileError
from webhook.reads.abstract import (
    EMPTY,
    Abstract,
    AbstractReader,
    Unclear,
    at_place,
    constant,
    united,
)
from webhook.reads.read_set import EVERY_KEY, WHOLE, PolicyReads

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.reads.read_set import ReadPath

_REVIEW: Final = ("input", "review")
_OPERATION: Final = (*_REVIEW, "operation")

_REQUEST: Final = {
    **{name: name for name in ("kind", "resource", "operation", "userInfo", "dryRun", "options")},
    **{name: name for name in ("name", "namespace", "subResource")},
    "requestKind": "kind",
    "requestResource": "resource",
    "requestSubResource": "subResource",
}
"""The fields of ``request`` with the fields of the review that they come from."""

_NAMESPACE: Final = (*_REVIEW, "namespaceObject")
_ABSENT_IF_EMPTY: Final = (
    _NAMESPACE,
    *((*_NAMESPACE, "metadata", name) for name in ("labels", "annotations", "finalizers")),
    *((*_REVIEW, "userInfo", name) for name in ("groups", "extra")),
)
"""The parts of a review that expressions see as null, or not at all, if they are empty."""


def dependencies_of_cel(source: CelSource, parameters: Any = None) -> PolicyReads:
    """Returns the paths that all expressions of a source read.

    ``parameters`` are those of a constraint. Values of a Secret count as not read where error texts
    omit them. Raises :class:`~webhook.constraint.errors.CompileError`.
    """
    interpretation = _Sources(source, parameters)
    try:
        interpretation.run()
    except (Unclear, RecursionError):
        return PolicyReads(WHOLE, WHOLE)
    return PolicyReads(interpretation.reader.record.frozen(), interpretation.deciding)


class _ReviewReader(AbstractReader):
    """Records with a shallow read whether the value is empty, where that makes it absent."""

    def shallow(self, value: Abstract) -> None:
        """Records the type of a value, the value of a scalar, and perhaps all keys."""
        super().shallow(value)
        for place in value.places:
            if any(_is_at(place, path) for path in _ABSENT_IF_EMPTY):
                self.record.present((*place, EVERY_KEY))

    def keys(self, value: Abstract) -> None:
        """Records all keys, or the number of items, with whether those of a request are absent."""
        super().keys(value)
        for _, field in value.fields:
            self.shallow(field)
        for place in value.places:
            if any(_is_at(place, path[:-1]) for path in _ABSENT_IF_EMPTY[1:]):
                self.shallow(at_place(*place, EVERY_KEY))


def _is_at(place: ReadPath, path: ReadPath) -> bool:
    return len(place) == len(path) and all(
        at in (name, EVERY_KEY) for at, name in zip(place, path, strict=True)
    )


class _Sources:
    """The expressions of one source; a variable is interpreted when an expression reads it."""

    def __init__(self, source: CelSource, parameters: Any) -> None:
        given = at_place("input", "parameters") if parameters is None else constant(parameters)
        self.reader = _ReviewReader({("input", "constraint", "spec", "parameters"): given})
        self._source = source
        self._types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
        self._known: dict[str, Abstract] = {PARAMS: given}
        if source.has_inventory:
            self._types[INVENTORY] = DYN
            self._known[INVENTORY] = at_place("data", "inventory")
        self._checked: dict[str, Checked] = {}
        self.deciding = WHOLE
        request = tuple((name, at_place(*_REVIEW, of)) for name, of in _REQUEST.items())
        self._roots = {
            ".object": at_place(*_REVIEW, "object"),
            ".oldObject": at_place(*_REVIEW, "oldObject"),
            ".request": Abstract(fields=request, container=True),
            ".namespaceObject": at_place(*_REVIEW, "namespaceObject"),
            ".params": at_place("input", "constraint"),
            VARIABLES: EMPTY,
        }
        self._known[ANY_OBJECT] = (
            united((self._roots[".object"], self._roots[".oldObject"])) or EMPTY
        )

    def run(self) -> None:
        """Interprets validations, match conditions and messages."""
        source = self._source
        # The operation decides which of the object and the old object is reviewed.
        self.reader.record.shallow(_OPERATION)
        for variable in source.variables:
            self._checked[variable.name] = checked = self._check(variable.expression, params=True)
            self._types[variable.name] = checked.type
        expressions = [condition.expression for condition in source.match_conditions]
        for text in (*expressions, *(validation.expression for validation in source.validations)):
            self.reader.whole(self._value(self._check(text)))
        self.deciding = self.reader.record.frozen()
        for text in filter(
            None, (validation.message_expression for validation in source.validations)
        ):
            self.reader.whole(self._value(self._check(text)))

    def _check(self, text: str, *, params: bool = False) -> Checked:
        try:
            return checked_expression(text, admission(self._types, params=params))
        except ExpressionError as error:
            raise CompileError(str(error)) from None

    def _value(self, checked: Checked) -> Abstract:
        return ExpressionReads(checked, self.reader, self._roots, self._composed).value()

    def _composed(self, name: str) -> Abstract:
        value = self._known.get(name)
        if value is None:
            value = self._known[name] = self._value(self._checked[name])
        self.reader.shallow(value)
        return value
