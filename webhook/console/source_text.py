"""The sources of a template as numbered lines, with the lines of faults marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import yaml

from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import REGO, read_template

_REGO: Final = re.compile(r"\b(template|libs\[\"lib_(\d+)\"\]):(\d+)(?::\d+)?: rego_")
_LINES_MAX: Final = 5_000
"""The most lines shown of a source; the page says how many more there are."""


def sources(document: Mapping[str, Any], faults: Iterable[str]) -> list[dict[str, Any]]:
    """Returns each source of a template: its name, its lines and their faults.

    Returns none for an unreadable template.
    """
    try:
        template = read_template(document)
    except (InvalidTemplate, RecursionError):
        return []
    marks = _marks(faults)
    listed = []
    for code in template.code:
        source = code.source if isinstance(code.source, dict) else {}
        if code.engine == REGO:
            listed.append(_source("template", "Rego", source.get("rego"), marks))
            libs = source.get("libs")
            for index, text in enumerate(libs if isinstance(libs, list) else ()):
                listed.append(_source(f"libs[{index}]", "Rego", text, marks))
        else:
            listed.append(_source(code.engine, code.engine, as_yaml(code.source), {}))
    return listed


def _marks(faults: Iterable[str]) -> dict[str, dict[int, str]]:
    marks: dict[str, dict[int, str]] = {}
    for fault in faults:
        for match in _REGO.finditer(fault):
            name = "template" if match[2] is None else f"libs[{match[2]}]"
            marks.setdefault(name, {})[int(match[3])] = _first_line(
                fault[match.end() - len("rego_") :]
            )
    return marks


def _first_line(rest: str) -> str:
    return rest.split("\n", 1)[0]


def _source(
    name: str, engine: str, text: Any, marks: Mapping[str, Mapping[int, str]]
) -> dict[str, Any]:
    marked = marks.get(name, {})
    lines = numbered(text if isinstance(text, str) else "", marked)
    return {"name": name, "engine": engine, **lines}


def numbered(text: str, marks: Mapping[int, str]) -> dict[str, Any]:
    """Returns lines with numbers from 1 and their fault messages."""
    lines: Sequence[str] = text.split("\n")
    if lines and not lines[-1]:
        lines = lines[:-1]
    return {
        "lines": [
            {"number": number, "text": line, "error": marks.get(number, "")}
            for number, line in enumerate(lines[:_LINES_MAX], 1)
        ],
        "more": max(0, len(lines) - _LINES_MAX),
    }


def as_yaml(value: Any) -> str:
    """Returns a value as YAML, or as Python writes it if YAML cannot."""
    try:
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip("\n")
    except (yaml.YAMLError, RecursionError, ValueError):
        return repr(value)
