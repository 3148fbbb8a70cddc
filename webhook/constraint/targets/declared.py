"""Targets declared by a file: how a document is split, and the fields of ``spec.match``.

No Python is needed for a format of one's own::

    apiVersion: targets.waddle.dev/v1alpha1
    kind: Target
    metadata:
      name: compose.example.com
    spec:
      reviews: services.*        # each of them; without it the document itself
      name: container_name       # of what is reviewed, as results call it; or where it stands
      match:
        images: {path: image, separator: "/"}   # globs, and excludedImages beside it
        labels: {path: labels, as: labels}      # a label selector
        files: {of: document}                   # globs over the file's name
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.api.gvk import name_of
from webhook.constraint.errors import ConstraintFrameworkError, InvalidConstraint, ReviewError
from webhook.constraint.review import Document
from webhook.constraint.selector import compile_selector
from webhook.constraint.selector_validation import validate_selector
from webhook.constraint.targets.documents import DocumentTarget
from webhook.constraint.targets.match_schema import selector_schema
from webhook.constraint.targets.path_globs import LIST_SCHEMA, compile_globs, patterns
from webhook.printable import type_of
from webhook.values import dataclass

_EVERY: Final = "*"
_KEYS: Final = {"path", "as", "of", "separator"}
_SPEC_KEYS: Final = {"description", "reviews", "name", "match"}


class InvalidTarget(ConstraintFrameworkError):  # as its siblings
    """A declared target cannot be used."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of ``spec.match``; ``path`` is None for the file's name."""

    name: str
    path: tuple[str, ...] | None
    labels: bool
    separator: str

    @property
    def excluded(self) -> str:
        """The name of the excluding field."""
        return f"excluded{self.name[0].upper()}{self.name[1:]}"

    def test(self, match: Mapping[str, Any]) -> Callable[[Document], bool] | None:
        """Returns a test of documents by this field; None if the match does not use it."""
        if self.labels:
            selector = match.get(self.name)
            if selector is None:
                return None
            validate_selector(selector)
            holds = compile_selector(selector)
            return lambda document: any(
                map(holds, filter(_is_labels, self._values(document) or [{}]))
            )
        included, excluded = patterns(match, self.name), patterns(match, self.excluded)
        if included is None and not excluded:
            return None
        globs = compile_globs(included, (), self.separator)
        spared = compile_globs(None, excluded, self.separator)

        def is_met(document: Document) -> bool:
            texts = [value for value in self._values(document) if type(value) is str]
            return (included is None or any(map(globs, texts))) and all(map(spared, texts))

        return is_met

    def _values(self, document: Document) -> list[Any]:
        if self.path is None:
            return [document.file]
        return [value for _, value in _at(document.value, self.path)]


class DeclaredTarget(DocumentTarget):
    """A target that a document of kind ``Target`` declares."""

    def __init__(
        self, name: str, reviews: tuple[str, ...], title: tuple[str, ...], fields: Sequence[_Field]
    ) -> None:
        self.name = name
        self._reviews = reviews
        self._title = title
        self._fields = tuple(fields)

    def match_schema(self) -> dict[str, Any]:
        """Returns the schema of ``spec.match``."""
        properties: dict[str, Any] = {}
        for field in self._fields:
            properties[field.name] = (
                selector_schema("Selects by labels.") if field.labels else LIST_SCHEMA
            )
            if not field.labels:
                properties[field.excluded] = LIST_SCHEMA
        return {"type": "object", "properties": properties}

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Refuses fields that the target does not have, which would otherwise match everything."""
        super().validate_constraint(constraint)
        spec = constraint.get("spec")
        match = spec.get("match") if isinstance(spec, dict) else None
        known = self.match_schema()["properties"]
        for field in match if isinstance(match, dict) else ():
            if field not in known:
                raise InvalidConstraint(
                    f"spec.match.{field}: target {self.name} matches by "
                    f"{', '.join(known) or 'nothing'}"
                )

    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Returns a test by every field of the constraint's match."""
        tests = [test for field in self._fields if (test := field.test(match)) is not None]
        return lambda document: all(test(document) for test in tests)

    def documents(self, value: Any, name: str) -> Iterator[Document]:
        """Returns the documents of a file, as ``spec.reviews`` splits it."""
        values = list(_at(value, self._reviews))
        if not values and type(value) not in (dict, list):
            raise ReviewError(
                f"{name}: expected an object or an array for target {self.name}, "
                f"got {type_of(value)}"
            )
        for place, item in values:
            titles = [text for _, text in _at(item, self._title) if type(text) is str]
            shown = titles[0] if self._title and titles else ".".join((name, *place))
            yield Document(item, shown, self.name, name)


def read_target(document: Mapping[str, Any]) -> DeclaredTarget:
    """Reads a declared target; raises :class:`InvalidTarget`."""
    name = name_of(document)
    if not name:
        raise InvalidTarget("invalid Target: metadata.name must not be empty")
    spec = document.get("spec")
    if spec is not None and type(spec) is not dict:
        raise _invalid(name, "spec must be an object")
    spec = spec or {}
    _refuse_unknown(name, "spec", spec, _SPEC_KEYS)
    match = spec.get("match") or {}
    if type(match) is not dict or not all(map(str, match)):
        raise _invalid(name, "spec.match must be an object")
    return DeclaredTarget(
        name,
        _path(name, "spec.reviews", spec.get("reviews") or ""),
        _path(name, "spec.name", spec.get("name") or ""),
        [_field(name, field, value) for field, value in match.items()],
    )


def _field(target: str, name: str, field_value: Any) -> _Field:
    place = f"spec.match.{name}"
    if type(field_value) is not dict:
        raise _invalid(target, f"{place} must be an object")
    _refuse_unknown(target, place, field_value, _KEYS)
    kind, of = field_value.get("as", "globs"), field_value.get("of", "review")
    for key, value, allowed in (
        ("as", kind, ("globs", "labels")),
        ("of", of, ("review", "document")),
    ):
        if value not in allowed:
            raise _invalid(target, f"{place}.{key} must be one of {', '.join(allowed)}")
    if of == "document" and ("path" in field_value or kind == "labels"):
        raise _invalid(target, f"{place}: a file has a name, and neither paths nor labels")
    separator = field_value.get("separator", "")
    if type(separator) is not str or len(separator) > 1:
        raise _invalid(target, f"{place}.separator must be one character")
    path = (
        None if of == "document" else _path(target, f"{place}.path", field_value.get("path", name))
    )
    return _Field(name, path, kind == "labels", separator)


def _path(target: str, place: str, given: Any) -> tuple[str, ...]:
    """Returns a path from dotted names or a list of names; ``*`` stands for every member."""
    if type(given) is str:
        given = given.split(".") if given else []
    if type(given) is not list or not all(type(part) is str and part for part in given):
        raise _invalid(target, f"{place} must be names with dots between them, or a list of names")
    return tuple(given)


def _at(value: Any, path: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the values along a path, each with its position."""
    if not path:
        yield (), value
        return
    step, rest = path[0], path[1:]
    inner: list[tuple[str, Any]] = []
    if type(value) is dict:
        inner = list(value.items()) if step == _EVERY else [(step, value.get(step, _NOTHING))]
    elif type(value) is list and step == _EVERY:
        inner = [(str(index), item) for index, item in enumerate(value)]
    for name, child in inner:
        if child is not _NOTHING:
            for place, below in _at(child, rest):
                yield (name, *place), below


_NOTHING: Final = object()


def _is_labels(value: Any) -> bool:
    return type(value) is dict


def _refuse_unknown(target: str, place: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(map(str, given)) - known)
    if unknown:
        raise _invalid(
            target, f"{place}: unknown field {unknown[0]}; there are {', '.join(sorted(known))}"
        )


def _invalid(name: str, message: str) -> InvalidTarget:
    return InvalidTarget(f"invalid Target {name}: {message}")
