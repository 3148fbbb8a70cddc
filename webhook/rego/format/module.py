"""Formats a Rego file: the entry point of this package."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check.strict import check_strict
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.format.bodies import BodyLayout
from webhook.rego.format.imports import ImportLayout, dotted_path, imports_for
from webhook.rego.format.lines import LayoutFault, Lines
from webhook.rego.format.nodes import ExprNode, ImportNode, RuleNode, TermNode, WithNode, walk
from webhook.rego.format.options import options_of
from webhook.rego.format.placed import FilePlacer
from webhook.rego.format.rules import RuleLayout
from webhook.rego.format.terms import TermLayout
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.parser import parse_written

if TYPE_CHECKING:
    from webhook.rego.format.nodes import FileNode
    from webhook.rego.format.options import Target
    from webhook.rego.syntax.ast import Module, RegoVersion


class Unformattable(Exception):
    """The file can be parsed but not formatted; the message is the reason."""


def formatted(
    source: str, file: str, version: RegoVersion, target: Target, *, drop: bool = False
) -> str:
    """Returns a source, parsed as ``version``, in the layout for ``target``.

    ``drop`` removes imports that are superfluous for the target. Raises RegoErrors for a source
    that cannot be parsed or is invalid in the target, and Unformattable.
    """
    module, tokens, groups = parse_written(source, file, version)
    if target != "v0" and (faults := _faults_for_v1(module)):
        raise RegoErrors(faults)
    placed = FilePlacer(tokens, groups).file(module)
    _name_repeated_wildcards(placed)
    options = options_of(placed, target)
    placed.imports = imports_for(placed.imports, options, placed.source, drop=drop)
    lines = Lines(placed.comments)
    terms = TermLayout(lines, options)
    bodies = terms.bodies = BodyLayout(lines, terms)
    rules = RuleLayout(lines, terms, bodies, options)
    imports = ImportLayout(lines, options)
    try:
        _file(placed, lines, imports, rules)
    except LayoutFault as fault:
        lines.faults.append(str(fault))
    if lines.faults:
        raise Unformattable(f"{file}: {_fault_text(lines.faults)}")
    written = lines.text()
    return written.rstrip("\n") + "\n" if written.endswith("\n") else written


def error_text(errors: RegoErrors) -> str:
    """Returns parse errors as OPA prints them: counted, unless the only error is an empty file."""
    first = errors.errors[0]
    alone = len(errors.errors) == 1 and first.message == "empty module"
    return str(first) if alone else str(errors)


def lost(source: str, written: str, version: RegoVersion, target: Target) -> list[str]:
    """Returns the code and comments that a layout loses; OPA loses some, too.

    Each entry is a comment or a number of statements; most files lose none.
    """
    before = _counted(source, version)
    after = _counted(written, "v1" if target == "v1" else "v0")
    return [
        name if name.startswith("#") else f"{count} {name}{'s' if count > 1 else ''}"
        for name, count in (before - after).items()
    ]


def _counted(source: str, version: RegoVersion) -> Counter[str]:
    """Returns the number of rules, literals, modifiers and each comment."""
    module, tokens, groups = parse_written(source, "", version)
    file = FilePlacer(tokens, groups).file(module)
    counted: Counter[str] = Counter()
    for rule in file.rules:
        for node in walk(rule):
            name = _COUNTED.get(type(node))
            if name is not None:
                counted[name] += 1
    counted.update(comment.shown for comment in file.comments)
    return counted


_COUNTED: Final[dict[type, str]] = {
    RuleNode: "rule",
    ExprNode: "expression",
    WithNode: "`with` modifier",
}


def _fault_text(faults: list[RegoLoadError | str]) -> str:
    errors = [
        fault if isinstance(fault, RegoLoadError) else RegoLoadError("format_error", fault)
        for fault in faults
    ]
    return str(RegoErrors(errors))


def _faults_for_v1(module: Module) -> list[RegoLoadError]:
    """Returns the v1 errors that the layout does not repair."""
    faults = check_strict(module, strict=True)
    for rule in module.rules:
        name = getattr(rule.head.ref.head, "name", "")
        if not rule.head.ref.path and (name in t.KEYWORDS or name in t.FUTURE_V0):
            message = f"{name} keyword cannot be used for rule name"
            faults.append(RegoLoadError("rego_parse_error", message, rule.location))
    return faults


def _name_repeated_wildcards(file: FileNode) -> None:
    """Names wildcards that occur at several places; each other ``_`` stays a wildcard."""
    known: dict[str, TermNode | None] = {}
    for rule in file.rules:
        for node in walk(rule):
            if (
                not isinstance(node, TermNode)
                or node.kind != "var"
                or not node.value.startswith("$")
            ):
                continue
            wildcard = node.value
            if wildcard not in known:
                known[wildcard] = node
                continue
            name = f"_{wildcard.removeprefix('$')}"
            first = known[wildcard]
            if first is not None:
                first.value = name
            known[wildcard] = None
            node.value = name


def _file(file: FileNode, lines: Lines, imports: ImportLayout, rules: RuleLayout) -> None:
    others: list[Any] = sorted(
        [*file.imports, *file.rules], key=lambda node: (node.place.row, node.place.col)
    )
    added: list[ImportNode] = []
    first = min((rule.place.row for rule in file.rules), default=None)
    if first is not None and any(
        import_.place.synthetic and import_.place.row >= first for import_ in file.imports
    ):
        added = [node for node in others if isinstance(node, ImportNode) and node.place.synthetic]
        others = [node for node in others if node not in added]
    lines.insert(file.package_place.row)
    lines.start_line()
    lines.write(f"package {dotted_path(file.package, rules.options.keywords)}")
    lines.blank_line()
    imports.imports(added)
    while others:
        imports.imports(_taken(others, ImportNode))
        rules.rules(_taken(others, RuleNode))
    for position, comment in enumerate(lines.comments):
        lines.line(comment.shown)
        if position == len(lines.comments) - 1:
            lines.write("\n")


def _taken(others: list[Any], kind: type) -> list[Any]:
    """Takes the leading items of a kind from a list."""
    taken = []
    while others and isinstance(others[0], kind):
        taken.append(others.pop(0))
    return taken
