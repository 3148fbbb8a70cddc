"""A Rego file laid out anew: the door of this folder."""

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
    """A file that can be read and not laid out; the text says why."""


def formatted(
    source: str, file: str, version: RegoVersion, target: Target, *, drop: bool = False
) -> str:
    """The source, read as ``version``, laid out for ``target``.

    ``drop`` leaves out imports that the target makes needless. Raises RegoErrors for what cannot be
    read, or not for the target, and Unformattable.
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
    """Errors of reading as OPA tells them: it counts all but that of an empty file."""
    first = errors.errors[0]
    alone = len(errors.errors) == 1 and first.message == "empty module"
    return str(first) if alone else str(errors)


def lost(source: str, written: str, version: RegoVersion, target: Target) -> list[str]:
    """Return the code and comments that the layout of a source loses, as OPA's loses some.

    Each is a comment, or a number of statements; there is none in most files.
    """
    before = _counted(source, version)
    after = _counted(written, "v1" if target == "v1" else "v0")
    return [
        name if name.startswith("#") else f"{count} {name}{'s' if count > 1 else ''}"
        for name, count in (before - after).items()
    ]


def _counted(source: str, version: RegoVersion) -> Counter[str]:
    """How many rules, literals and modifiers a source has, and its comments."""
    module, tokens, groups = parse_written(source, "", version)
    file = FilePlacer(tokens, groups).file(module)
    counted: Counter[str] = Counter()
    for rule in file.rules:
        for node in walk(rule):
            name = _COUNTED.get(type(node))
            if name is not None:
                counted[name] += 1
    counted.update(one.shown for one in file.comments)
    return counted


_COUNTED: Final[dict[type, str]] = {
    RuleNode: "rule",
    ExprNode: "expression",
    WithNode: "`with` modifier",
}


def _fault_text(faults: list[RegoLoadError | str]) -> str:
    errors = [
        one if isinstance(one, RegoLoadError) else RegoLoadError("format_error", one)
        for one in faults
    ]
    return str(RegoErrors(errors))


def _faults_for_v1(module: Module) -> list[RegoLoadError]:
    """Return what v1 refuses, besides what the layout adds."""
    faults = check_strict(module, strict=True)
    for rule in module.rules:
        name = getattr(rule.head.ref.head, "name", "")
        if not rule.head.ref.path and (name in t.KEYWORDS or name in t.FUTURE_V0):
            message = f"{name} keyword cannot be used for rule name"
            faults.append(RegoLoadError("rego_parse_error", message, rule.location))
    return faults


def _name_repeated_wildcards(file: FileNode) -> None:
    """Give wildcards that several places share a name: each ``_`` is one of its own."""
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
        [*file.imports, *file.rules], key=lambda one: (one.place.row, one.place.col)
    )
    added: list[ImportNode] = []
    first = min((one.place.row for one in file.rules), default=None)
    if first is not None and any(
        one.place.synthetic and one.place.row >= first for one in file.imports
    ):
        added = [one for one in others if isinstance(one, ImportNode) and one.place.synthetic]
        others = [one for one in others if one not in added]
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
    """Those of a kind at the beginning, taken out."""
    taken = []
    while others and isinstance(others[0], kind):
        taken.append(others.pop(0))
    return taken
