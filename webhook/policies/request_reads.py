"""Finds templates that decide only by fields of a request, or by fields that no input has.

Audit, reports and ``waddle test`` review objects without a request. A template finds nothing there
if each of its violations needs such a field. A rule that tolerates the absence (``not``,
``object.get``, ``!=`` of an operation, a comparison with the default) gives no warning. Rules that
read ``input.request`` or ``input.object``, as in policies for other tools, never deny.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api.shapes import texts_of
from webhook.constraint.drivers.references import data_refs
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import REGO, Code, Template
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser import parse_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.reads.abstract import Abstract
    from webhook.rego.syntax.ast import RegoVersion

_Path: TypeAlias = tuple[str, ...]

_FIELDS: Final = frozenset(
    {
        "dryRun",
        "oldObject",
        "operation",
        "options",
        "requestKind",
        "requestResource",
        "requestSubResource",
        "subResource",
        "userInfo",
    }
)
_INPUT: Final = ("review", "parameters")
"""The fields of a template's input."""

_REVIEW: Final = _FIELDS | {
    *("_unstable", "kind", "name", "namespace", "namespaceObject", "object", "resource", "uid"),
    *("isGenerated", "source"),
}
"""The fields of a review: those of an AdmissionRequest, and those that Gatekeeper adds."""

_ELSEWHERE: Final = re.compile(
    rf"\binput\b(?!\.parameters\b|\.review\b(?!\.(?!(?:{'|'.join(sorted(_REVIEW))})\b)))"
)
"""An expression that may read another field, or give a field another name."""

_ALWAYS: Final = frozenset({"oldObject", "options", "userInfo"})
"""The fields of a review without a request; they are empty."""
_PLACE: Final = ("input", "review")
_TOLERANT: Final = ("object.get", "null")
"""Texts in code that may have a rule for the absence of a field."""
ABSENT: Final = "elsewhere the operation is empty, and there is no user and no old object"

_OPERATION: Final = "input.review.operation"
_MODULE: Final = "policy.rego"


def request_reads(template: Template) -> frozenset[str]:
    """Returns the request fields that every violation of a template needs; none if one needs none.

    Fields that no input has are among them (:func:`is_never_there`).
    """
    code = next(iter(template.code), None)
    if code is None or type(code.source) is not dict:
        return frozenset()
    return _of_cel(code) if code.engine == "K8sNativeValidation" else _of_rego(code)


def deciding_places(template: Template) -> list[str]:
    """Returns the places where a template decides: its ``violation`` rules or its validations."""
    code = next(iter(template.code), None)
    if code is None or type(code.source) is not dict:
        return []
    if code.engine == "K8sNativeValidation":
        count = sum(1 for _ in _expressions(code.source, "validations"))
        return [f"validations[{number}]" for number in range(count)]
    version: RegoVersion = "v1" if code.source.get("version") == "v1" else "v0"
    text = code.source.get("rego")
    try:
        module = parse_module(text if type(text) is str else "", _MODULE, version)
    except RegoErrors:
        return []  # The compiler reports the fault.
    lines = [
        rule.location.row
        for rule in module.rules
        if rule.head.ref.head == ast.Var("violation") and not rule.default
    ]
    return [f"violation in line {line} of its Rego" for line in lines]


def absent_libraries(template: Template) -> list[str]:
    """Returns the packages under ``data.lib`` in a template's Rego that no library of it has.

    References to them are undefined, as in Gatekeeper: such rules never hold.
    """
    code = next(iter(template.code), None)
    if code is None or type(code.source) is not dict or code.engine != REGO:
        return []
    if not any("lib" in text for text in _texts(code) if type(text) is str):
        return []  # Parsing takes a tenth of the time of compiling.
    modules = _modules(code)
    packages = [_texts_of(module.package) for module in modules[1:]]
    named = {
        path: None
        for module in modules
        for path in (
            *(
                _texts_of(import_.path)
                for import_ in module.imports
                if import_.path.head == ast.Var("data")
            ),
            *(_texts_of(ref) for rule in module.rules for ref in data_refs(rule)),
        )
        if len(path) > 1 and path[0] == "lib"
    }
    return [
        ".".join(("data", *path))
        for path in named
        if not any(_begins_alike(path, package) for package in packages)
    ]


def _begins_alike(first: _Path, other: _Path) -> bool:
    """Returns whether one of two paths is a prefix of the other."""
    shared = min(len(first), len(other))
    return first[:shared] == other[:shared]


def is_never_there(read: str) -> bool:
    """Whether a read of :func:`request_reads` is of a field that no request has either."""
    return read.startswith("input.") and read.removeprefix("input.review.") not in _FIELDS


# --- Rego -----------------------------------------------------------------------------------------


def _of_rego(code: Code) -> frozenset[str]:
    written = [text for text in _texts(code) if type(text) is str]
    is_suspect = any(name in text for text in written for name in _FIELDS)
    if not is_suspect and not any(_ELSEWHERE.search(text) for text in written):
        return frozenset()
    modules = _modules(code)
    if not modules:
        return frozenset()
    entry, *libraries = modules
    known: dict[_Path, _Needs] = {}
    for library in libraries:
        known[_texts_of(library.package)] = _Needs(library, known)
    needed = _Needs(entry, known).of_name("violation")
    if not is_suspect or any(map(is_never_there, needed)):
        return needed
    is_tolerant = any(name in text for text in written for name in _TOLERANT)
    return _confirmed(code, needed, is_tolerant=is_tolerant)


def _confirmed(code: Code, needed: frozenset[str], *, is_tolerant: bool) -> frozenset[str]:
    """Checks needs by what the rules can find without a request; may find more of them.

    Not of a tolerant template, which has a rule for the absence.
    """
    # Imported here: a process that only serves gives no advice about templates.
    from webhook.constraint.drivers.reads import possible_violations  # noqa: PLC0415
    from webhook.reads.abstract import EMPTY, scalar  # noqa: PLC0415
    from webhook.reads.storage import NOTHING  # noqa: PLC0415

    without_request: dict[_Path, Abstract | None] = {
        (*_PLACE, name): None for name in _FIELDS - _ALWAYS
    }
    without_request |= {
        (*_PLACE, "operation"): scalar(""),
        (*_PLACE, "oldObject"): scalar(None),
        (*_PLACE, "options"): scalar(None),
        (*_PLACE, "userInfo"): EMPTY,
    }
    try:
        possible = possible_violations(code, without_request)
    except (InvalidTemplate, RegoErrors):
        return needed  # The compiler reports the fault.
    if possible is None:
        return needed
    if possible.given:
        return frozenset()
    if needed or is_tolerant or not possible.ever:
        return needed
    review = possible.reads.at(*_PLACE) or NOTHING
    return frozenset(f"input.review.{name}" for name in review.children if name in _FIELDS)


def _texts(code: Code) -> list[Any]:
    """Returns the template's own Rego, then its libraries', as they are written."""
    return [code.source.get("rego"), *texts_of(code.source.get("libs"))]


def _modules(code: Code) -> list[ast.Module]:
    """Parses the modules; empty if one is invalid, which the compiler reports."""
    version: RegoVersion = "v1" if code.source.get("version") == "v1" else "v0"
    try:
        return [parse_module(text, _MODULE, version) for text in _texts(code)]
    except (RegoErrors, TypeError):
        return []


def _texts_of(ref: ast.Ref) -> _Path:
    """Returns the literal names of a reference: ``data.lib.a[x]`` is ``lib``, ``a``."""
    names: list[str] = []
    for part in ref.path:
        if not isinstance(part, ast.String):
            break
        names.append(part.value)
    return tuple(names)


class _Needs:
    """Finds the parts of a request that the rules of a module need."""

    def __init__(self, module: ast.Module, libraries: Mapping[_Path, _Needs]) -> None:
        """``libraries`` are the callable libraries, by their packages."""
        self._rules: dict[str, list[ast.Rule]] = {}
        for rule in module.rules:
            head = rule.head.ref.head
            if isinstance(head, ast.Var):
                self._rules.setdefault(head.name, []).append(rule)
        self._libraries = libraries
        self._imports = {
            import_.alias or path[-1]: path
            for import_ in module.imports
            if import_.path.head == ast.Var("data") and (path := _texts_of(import_.path))
        }
        self._known: dict[str, frozenset[str]] = {}
        self._aliases: dict[str, str] = {}
        """Variables that stand for the request, or a field of it."""

    def _of_library(self, head: ast.Term, path: _Path) -> frozenset[str]:
        """Finds the needs of a library rule, if the reference names one."""
        if not isinstance(head, ast.Var):
            return frozenset()
        whole = path if head.name == "data" else (*self._imports.get(head.name, ()), *path)
        for length in range(1, len(whole)):
            if (library := self._libraries.get(whole[:length])) is not None:
                return library.of_name(whole[length])
        return frozenset()

    def of_name(self, name: str) -> frozenset[str]:
        """Finds the alternative needs of the rules of a name; none if one rule needs nothing."""
        if name in self._known:
            return self._known[name]
        self._known[name] = frozenset()  # A rule that calls itself is refused elsewhere.
        needed: set[str] = set()
        for rule in self._rules.get(name, ()):
            if rule.default:
                if rule.head.value == ast.Boolean(value=False):
                    continue
                return frozenset()
            reads = self._of_rule(rule)
            if not reads:
                return frozenset()
            needed |= reads
        self._known[name] = frozenset(needed)
        return self._known[name]

    def _of_rule(self, rule: ast.Rule) -> frozenset[str]:
        needed = frozenset(self._of_body(rule.body))
        for term in (rule.head.key, rule.head.value):
            if term is not None:
                needed |= frozenset(self._of_term(term))
        if needed and rule.else_ is not None:
            rest = self._of_rule(rule.else_)
            return needed | rest if rest else frozenset()
        return needed

    def _of_body(self, body: ast.Body) -> Iterator[str]:
        for literal in body:
            if isinstance(literal, ast.Expr):
                if not literal.negated and not self._is_alias(literal.term):
                    yield from self._of_term(literal.term)
            elif isinstance(literal, ast.SomeIn):
                yield from self._of_term(literal.domain)
            elif isinstance(literal, ast.Logic) and not literal.negated:
                left, right = set(self._of_body(literal.left)), set(self._of_body(literal.right))
                if literal.operator == "and" or (left and right):
                    yield from left | right

    def _is_alias(self, term: Any) -> bool:
        """Returns whether a term only gives the request or a field a name, which never fails."""
        if not (isinstance(term, ast.Call) and term.operator in (ast.Var("assign"), ast.Var("eq"))):
            return False
        variable, value = term.args
        if not (isinstance(variable, ast.Var) and isinstance(value, ast.Ref)):
            return False
        whole = self._whole(value)
        if whole is None or whole[0] != "review" or len(whole) > len(("review", "field")):
            return False
        self._aliases[variable.name] = ".".join(whole)
        return True

    def _whole(self, term: Any) -> _Path | None:
        """Returns the part of the request that a term reads.

        This is ``review``, the field, and the path below; or None.
        """
        head, path = (term.head, _texts_of(term)) if isinstance(term, ast.Ref) else (term, ())
        if not isinstance(head, ast.Var):
            return None
        if head.name in self._aliases:
            whole: _Path = (*self._aliases[head.name].split("."), *path)
        elif head.name == "input":
            whole = path
        else:
            return None
        if not whole or (whole[0] in _INPUT and not self._is_of_request(whole)):
            return None
        more = isinstance(term, ast.Ref) and len(term.path) > len(path)
        return (*whole, "_") if more else whole

    @staticmethod
    def _is_of_request(whole: _Path) -> bool:
        if whole[0] == "parameters":
            return False
        return len(whole) == 1 or whole[1] in _FIELDS or whole[1] not in _REVIEW

    def _read(self, term: Any) -> str:
        """Returns the field of the request that a term needs; empty for none."""
        whole = self._whole(term)
        if whole is None or whole == ("review",):
            return ""
        if whole[0] != "review":
            return f"input.{whole[0]}"
        field = whole[1]
        # Without a request, the whole field is defined: {} and null.
        is_needed = field not in _ALWAYS or len(whole) > len(("review", "field"))
        return f"input.review.{field}" if is_needed else ""

    def _of_term(self, term: Any) -> Iterator[str]:
        if name := self._read(term):
            yield name
        elif isinstance(term, ast.Ref):
            yield from self._of_library(term.head, _texts_of(term))
            yield from self._of_ref(term)
        elif isinstance(term, ast.Var):
            if term.name not in self._aliases:
                yield from self._of_library(term, ())
                yield from self.of_name(term.name)
        elif isinstance(term, ast.Call):
            if not self._is_tolerant(term):
                yield from self._of_term(term.operator)
                for argument in term.args:
                    yield from self._of_term(argument)
        elif is_dataclass(term) and not isinstance(term, ast.COMPREHENSIONS):
            for field in fields(term):
                yield from self._of_value(getattr(term, field.name))

    def _is_tolerant(self, call: ast.Call) -> bool:
        """Returns whether a call holds, or may hold, for the values without a request."""
        operator = call.operator
        if isinstance(operator, ast.Ref):
            return operator.head == ast.Var("object")
        if operator.name == "neq":
            return any(self._read(arg) == _OPERATION for arg in call.args)
        return any(arg == ast.String("") or isinstance(arg, ast.Null) for arg in call.args)

    def _of_ref(self, ref: ast.Ref) -> Iterator[str]:
        yield from self._of_term(ref.head)
        for part in ref.path:
            yield from self._of_term(part)

    def _of_value(self, value: Any) -> Iterator[str]:
        if isinstance(value, tuple):
            for item in value:
                yield from self._of_value(item)
        elif is_dataclass(value):
            yield from self._of_term(value)


# --- CEL ------------------------------------------------------------------------------------------

_CEL_FIELDS: Final = re.compile(r"\b(request\.(?:operation|userInfo)|oldObject)\b")
_CEL_ALLOWS: Final = re.compile(
    r"\boldObject\s*[!=]=\s*null|\bhas\(|\?\.|request\.operation\s*!=|''|\"\""
)


def _of_cel(code: Code) -> frozenset[str]:
    """Finds the parts of a request that each validation reads, or a condition of all of them."""
    source = code.source
    conditions = [
        frozenset(_reads(expression)) for expression in _expressions(source, "matchCondition")
    ]
    if needed := frozenset().union(*conditions):
        return needed
    validations = [
        frozenset(_reads(expression)) for expression in _expressions(source, "validations")
    ]
    if validations and all(validations):
        return frozenset().union(*validations)
    return frozenset()


def _expressions(source: Mapping[str, Any], name: str) -> Iterator[str]:
    listed = source.get(name)
    for item in listed if isinstance(listed, list) else ():
        text = item.get("expression") if isinstance(item, dict) else None
        if isinstance(text, str):
            yield text


def _reads(expression: str) -> list[str]:
    return [] if _CEL_ALLOWS.search(expression) else _CEL_FIELDS.findall(expression)
