"""Computes ``rego.metadata.rule()`` and ``rego.metadata.chain()`` before evaluation.

The chain of a rule begins with the rule's own annotations, the nearest block
first (an entry without annotations where it has none), and goes on with those of
its document, its package, and the subpackage scopes from the nearest outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax.ast import Annotations, Module, Ref, Rule, String, Var
from webhook.rego.syntax.parser import has_metadata, parse_ref

Path = tuple[str, ...]


def _package_path(module: Module) -> Path:
    """Returns the names of a package, without ``data``."""
    return tuple(part.value for part in module.package.path if isinstance(part, String))


def rule_path(module: Module, rule: Rule) -> Path:
    """Returns the names that lead to a rule, without ``data``, up to its first dynamic part."""
    ref: Ref = rule.head.ref
    names = [ref.head.name] if isinstance(ref.head, Var) else []
    for part in ref.path:
        if not isinstance(part, String):
            break
        names.append(part.value)
    return (*_package_path(module), *names)


def block_faults(module: Module) -> list[RegoLoadError]:
    """Returns the faults of a module's blocks that its parser let pass."""
    if not has_metadata(module.comments):
        return []
    from webhook.rego.syntax.annotations import attach, read_annotations  # noqa: PLC0415  # YAML

    annotations, faults = read_annotations(list(module.comments), parse_ref)
    _, _, misplaced = attach(annotations, module.package, list(module.imports), list(module.rules))
    return faults + misplaced


class Metadata:
    """The annotations of a set of modules, by the statements that they describe.

    It is made if a module calls ``rego.metadata``, or if the caller of the compiler requests a
    check of annotations. ``errors`` then holds the errors of all blocks in all modules.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self.errors: list[RegoLoadError] = []
        self._packages: dict[Path, Annotations] = {}
        self._paths: dict[Path, Annotations] = {}
        for module in modules:
            self.errors += block_faults(module)
            self._collect(module)

    def _collect(self, module: Module) -> None:
        package = _package_path(module)
        for annotation in module.annotations:
            if annotation.scope == "package":
                self._declare(self._packages, package, annotation)
            elif annotation.scope == "subpackages":
                self._declare(self._paths, package, annotation)
        for rule in module.rules:
            for annotation in rule.annotations:
                if annotation.scope == "document":
                    self._declare(self._paths, rule_path(module, rule), annotation)

    def _declare(self, scope: dict[Path, Annotations], path: Path, annotation: Annotations) -> None:
        first = scope.setdefault(path, annotation)
        if first is not annotation:
            message = f"{annotation.scope} annotation redeclared: {first.location}"
            self.errors.append(RegoLoadError("rego_type_error", message, annotation.location))

    def chain(self, module: Module, rule: Rule) -> list[dict[str, Any]]:
        """Returns ``rego.metadata.chain()`` of this rule."""
        path, package = rule_path(module, rule), _package_path(module)
        rule_annotations = [
            annotation for annotation in rule.annotations if annotation.scope == "rule"
        ]
        entries = [_entry(path, annotation) for annotation in reversed(rule_annotations)]
        if not entries:
            entries.append({"path": list(path)})
        if path in self._paths:
            entries.append(_entry(path, self._paths[path]))
        if package in self._packages:
            entries.append(_entry(package, self._packages[package]))
        for length in range(len(package), -1, -1):
            outer = self._paths.get(package[:length])
            if outer is not None:
                entries.append(_entry(package[:length], outer))
        return entries

    def schemas(self, module: Module, rule: Rule) -> list[dict[str, Any]]:
        """Returns the schemas of documents from the rule's annotations; later schemas prevail."""
        path, package = rule_path(module, rule), _package_path(module)
        chain = [self._paths.get(package[:length]) for length in range(len(package) + 1)]
        chain += [self._packages.get(package), self._paths.get(path)]
        chain += [annotation for annotation in rule.annotations if annotation.scope == "rule"]
        return [
            schema
            for annotation in chain
            if annotation is not None
            for schema in annotation.value.get("schemas", ())
        ]

    @staticmethod
    def rule(rule: Rule) -> dict[str, Any]:
        """Return ``rego.metadata.rule()`` of this rule."""
        return next(
            (annotation.value for annotation in rule.annotations if annotation.scope == "rule"), {}
        )


def _entry(path: Path, annotation: Annotations) -> dict[str, Any]:
    return {"path": list(path), "annotations": annotation.value}
