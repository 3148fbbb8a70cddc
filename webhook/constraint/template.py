"""ConstraintTemplates: ``templates.gatekeeper.sh`` v1, v1beta1 and v1alpha1, read into one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from webhook.api.gvk import gvk_of
from webhook.api.names import CONSTRAINT_GROUP
from webhook.constraint.depth import DEPTH_MAX, is_deeper
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.schema_reading import has_several_items, open_schema, read_schema
from webhook.values import dataclass

GROUP: Final = "templates.gatekeeper.sh"
KIND: Final = "ConstraintTemplate"
REGO: Final = "Rego"
CEL: Final = "K8sNativeValidation"
"""The engines that Gatekeeper has."""

OWN_KINDS: Final = frozenset({KIND.lower(), CONSTRAINT_GROUP.lower()})
"""Kinds that a constraint cannot have, in lower case: its statuses and metrics could not be
distinguished from those of templates or groups.
"""

# Whether parameters are free unless the template says otherwise: the default of
# legacySchema in each version of the template's CRD.
_LEGACY_SCHEMA: Final = {"v1": False, "v1beta1": True, "v1alpha1": True}

_OPERATIONS: Final = frozenset({"*", "CREATE", "UPDATE", "DELETE", "CONNECT"})


@dataclass(frozen=True, slots=True)
class Code:
    """One source of a template: its engine and the engine's input."""

    engine: str
    source: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Template:
    """A ConstraintTemplate of any version.

    ``schema`` is the OpenAPI schema of ``spec.parameters``, opened at every level for a legacy
    schema; None without one. ``others`` are the same template for its further targets.
    """

    name: str
    kind: str
    target: str
    code: tuple[Code, ...]
    operations: frozenset[str] = frozenset()
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    short_names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    others: tuple[Template, ...] = field(default=(), repr=False)

    @property
    def parts(self) -> tuple[Template, ...]:
        """Returns the template for each of its targets."""
        return (self, *self.others)

    @property
    def targets(self) -> str:
        """The names of its targets, with spaces between them."""
        return " ".join(sorted(part.target for part in self.parts))

    def foremost(self, targets: Iterable[str]) -> Template:
        """Returns the template for the target that comes first in ``targets``."""
        if not self.others:
            return self
        order = {name: number for number, name in enumerate(targets)}
        first, *rest = sorted(self.parts, key=lambda part: order.get(part.target, len(order)))
        return replace(first, others=tuple(replace(part, others=()) for part in rest))

    def matches_operation(self, operation: str) -> bool:
        """Whether the template is for this operation; without operations it is for all."""
        return not self.operations or operation in self.operations or "*" in self.operations


def read_template(document: Mapping[str, Any]) -> Template:
    """Reads a template; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
    if is_deeper(document.get("spec")):
        raise _invalid(f"nested deeper than {DEPTH_MAX} levels")
    gvk = gvk_of(document)
    if (gvk.group, gvk.kind) != (GROUP, KIND):
        raise _invalid("not a ConstraintTemplate")
    if gvk.version not in _LEGACY_SCHEMA:
        raise _invalid(f'unsupported version "{gvk.version}", supported: v1, v1beta1, v1alpha1')
    metadata = _mapping(document, "metadata")
    spec = _mapping(document, "spec")
    crd = _mapping(_mapping(spec, "crd", "spec."), "spec", "spec.crd.")
    names = _mapping(crd, "names", "spec.crd.spec.")
    name, kind = _text(metadata, "name", "metadata."), _text(names, "kind", "spec.crd.spec.names.")
    targets = _targets(spec)
    if not kind:
        raise _invalid(f'ConstraintTemplate "{name}" does not specify CRD Kind')
    if name.lower() != kind.lower():
        raise _invalid(
            f'the ConstraintTemplate\'s name "{name}" is not equal to the lowercase of '
            f'CRD\'s Kind: "{kind.lower()}"'
        )
    schema = _schema(crd, legacy=_LEGACY_SCHEMA[gvk.version])
    short_names = tuple(_texts(names, "shortNames", "spec.crd.spec.names."))
    labels = _labels(metadata)
    first, *others = [
        Template(
            name=name,
            kind=kind,
            target=_text(target, "target", path),
            code=_code(target, path),
            operations=frozenset(_texts(target, "operations", path)),
            schema=schema,
            short_names=short_names,
            labels=labels,
            document=document,
        )
        for path, target in targets.items()
    ]
    return replace(first, others=tuple(others)) if others else first


def kind_of(document: Mapping[str, Any]) -> str:
    """Returns the constraint kind of a template, even of a broken one; or empty.

    Also empty for a kind that no constraint can have (:data:`OWN_KINDS`).
    """
    value: Any = document
    for field_ in ("spec", "crd", "spec", "names", "kind"):
        value = value.get(field_) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value.lower() not in OWN_KINDS else ""


def _invalid(message: str) -> InvalidTemplate:
    return InvalidTemplate(f"invalid ConstraintTemplate: {message}")


def _targets(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns each target by its path in the template."""
    targets = spec.get("targets")
    if targets is None:
        raise _invalid('field "targets" not specified in ConstraintTemplate spec')
    if type(targets) is not list or not all(type(target) is dict for target in targets):
        raise _invalid("spec.targets must be an array of objects")
    if not targets:
        raise _invalid("no targets specified: ConstraintTemplate must specify one target")
    by_path: dict[str, Mapping[str, Any]] = {}
    names: set[str] = set()
    for number, target in enumerate(targets):
        path = f"spec.targets[{number}]."
        if not target.get("target"):
            raise _invalid("target name must not be empty")
        name = _text(target, "target", path)
        if name in names:
            raise _invalid(f'target "{name}" is named twice')
        for operation in _texts(target, "operations", path):
            if operation not in _OPERATIONS:
                raise _invalid(
                    f'{path}operations: unsupported value "{operation}": supported values: '
                    '"*", "CREATE", "UPDATE", "DELETE", "CONNECT"'
                )
        names.add(name)
        by_path[path] = target
    return by_path


def _code(target: Mapping[str, Any], path: str) -> tuple[Code, ...]:
    """Returns the sources; ``rego`` and ``libs`` replace a source for the engine Rego."""
    listed = target.get("code")
    if listed is not None and type(listed) is not list:
        raise _invalid(f"{path}code must be an array")
    code: list[Code] = []
    for index, item in enumerate(listed or ()):
        if type(item) is not dict:
            raise _invalid(f"{path}code[{index}] must be an object")
        engine = _text(item, "engine", f"{path}code[{index}].")
        code.append(Code(engine, item.get("source")))
    rego = _text(target, "rego", path)
    if not rego:
        return tuple(code)
    libs = _texts(target, "libs", path)
    legacy = Code(REGO, {"rego": rego, "version": "", "libs": libs})
    for index, item in enumerate(code):
        if item.engine == REGO:
            return (*code[:index], legacy, *code[index + 1 :])
    return (*code, legacy)


def _schema(crd: Mapping[str, Any], *, legacy: bool) -> Mapping[str, Any] | None:
    validation = _mapping(crd, "validation", "spec.crd.spec.")
    legacy_schema = validation.get("legacySchema")
    if legacy_schema is not None:
        if type(legacy_schema) is not bool:
            raise _invalid("spec.crd.spec.validation.legacySchema must be a boolean")
        legacy = legacy_schema
    schema = validation.get("openAPIV3Schema")
    if schema is not None and type(schema) is not dict:
        raise _invalid("spec.crd.spec.validation.openAPIV3Schema must be an object")
    read = None if schema is None else read_schema(schema)
    if not legacy:
        return read
    if has_several_items(read or {}):
        raise _invalid("non-nil JSONSchemas encountered, multiple schemas are not supported")
    return open_schema(read or {})


def _mapping(owner: Mapping[str, Any], name: str, path: str = "") -> Mapping[str, Any]:
    value = owner.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise _invalid(f"{path}{name} must be an object")
    return value


def _text(owner: Mapping[str, Any], name: str, path: str) -> str:
    value = owner.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise _invalid(f"{path}{name} must be a string")
    return value


def _texts(owner: Mapping[str, Any], name: str, path: str) -> list[str]:
    value = owner.get(name)
    if value is None:
        return []
    if type(value) is not list or not all(type(item) is str for item in value):
        raise _invalid(f"{path}{name} must be an array of strings")
    return value


def _labels(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    labels = _mapping(metadata, "labels", "metadata.")
    if not all(type(value) is str for value in labels.values()):
        raise _invalid("metadata.labels must have strings for values")
    return labels
