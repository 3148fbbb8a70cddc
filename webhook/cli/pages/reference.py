"""The pages of ``docs`` that commands and CRDs are the source of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from webhook.cli.demo import sources
from webhook.cli.main import waddle
from webhook.cli.serve import ServeCommand
from webhook.policy_kinds.table import POLICY_KINDS

_WIDTH: Final = 120
_DEEPEST: Final = 12
"""The most levels of a schema: bounds cyclic schemas; real ones are less deep."""


def command_line_page(made_by: str) -> str:
    """Returns the help of every command."""
    lines = ["# Command line", "", made_by, ""]
    lines.append(
        "What `--help` says of each; `waddle man` prints the same as manual pages. What commands exit"
        " with stands in [commands](commands.md), flags of `waddle serve` in [flags](flags.md)."
    )
    # With its settings: click caches the help option of the first context.
    root = click.Context(waddle, info_name="waddle", **waddle.context_settings)
    for words, context in _commands(root, "waddle"):
        if isinstance(context.command, ServeCommand):
            continue
        context.terminal_width = context.max_content_width = _WIDTH
        lines += ["", f"## {words}", "", "```text", context.command.get_help(context), "```"]
    return "\n".join(lines) + "\n"


def _commands(context: click.Context, words: str) -> Iterator[tuple[str, click.Context]]:
    yield words, context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, "it is listed"
            below = click.Context(command, parent=context, info_name=name)
            yield from _commands(below, f"{words} {name}")


def resources_page(made_by: str) -> str:
    """Returns every field of every CRD's newest version."""
    lines = ["# Custom resources", "", made_by, ""]
    lines.append(
        "The CRDs of `manifests/crds`, each in the version that is stored. Constraints have CRDs of"
        " their own, which replicas make of the schemas in their templates."
    )
    lines += _policies()
    for crd in sources.crds(sources.CRDS[:1]):
        spec = crd["spec"]
        (stored,) = (version for version in spec["versions"] if version["storage"])
        others = [version["name"] for version in spec["versions"] if not version["storage"]]
        also = f", also served as {', '.join(others)}" if others else ""
        scope = "in a namespace" if spec["scope"] == "Namespaced" else "cluster-wide"
        lines += ["", f"## {spec['names']['kind']}", ""]
        lines += [f"`{spec['group']}/{stored['name']}`, {scope}{also}.", ""]
        schema = stored["schema"]["openAPIV3Schema"]
        if text := schema.get("description"):
            lines += [_cell(text), ""]
        lines += ["| field | type | meaning |", "| --- | --- | --- |"]
        for name in ("spec", "status"):
            if name in schema.get("properties", {}):
                lines += _fields(schema["properties"][name], name, 0)
    return "\n".join(lines) + "\n"


def _policies() -> list[str]:
    """Returns the kinds of policies, and the kind of each replica's status."""
    lines = ["", "## Kinds of policies", "", "| kind | group | what it fills | what replicas say |"]
    lines.append("| --- | --- | --- | --- |")
    for row in POLICY_KINDS:
        kind = f"`{row.kind}`" if row.kind else "one for each template"
        fills = row.role if row.part is None else f"{row.part.name}s"
        status_text = "nothing" if row.status is None else f"`{row.status.kind}`"
        lines.append(f"| {kind} | `{row.group}` | {fills} | {status_text} |")
    return lines


def _fields(schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    assert depth < _DEEPEST, path
    yield f"| `{path}` | {_type(schema)} | {_cell(_meaning(schema))} |"
    inner, where = schema, path
    while inner.get("type") == "array":
        inner, where = inner["items"], f"{where}[]"
    values = inner.get("additionalProperties")
    if isinstance(values, dict) and "properties" in values:
        inner, where = values, f"{where}.*"
    for name, below in inner.get("properties", {}).items():
        yield from _fields(below, f"{where}.{name}", depth + 1)


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    name = str(schema.get("type", "any"))
    if name == "array":
        return f"array of {_type(schema['items'])}"
    return f"{name} ({schema['format']})" if "format" in schema else name


def _meaning(schema: Mapping[str, Any]) -> str:
    """Returns the description and the allowed values."""
    sentences = [str(schema["description"])] if schema.get("description") else []
    if values := schema.get("enum"):
        sentences.append("One of " + ", ".join(f"`{value}`" for value in values) + ".")
    if "default" in schema:
        sentences.append(f"Default: `{schema['default']}`.")
    return " ".join(sentences)


def _cell(text: str) -> str:
    """Returns the text on one line of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
