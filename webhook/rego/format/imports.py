"""The layout of imports: those that a target needs are added, superfluous ones removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.golang.strings import quote
from webhook.rego.format.nodes import ImportNode, TermNode, synthetic_place
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.unparse import NAME

if TYPE_CHECKING:
    from webhook.rego.format.lines import Lines
    from webhook.rego.format.options import LayoutRules
    from webhook.rego.syntax.lexer import Source


def imports_for(
    imports: list[ImportNode], options: LayoutRules, source: Source, *, drop: bool
) -> list[ImportNode]:
    """Returns the imports of a file for its target; ``drop`` removes superfluous ones."""
    paths = {import_.dotted for import_ in imports}
    if "rego.v2" in paths or (options.target == "v1" and drop):
        imports = [import_ for import_ in imports if import_.dotted != "rego.v1"]
    elif options.target == "v0v1":
        imports = _with(imports, "rego.v1", source)
    v1_imported = bool({import_.dotted for import_ in imports} & {"rego.v1", "rego.v2"})
    if not options.v1 and not v1_imported:
        return _with_keywords(imports, sorted(options.needed_keywords), source)
    if drop or v1_imported:
        imports = [import_ for import_ in imports if import_.names[0] != "future"]
    else:
        imports = _with_keywords(imports, options.future_keywords, source)
    if "rego.v2" in paths:
        return imports
    return _with_keywords(imports, sorted(options.needed_keywords & set(t.FUTURE_V1)), source)


def _with_keywords(
    imports: list[ImportNode], keywords: list[str], source: Source
) -> list[ImportNode]:
    for keyword in keywords:
        known = {
            ".".join(import_.names[2:])
            for import_ in imports
            if import_.names[:2] == ["future", "keywords"]
        }
        if not ({"", keyword} & known or (keyword == "in" and "every" in known)):
            imports = _added(imports, f"future.keywords.{keyword}", source)
    return imports


def _with(imports: list[ImportNode], path: str, source: Source) -> list[ImportNode]:
    if any(import_.dotted == path for import_ in imports):
        return imports
    return _added(imports, path, source)


def _added(imports: list[ImportNode], path: str, source: Source) -> list[ImportNode]:
    """Returns the imports with a new one below the last similar one."""
    rows = [
        import_.place.row
        for import_ in imports
        if import_.names[0] == "future" or import_.dotted == "rego.v1"
    ]
    place = synthetic_place(source, max(rows) + 1 if rows else 1)
    head, *names = path.split(".")
    terms = [TermNode("var", head, place), *(TermNode("string", name, place) for name in names)]
    return [*imports, ImportNode(terms, "", place)]


class ImportLayout:
    """Writes a file's imports, in their groups and in order."""

    def __init__(self, lines: Lines, options: LayoutRules) -> None:
        self.lines = lines
        self.options = options

    def imports(self, imports: list[ImportNode]) -> None:
        """Writes imports in their original groups, each sorted, with the comments on their lines."""
        lines = self.lines
        rows: dict[int, ImportNode] = {}
        for import_ in imports:
            rows.setdefault(import_.place.row, import_)
        beside: dict[int, str] = {}
        remaining = []
        for comment in lines.comments:
            if comment.row in rows:
                beside[id(rows[comment.row])] = f" {comment.shown}"
            else:
                remaining.append(comment)
        lines.comments = remaining
        for group in _groups(imports):
            lines.insert(group[0].place.row)
            for import_ in sorted(group, key=lambda node: (node.names, node.alias)):
                lines.start_line()
                lines.write(
                    f"import {self._path(import_)}{f' as {import_.alias}' if import_.alias else ''}"
                )
                lines.write(beside.get(id(import_), ""))
                lines.end_line()
            lines.blank_line()

    def _path(self, import_: ImportNode) -> str:
        keywords = () if import_.keyword else self.options.keywords
        return dotted_path(import_.path, keywords)


def dotted_path(path: list[TermNode], keywords: object) -> str:
    """Returns a path of names; other keys, and keywords that were quoted, are in brackets."""
    head, *rest = path
    written = str(head.value)
    for import_ in rest:
        quoted = import_.value in keywords and import_.place.text.startswith('"')  # type: ignore[operator]
        named = NAME.fullmatch(import_.value) and not quoted
        written += f".{import_.value}" if named else f"[{quote(import_.value)}]"
    return written


def _groups(imports: list[ImportNode]) -> list[list[ImportNode]]:
    groups: list[list[ImportNode]] = []
    for position, import_ in enumerate(imports):
        if position == 0 or import_.place.row - imports[position - 1].place.row > 1:
            groups.append([])
        groups[-1].append(import_)
    return groups
