"""Converts config-validator's older policies to constraint framework templates.

Its public library uses the older form: templates of version v1alpha1 with a map as ``targets`` and
the rule ``deny``. This rule reads ``input.asset`` and ``input.constraint.spec.parameters``. It
calls functions of a library folder below ``data.validator``. Names have underscores. The conversion
is that of its loader (pkg/gcv/configs/config.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint, template
from webhook.constraint.targets.gcp import normal_ancestry
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.lexer import Source, tokenize

ORIGINAL_NAME: Final = "validation.gcp.forsetisecurity.org/originalName"
"""The annotation that keeps the name that an object had in its file."""

_LIBRARY: Final = "validator"
"""The package of libraries: below ``data`` in the older form, below ``data.lib`` in a template."""

_ADAPTER: Final = """
violation[{"msg": message, "details": metadata}] {
	deny[{"msg": message, "details": metadata}] with input as {
		"asset": input.review,
		"constraint": {"spec": {"parameters": input.parameters}},
	}
}
"""


def modernised(document: dict[str, Any], libraries: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the converted policy.

    The document itself if it needs no conversion or is no policy.
    """
    gvk = gvk_of(document)
    if gvk.version != "v1alpha1":
        return document
    if gvk.group_kind == (template.GROUP, template.KIND):
        return _template(document, libraries)
    return _constraint(document) if gvk.group == constraint.GROUP else document


def below_lib(rego: str) -> str:
    """Returns a module with its package and references moved from ``data.validator``."""
    tokens = tokenize(Source("", rego), t.KEYWORDS)
    kinds, texts = tokens.kinds, tokens.texts
    inserted: list[int] = []
    for at in range(len(kinds) - 2):
        if texts[at] == "package" and texts[at + 1] == _LIBRARY:
            inserted.append(tokens.starts[at + 1])
        elif texts[at] == "data" and texts[at + 1] == "." and texts[at + 2] == _LIBRARY:
            inserted.append(tokens.starts[at + 2])
    parts, before = [], 0
    for place in inserted:
        parts += [rego[before:place], "lib."]
        before = place
    return "".join([*parts, rego[before:]])


def _template(document: dict[str, Any], libraries: Sequence[str]) -> dict[str, Any]:
    spec = document.get("spec")
    targets = spec.get("targets") if type(spec) is dict else None
    if type(spec) is not dict or type(targets) is not dict:
        return document
    kind = template.kind_of(document)
    return {
        **document,
        "metadata": _named(document, kind.lower() or name_of(document)),
        "spec": {
            **spec,
            "targets": [
                _target(name, declared, libraries) if type(declared) is dict else declared
                for name, declared in targets.items()
            ],
        },
    }


def _target(name: str, declared: Mapping[str, Any], libraries: Sequence[str]) -> dict[str, Any]:
    target: dict[str, Any] = {**declared, "target": name}
    if type(declared.get("rego")) is str:
        target["rego"] = below_lib(f"{declared['rego']}\n{_ADAPTER}")
        target["libs"] = [*declared.get("libs", ()), *map(below_lib, libraries)]
    return target


def _constraint(document: dict[str, Any]) -> dict[str, Any]:
    name = name_of(document)
    changed = {**document, "metadata": _named(document, name.lower().replace("_", "-"))}
    spec = document.get("spec")
    match = spec.get("match") if type(spec) is dict else None
    if type(spec) is dict and type(match) is dict:
        changed["spec"] = {
            **spec,
            "match": {
                field: _ancestries(value) if field in ("target", "exclude") else value
                for field, value in match.items()
            },
        }
    return changed


def _ancestries(value: Any) -> Any:
    """Converts patterns from before ``**``: a ``*`` matched any rest."""
    if type(value) is not list or not all(type(item) is str for item in value):
        return value
    return [
        re.sub(r"/\*/", "/**/", re.sub(r"/\*\Z", "/**", normal_ancestry(item))) for item in value
    ]


def _named(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    metadata = document.get("metadata")
    copied = dict(metadata) if type(metadata) is dict else {}
    before = name_of(document)
    if name != before:
        annotations = copied.get("annotations")
        copied["annotations"] = {
            **(annotations if type(annotations) is dict else {}),
            ORIGINAL_NAME: before,
        }
        copied["name"] = name
    return copied
