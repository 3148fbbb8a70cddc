"""Metadata: ``# METADATA`` comment blocks, read as YAML and attached to their subject.

A block describes the first package clause, import or rule below it. Its value is the JSON object
that ``rego.metadata.rule()`` shows (OPA: "Annotations"). See :mod:`webhook.rego.syntax.metadata`
for the chain that leads to a rule.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.golang.format import shown
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.syntax.ast import Annotations, Import, Ref, Rule, String, Var

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.location import Location

    _Fastest = yaml.SafeLoader
else:
    _Fastest = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TEXTS: Final = ("scope", "title", "description")
_SHAPES: Final[dict[str, tuple[str, type]]] = {
    **dict.fromkeys(_TEXTS, ("string", yaml.ScalarNode)),
    "entrypoint": ("bool", yaml.ScalarNode),
    "organizations": ("[]string", yaml.SequenceNode),
    "related_resources": ("[]interface {}", yaml.SequenceNode),
    "authors": ("[]interface {}", yaml.SequenceNode),
    "schemas": ("[]map[string]interface {}", yaml.SequenceNode),
    **dict.fromkeys(("custom", "labels", "compile"), ("map[string]interface {}", yaml.MappingNode)),
}
"""The shapes of members, by key: Go's name of the type, and the YAML node."""
SCOPES: Final = ("rule", "document", "package", "subpackages")


class _Loader(_Fastest):
    """YAML as OPA's library reads it: ``yes`` and dates are text, and no key comes twice."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: ARG002  # the base's signature; everything is deep here
    ) -> dict[Any, Any]:
        self.flatten_mapping(node)
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _Invalid(f"invalid map key type(s): {key_node.value}")
            if key in mapping:
                line = key_node.start_mark.line + 1
                raise _Invalid(f'yaml: line {line}: mapping key "{key}" already defined')
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping


_RESOLVERS = {
    first: [
        (tag, pattern)
        for tag, pattern in entries
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
    ]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_implicit_resolvers = _RESOLVERS
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


class _Invalid(Exception):
    """The fault of a block; ``line`` is that of the YAML, from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_annotations(
    comments: list[tuple[Location, str]], parse_ref: Callable[[str], Ref]
) -> tuple[list[Annotations], list[RegoLoadError]]:
    """Returns the metadata blocks among the comments of a file, and their errors.

    ``scope`` is empty without one. ``parse_ref`` reads the paths of schemas; raises RegoErrors.
    """
    blocks: list[Annotations] = []
    faults: list[RegoLoadError] = []
    starts = [at for at, comment in enumerate(comments) if _begins_block(*comment)]
    for start in starts:
        head, end = comments[start][0], start + 1
        while end < len(comments) and _continues(*comments[end], head.row + end - start):
            end += 1
        lines = [text.removeprefix(" ") for _, text in comments[start + 1 : end]]
        try:
            blocks.append(_read_block(lines, head, parse_ref))
        except _Invalid as fault:
            # OPA counts the lines that YAML names from 0.
            line = len(lines) if fault.line is None else min(fault.line + 1, len(lines))
            location, text = comments[start + line]
            details = () if fault.line is None else (f"#{text}", "^")
            faults.append(RegoLoadError("rego_parse_error", str(fault), location, details=details))
    return blocks, faults


def _begins_block(location: Location, text: str) -> bool:
    return text.lstrip().startswith("METADATA") and location.col == 1


def _continues(location: Location, text: str, row: int) -> bool:
    return location.col == 1 and location.row == row and not _begins_block(location, text)


def _read_block(lines: list[str], place: Location, parse_ref: Callable[[str], Ref]) -> Annotations:
    text = "\n".join(lines)
    if not text.strip():
        raise _Invalid("expected METADATA block, found whitespace")
    try:
        raw = yaml.load(text, _Loader)  # noqa: S506  # a SafeLoader with stricter rules
    except yaml.YAMLError as fault:
        raise _Invalid(_yaml_message(fault, lines), _yaml_line(fault)) from None
    except (ValueError, RecursionError) as fault:
        raise _Invalid(f"yaml: {fault}") from None
    _check_shapes(text)
    raw = raw or {}
    return Annotations(raw.get("scope") or "", _value(raw, parse_ref), location=place)


def _yaml_message(fault: yaml.YAMLError, lines: list[str]) -> str:
    at = _yaml_line(fault)
    problem = getattr(fault, "problem", None) or "it cannot be read"
    message = f"yaml: {problem}" if at is None else f"yaml: line {at}: {problem}"
    for number, line in enumerate(lines, 1):
        _, colon, rest = line.partition(":")
        if colon and rest and rest[0] not in " \t":
            message += (
                f"\n  Hint: on line {number}, symbol(s) ['{rest[0]}'] immediately following a "
                "key/value separator ':' is not a legal yaml space character"
            )
    return message


def _yaml_line(fault: yaml.YAMLError) -> int | None:
    """Returns the line in Go's YAML error: for parser errors, the line before the mark."""
    mark = getattr(fault, "problem_mark", None)
    if mark is not None and isinstance(fault, yaml.scanner.ScannerError):
        return int(mark.line) + 1
    marks = (mark, getattr(fault, "context_mark", None))
    return next((int(place.line) for place in marks if place is not None and place.line), None)


def _value(raw: dict[str, Any], parse_ref: Callable[[str], Ref]) -> dict[str, Any]:
    """Returns the object that evaluation sees; empty members are left out, as in OPA."""
    value: dict[str, Any] = {}
    for name in _TEXTS:
        if raw.get(name) not in (None, ""):
            value[name] = _scalar(raw[name])
    if raw.get("entrypoint"):
        value["entrypoint"] = True
    readers = (("organizations", _scalar), ("related_resources", _resource), ("authors", _author))
    for name, read in readers:
        if raw.get(name):
            value[name] = [read(item) for item in raw[name]]
    if raw.get("schemas"):
        value["schemas"] = [_schema(schema, parse_ref) for schema in raw["schemas"]]
    for name in ("custom", "labels"):
        if raw.get(name):
            value[name] = raw[name]
    return value


def _check_shapes(text: str) -> None:
    """Refuses a member of another kind than OPA unmarshals it into."""
    node = yaml.compose(text, _Loader)
    if node is None:
        return
    if not isinstance(node, yaml.MappingNode):
        raise _mismatch([(node, "ast.rawAnnotation")])
    wrong = []
    for name, value in node.value:
        kind, shape = _SHAPES.get(name.value, ("", yaml.Node))
        tag = value.tag.rpartition(":")[2]
        fits = isinstance(value, shape) and (kind != "bool" or tag == "bool")
        if not fits and tag != "null":
            wrong.append((value, kind))
    if wrong:
        raise _mismatch(wrong)


def _mismatch(wrong: list[tuple[yaml.Node, str]]) -> _Invalid:
    lines = []
    for node, kind in wrong:
        value = ""
        if isinstance(node, yaml.ScalarNode):
            text = node.value if len(node.value) <= 10 else f"{node.value[:7]}..."
            value = f" `{text}`"
        tag = node.tag.rpartition(":")[2]
        lines.append(
            f"  line {node.start_mark.line + 1}: cannot unmarshal !!{tag}{value} into {kind}"
        )
    message = "\n".join(["yaml: unmarshal errors:", *lines])
    return _Invalid(message, wrong[0][0].start_mark.line + 1)


def _scalar(value: Any) -> str:
    """Returns the text of a scalar where a string is wanted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _member(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _invalid(noun: str, item: Any, why: str) -> _Invalid:
    return _Invalid(f"invalid {noun} definition {shown(item)}: {why}")


def _resource(item: Any) -> dict[str, str]:
    if isinstance(item, str):
        if not item:
            raise _Invalid("invalid related-resource definition : ref URL may not be empty string")
        return {"ref": item}
    if not isinstance(item, dict):
        raise _invalid("related-resource", item, "invalid value type, must be string or map")
    ref, description = _member(item, "ref").strip(), _member(item, "description").strip()
    if not ref:
        raise _invalid("related-resource", item, "'ref' value required in object")
    return {"ref": ref, "description": description} if description else {"ref": ref}


def _author(item: Any) -> dict[str, str]:
    if isinstance(item, str):
        words = item.split()
        if not words:
            raise _Invalid("invalid author definition : author is an empty string")
        email = ""
        if words[-1].startswith("<") and words[-1].endswith(">"):
            email = words.pop()[1:-1]
        author = {"name": " ".join(words), "email": email}
    elif isinstance(item, dict):
        author = {name: _member(item, name).strip() for name in ("name", "email")}
        if not any(author.values()):
            raise _invalid("author", item, "'name' and/or 'email' values required in object")
    else:
        raise _invalid("author", item, "invalid value type, must be string or map")
    return {name: text for name, text in author.items() if text}


def _schema(item: Any, parse_ref: Callable[[str], Ref]) -> dict[str, Any]:
    if not isinstance(item, dict) or not item:
        raise _Invalid("invalid document reference")
    path, schema = next(iter(item.items()))
    described: dict[str, Any] = {"path": _names(path, parse_ref, "invalid document reference")}
    if isinstance(schema, str):
        names = _names(schema, parse_ref, "invalid schema reference")
        if names[0] != "schema":
            raise _Invalid("invalid schema reference")
        described["schema"] = names
    elif isinstance(schema, dict):
        described["definition"] = schema
    else:
        raise _Invalid(f'invalid schema declaration for path "{path}"')
    return described


def _names(text: str, parse_ref: Callable[[str], Ref], complaint: str) -> list[Any]:
    """Returns the elements of a reference written as text."""
    try:
        ref = parse_ref(text)
    except RegoErrors:
        raise _Invalid(complaint) from None
    names: list[Any] = [ref.head.name if isinstance(ref.head, Var) else ""]
    names += [part.value if isinstance(part, String) else "" for part in ref.path]
    return names


# --- attachment ----------------------------------------------------------------------------


def attach(
    annotations: list[Annotations], package: Ref, imports: list[Import], rules: list[Rule]
) -> tuple[list[Rule], list[Annotations], list[RegoLoadError]]:
    """Returns the rules with annotations, all annotations with a scope, and misplaced blocks.

    Without a scope, a block above a rule is of scope ``rule`` (``document`` for
    an entrypoint), above the package clause of scope ``package``.
    """
    if not annotations:
        return rules, [], []
    statements: list[Ref | Import | Rule] = [package, *imports, *rules]
    statements.sort(key=lambda statement: statement.location.row)
    rows = [statement.location.row for statement in statements]
    scoped: list[Annotations] = []
    faults: list[RegoLoadError] = []
    of_rule: dict[int, list[Annotations]] = {}
    for annotation in annotations:
        index = bisect_right(rows, annotation.location.row)
        target = statements[index] if index < len(statements) else None
        scope = annotation.scope or _default_scope(annotation, target)
        completed = replace(annotation, scope=scope, value={**annotation.value, "scope": scope})
        scoped.append(completed)
        faults += _misplaced(completed, target)
        if isinstance(target, Rule):
            of_rule.setdefault(id(target), []).append(completed)
    attached = [
        replace(rule, annotations=tuple(of_rule[id(rule)])) if id(rule) in of_rule else rule
        for rule in rules
    ]
    return attached, scoped, faults


_TARGETS: Final[dict[type, str]] = {Ref: "package", Import: "import", Rule: "rule"}


def _default_scope(annotation: Annotations, target: Ref | Import | Rule | None) -> str:
    if isinstance(target, Rule):
        return "document" if annotation.value.get("entrypoint") else "rule"
    return _TARGETS.get(type(target), "")


def _misplaced(annotation: Annotations, target: Ref | Import | Rule | None) -> list[RegoLoadError]:
    messages = []
    expected = {"rule": "rule", "document": "rule", "package": "package", "subpackages": "package"}
    have = _TARGETS.get(type(target), "")
    if annotation.scope not in SCOPES:
        messages.append(
            f"invalid annotation scope '{annotation.scope}'. Use one of 'rule', 'document', 'package', "
            "or 'subpackages'"
        )
    elif expected[annotation.scope] != have:
        instead = (
            f"{expected[annotation.scope]} (have {have})" if have else expected[annotation.scope]
        )
        messages.append(f"annotation scope '{annotation.scope}' must be applied to {instead}")
    if annotation.value.get("entrypoint") and annotation.scope not in ("document", "package"):
        messages.append(
            f"annotation entrypoint applied to non-document or package scope '{annotation.scope}'"
        )
    return [RegoLoadError("rego_parse_error", text, annotation.location) for text in messages]
