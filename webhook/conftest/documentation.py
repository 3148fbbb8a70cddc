"""Writes a page about the policies of a folder, from their METADATA annotations (document/)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from webhook.conftest.policies import ConftestPolicyError
from webhook.golang.format import TooLong
from webhook.golang.templates.execution import render
from webhook.golang.templates.functions import JsonNumber
from webhook.golang.templates.syntax import parse
from webhook.golang.templates.tokens import TemplateError
from webhook.policies.rego_files import LoadErrors, load
from webhook.rego.run.text import json_string
from webhook.rego.syntax.ast import Annotations, Module, String
from webhook.rego.syntax.metadata import rule_path
from webhook.values import dataclass

_CHARACTERS_MAX: Final = 16 << 20
"""The longest page; a page is for people."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELDS: Final[dict[str, tuple[str, Any]]] = {
    "Scope": ("scope", ""),
    "Title": ("title", ""),
    "Description": ("description", ""),
    "Entrypoint": ("entrypoint", False),
    "Organizations": ("organizations", []),
    "Custom": ("custom", {}),
    "Labels": ("labels", {}),
}
"""The annotation fields of OPA that templates read, with the keys and defaults here."""


@dataclass(frozen=True, slots=True)
class DocumentedSection:
    """A section of the page: an annotated rule or package, and the depth of its heading."""

    depth: int
    name: str
    annotations: Annotations

    @property
    def heading(self) -> str:
        """Returns Markdown's mark for the heading."""
        return "#" * self.depth


def documentation(folder: str, template: str) -> str:
    """Returns the page; ``template`` is the path of a Go template, or empty.

    Raises :class:`ConftestPolicyError`.
    """
    parts = sections(_modules(folder))
    if not parts:
        raise ConftestPolicyError(
            "generating document: parse rego annotations: no annotations found"
        )
    if not template:
        return "".join(map(_markdown, parts))
    try:
        tree = parse(Path(template).read_text("utf-8"))
        return render(_Unpaid(), tree, list(map(_value, parts)), _CHARACTERS_MAX)
    except OSError as error:
        why = f"{template}: {error.strerror}"
    except (TemplateError, TooLong, UnicodeDecodeError) as error:
        why = f"{template}: {error}"
    raise ConftestPolicyError(f"generating document: rendering document: {why}")


def _modules(folder: str) -> list[Module]:
    """Returns the folder's modules without tests."""
    try:
        return load([folder], ignore=["*_test.rego"], documents=False, annotations=True).modules
    except LoadErrors as errors:
        raise ConftestPolicyError(
            f"generating document: parse rego annotations: load rego files: {errors}"
        ) from None


def sections(modules: list[Module]) -> list[DocumentedSection]:
    """Returns the annotated rules and packages by path; headings go down one step at a time."""
    entries = [entry for module in modules for entry in _annotated(module)]
    entries.sort(key=lambda entry: (entry[0], entry[1].location.file, entry[1].location.row))
    parts = []
    current, offset = 0, 1
    for position, (path, documented) in enumerate(entries):
        depth = len(path) + 1 - offset
        if position == 0 and depth > 1:
            offset = depth
        depth = min(depth, current + 1)
        current = depth
        parts.append(DocumentedSection(depth, _text(path), documented))
    return parts


def _annotated(module: Module) -> Iterator[tuple[tuple[str, ...], Annotations]]:
    package = tuple(part.value for part in module.package.path if isinstance(part, String))
    for annotation in module.annotations:
        if annotation.scope in {"package", "subpackages"}:
            yield package, annotation
    for rule in module.rules:
        for annotation in rule.annotations:
            yield rule_path(module, rule), annotation


def _text(path: tuple[str, ...]) -> str:
    """Returns a path in Rego's syntax, without ``data``."""
    first, *rest = path
    names = [
        f".{name}" if _IDENTIFIER.fullmatch(name) else f"[{json_string(name)}]" for name in rest
    ]
    return first + "".join(names)


def _markdown(part: DocumentedSection) -> str:
    value = part.annotations.value
    lines = [
        f"{part.heading} {part.name} - {value.get('title', '')}",
        "",
        value.get("description", ""),
        "",
    ]
    if resources := value.get("related_resources"):
        lines += ["Related Resources:", ""]
        for resource in resources:
            shown = (
                f"[{resource['description']}]({resource['ref']})"
                if "description" in resource
                else resource["ref"]
            )
            lines.append(f"* {shown}")
        lines.append("")
    return "\n".join(lines) + "\n"


def _value(part: DocumentedSection) -> dict[str, Any]:
    """Returns a section as the data of a template."""
    members = part.annotations.value
    fields = {name: _plain(members.get(key, empty)) for name, (key, empty) in _FIELDS.items()}
    fields["RelatedResources"] = [
        {"Ref": resource["ref"], "Description": resource.get("description", "")}
        for resource in members.get("related_resources", ())
    ]
    fields["Authors"] = [
        {"Name": author.get("name", ""), "Email": author.get("email", "")}
        for author in members.get("authors", ())
    ]
    return {
        "RegoPackageName": part.name,
        "Depth": part.depth,
        "MarkdownHeading": part.heading,
        "Annotations": fields,
    }


def _plain(value: Any) -> Any:
    """Returns a value of YAML as a value of templates."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(_plain, value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return JsonNumber(value) if is_number else value


class _Unpaid:
    """A budget without limit: a user's own template is limited only by its output."""

    def charge(self, steps: int) -> None:
        """Charges nothing."""
