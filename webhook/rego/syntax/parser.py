"""Stage 1: from source text to :class:`~webhook.rego.syntax.ast.Module`, or to a body for queries.

The tree is what was written: nothing is resolved or rewritten here. Errors have
OPA's code, message, row and column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.location import Location
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.annotations import attach, read_annotations
from webhook.rego.syntax.ast import (
    Call,
    Expr,
    Head,
    Import,
    Module,
    Ref,
    Rule,
    SomeDecl,
    SomeIn,
    String,
    Var,
)
from webhook.rego.syntax.builtin_names import BUILTIN_NAMES
from webhook.rego.syntax.lexer import Source
from webhook.rego.syntax.parser_rules import RuleParser, WrittenRule
from webhook.rego.syntax.parser_state import DEPTH_EXCEEDED, Refused
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.syntax.ast import Body, RegoVersion, Term

_FUTURE: Final = {**t.FUTURE_V0, **t.FUTURE_V1}
_V0_KEYWORDS: Final = dict(t.KEYWORDS)
_V1_KEYWORDS: Final = {**t.KEYWORDS, **t.FUTURE_V0}
_ROOTS: Final = ("data", "future", "input", "rego")

# A keyword followed by one of these can only be meant as the name of a rule.
_RULE_NAME: Final = frozenset({t.ASSIGN, t.UNIFY, t.IF, t.CONTAINS, t.LPAREN, t.LPAREN_ATTACHED})
_PATH_NAME: Final = frozenset({t.ASSIGN, t.UNIFY, t.LPAREN, t.LPAREN_ATTACHED})
_OPERATOR_NAME: Final = frozenset({t.ASSIGN, t.UNIFY, t.IF, t.CONTAINS})
_FOLLOWERS: Final = {
    t.EVERY: _RULE_NAME,
    t.IF: _RULE_NAME,
    t.IN: _RULE_NAME,
    t.SOME: _RULE_NAME,
    t.AS: _RULE_NAME,
    t.PACKAGE: _PATH_NAME,
    t.IMPORT: _PATH_NAME,
    t.NOT: _OPERATOR_NAME,
    t.LOGICAL_AND: _OPERATOR_NAME,
    t.LOGICAL_OR: _OPERATOR_NAME,
    t.CONTAINS: frozenset({t.IF, t.CONTAINS}),
}
_OPERATORS: Final = frozenset(t.NAMES[t.ADD : t.DOT])
_HEAD_KEYWORDS: Final = {"if": "p if { ... }", "contains": "p contains x"}


def parse_module(source: str, file: str = "", version: RegoVersion = "v1") -> Module:
    """The module in ``source``, read as this version of the language.

    ``version`` of the result is v1 also where a v0 module imports ``rego.v1``.
    Raises :class:`RegoErrors`.
    """
    text = Source(file, source)
    try:
        return _Statements(text, version).module()
    except Refused as refusal:
        raise RegoErrors(refusal.errors) from None
    except RecursionError:
        raise RegoErrors([_too_deep(file)]) from None


def parse_query(source: str, version: RegoVersion = "v1", imports: Iterable[str] = ()) -> Body:
    """The literals of a query such as ``data.test.p = x``.

    ``imports`` names future keywords that are in force. Raises :class:`RegoErrors`.
    """
    try:
        return _Statements(Source("", source), version, imports).query()
    except Refused as refusal:
        raise RegoErrors(refusal.errors) from None
    except RecursionError:
        raise RegoErrors([_too_deep("")]) from None


def parse_ref(source: str) -> Ref:
    """The reference in ``source``; a lone name is one. Raises :class:`RegoErrors`."""
    body = parse_query(source)
    term = body[0].term if len(body) == 1 and isinstance(body[0], Expr) else None
    if isinstance(term, Var):
        term = Ref(term, (), location=term.location)
    if not isinstance(term, Ref):
        fault = RegoLoadError("rego_parse_error", "expected ref", body[0].location)
        raise RegoErrors([fault])
    return term


def _too_deep(file: str) -> RegoLoadError:
    return RegoLoadError("rego_parse_error", DEPTH_EXCEEDED, Location(file, 1, 1))


class _Statements(RuleParser):
    """The part of the parser that reads a whole file, statement by statement."""

    def __init__(self, source: Source, version: RegoVersion, imports: Iterable[str] = ()) -> None:
        super().__init__(source, _V0_KEYWORDS if version == "v0" else _V1_KEYWORDS, version)
        self.checked = version != "v0"
        self.package: Ref | None = None
        self.imports: list[Import] = []
        self.written: list[WrittenRule] = []
        self.faults: list[RegoLoadError] = []
        for name in imports:
            self._import_keywords({name: _FUTURE[name]})

    # --- a query ---------------------------------------------------------------------------

    def query(self) -> Body:
        """All literals, whatever separates them."""
        literals: list[object] = []
        while self.kinds[self.i] != t.EOF:
            literals.extend(self._top_body())
        if not literals:
            self.refuse("found empty body")
        return tuple(literals)  # type: ignore[arg-type]

    def _top_body(self) -> Body:
        """Literals joined by semicolons."""
        if self.kinds[self.i] == t.EOF:
            self.refuse("found empty body")
        literals = [self.literal()]
        while self.kinds[self.i] == t.SEMICOLON:
            self.i += 1
            literals.append(self.literal())
        return tuple(literals)

    # --- a module --------------------------------------------------------------------------

    def module(self) -> Module:
        """The whole file."""
        first = True
        while self.kinds[self.i] != t.EOF:
            self.remembered.clear()
            start = self.i
            self._statement(first)
            first = False
            if self.i == start:
                self.illegal()
        if first:
            self.i = 0
            place = Location(self.source.file, 0, 0)
            raise Refused([RegoLoadError("rego_parse_error", "empty module", place)])
        if self.checked:
            for written in self.written:
                self.faults.extend(_check_v1(written))
        if self.faults or self.package is None:
            raise Refused(self.faults)
        rules = self._first_branches()
        # Like OPA, a misplaced or unreadable block is an error only where metadata is asked for.
        annotations, _ = read_annotations(self.tokens.comments, parse_ref)
        rules, annotations, _ = attach(annotations, self.package, self.imports, rules)
        return Module(
            self.package,
            tuple(self.imports),
            tuple(rules),
            "v1" if self.checked else "v0",
            file=self.source.file,
            annotations=tuple(annotations),
            comments=tuple(self.tokens.comments),
            source=self.source.text,
            location=self.package.location,
        )

    def _first_branches(self) -> list[Rule]:
        """The rules that are no else branch of another."""
        branches: set[int] = set()
        for written in self.written:
            if written.rule.else_ is not None:
                branches.add(id(written.rule.else_))
        return [one.rule for one in self.written if id(one.rule) not in branches]

    def _statement(self, first: bool) -> None:
        """One package clause, import, rule or body."""
        kinds = self.kinds
        kind = kinds[self.i]
        followers = _FOLLOWERS.get(kind)
        if followers is not None and kinds[self.i + 1] in followers:
            self.refuse(f"{t.NAMES[kind]} keyword cannot be used for rule name")
        if kind == t.ILLEGAL and self.texts[self.i]:
            raise Refused(self.scan_errors())
        place = self.here()
        is_path = kind in t.PATHS
        if is_path and kinds[self.i + 1] not in (t.DOT_ATTACHED, t.LBRACK_ATTACHED):
            if first and kind != t.PACKAGE:
                self.faults.append(self._fault("package expected", place))
            if kind == t.PACKAGE:
                self._package(first, place)
            else:
                self._import()
            if kinds[self.i] == t.SUB:
                self.illegal()
            return
        start, wildcards, depth = self.i, self.wildcards, self.depth
        rules = self.rules()
        kinds[start] = kind
        if rules is not None:
            if first:
                self.faults.append(self._fault("package expected", place))
            self.written.extend(rules)
            return
        self.i, self.wildcards, self.depth = start, wildcards, depth
        body = self._top_body()
        if first:
            self.faults.append(self._fault("package expected", place))
            return
        self._rule_of_body(body)

    def _fault(self, message: str, location: Location) -> RegoLoadError:
        return RegoLoadError("rego_parse_error", message, location)

    def _step_to_path(self) -> None:
        self.i += 1
        if not self.is_name(self.i):
            self.illegal()

    def _path(self) -> Term:
        """The term of a package clause or import, whose first name may be a keyword."""
        kind = self.kinds[self.i]
        self.kinds[self.i] = t.IDENT
        at = self.i
        try:
            return self.term()
        finally:
            self.kinds[at] = kind

    def _package(self, first: bool, place: Location) -> None:
        self._step_to_path()
        term = self._path()
        path: list[Term] = []
        if isinstance(term, Ref):
            if not isinstance(term.head, Var):
                kind = KINDS_OF_TERM[type(term.head)]
                self.refuse(f"unexpected {kind} token: expecting var", term.head.location)
            path = list(term.path)
            head: Term = term.head
        else:
            head = term
        if not isinstance(head, Var):
            self.illegal()
        for part in path:
            if not isinstance(part, String):
                kind = KINDS_OF_TERM[type(part)]
                self.refuse(f"unexpected {kind} token: expecting string", part.location)
        if not first:
            self.faults.append(self._fault("unexpected package", place))
            return
        name = String(head.name, location=head.location)
        self.package = Ref(Var("data", location=head.location), (name, *path), location=place)

    # --- imports ---------------------------------------------------------------------------

    def _import(self) -> None:
        start = self.i
        self._step_to_path()
        try:
            term = self._path()
        except Refused as refusal:
            refusal.errors.append(self.error("expected path"))
            raise
        path = Ref(term, (), location=term.location) if isinstance(term, Var) else term
        if not isinstance(path, Ref) or not isinstance(path.head, Var):
            self.refuse("expected path")
        for part in path.path:
            if not isinstance(part, String):
                kind = KINDS_OF_TERM[type(part)]
                self.refuse(f"unexpected {kind} token: expecting string", part.location)
        root = path.head.name
        if root not in _ROOTS:
            self.hint("if this is unexpected, try updating OPA")
            self.refuse(
                "unexpected import path, must begin with one of: {data, future, input, rego}, "
                f"got: {root}",
                path.location,
            )
        alias = alias_place = None
        if self.kinds[self.i] == t.AS:
            self.i += 1
            alias_place = self.here()
            alias = self._alias()
        else:
            self._check_import_name(path, root)
        found = Import(path, alias, location=self.since(self.starts[start]))
        if root == "rego":
            self._import_rego(path, alias_place)
        elif root == "future":
            self._import_future(path, alias_place)
        self.imports.append(found)

    def _alias(self) -> str:
        if self.kinds[self.i] != t.IDENT:
            self.illegal("expected var")
        place = self.here()
        term = self.term()
        if not isinstance(term, Var):
            self.illegal("expected var")
        if term.name in ("input", "data"):
            self.refuse(
                f"unexpected import alias, must not be a reserved name, got: {term.name}", place
            )
        return term.name

    def _check_import_name(self, path: Ref, root: str) -> None:
        """Without an alias, the last name of the path must be no keyword."""
        last = path.path[-1] if path.path else path.head
        name = last.value if isinstance(last, String) else root
        if root != "future" and (
            name in _V0_KEYWORDS or (self.version != "v0" and name in _V1_KEYWORDS)
        ):
            self.hint("import a different path or use an alias")
            self.refuse(
                f"unexpected import path, must not end with a keyword, got: {name}", last.location
            )

    def _import_rego(self, path: Ref, alias: Location | None) -> None:
        wanted = (
            path.path[0].value if len(path.path) == 1 and isinstance(path.path[0], String) else ""
        )
        if wanted not in ("v1", "v2"):
            self.refuse(
                f"invalid import `{path.location.text}`, must be one of: `rego.v1`, `rego.v2`",
                path.location,
            )
        if alias is not None:
            self.refuse("`rego` imports cannot be aliased", alias)
        self.checked = True
        self._import_keywords(t.FUTURE_V0)
        if wanted == "v2":
            self._import_keywords(t.FUTURE_V1)

    def _import_future(self, path: Ref, alias: Location | None) -> None:
        names = [part.value for part in path.path if isinstance(part, String)]
        if not names or names[0] != "keywords":
            self.refuse("invalid import, must be `future.keywords`", path.location)
        if alias is not None:
            self.refuse("`future` imports cannot be aliased", alias)
        if len(names) != 2:  # longer ones, too: OPA looks at no further name
            self._import_keywords(_FUTURE)
        else:
            if names[1] not in _FUTURE:
                allowed = " ".join(sorted(_FUTURE))
                self.refuse(f"unexpected keyword, must be one of [{allowed}]", path.location)
            self._import_keywords({names[1]: _FUTURE[names[1]]})

    def _import_keywords(self, keywords: dict[str, int]) -> None:
        if "not" in keywords:
            self.not_bodies = True
        self.add_keywords(keywords)

    # --- rules without a body ----------------------------------------------------------------

    def _rule_of_body(self, body: Body) -> None:
        """Take a body at the top for a rule: a constant, or ``p[x]`` and ``f(x)`` bare."""
        place = body[0].location
        try:
            self.written.append(_rule_of(body))
        except _NoRule as fault:
            self.faults.append(self._fault(self._with_hint(fault.args[0], body), place))

    def _with_hint(self, message: str, body: Body) -> str:
        """Advise the import where a plain ``if`` or ``contains`` led the reader astray."""
        if self.checked:
            return message
        first = body[0]
        names = []
        if len(body) == 1 and isinstance(first, Expr) and isinstance(first.term, Var):
            names.append(first.term.name)
        if self.i not in self.newlines:
            names.append(self.texts[self.i])
        for name in names:
            if name in _HEAD_KEYWORDS:
                example = _HEAD_KEYWORDS[name]
                return f"{message} (hint: `import future.keywords.{name}` for `{example}` rules)"
        return message


class _NoRule(Exception):
    """The literals at the top of a file are no rule; the argument says why."""


def _rule_of(body: Body) -> WrittenRule:
    """The rule that a body at the top of a file stands for."""
    if len(body) != 1:
        raise _NoRule("multiple expressions cannot be used for rule head")
    literal = body[0]
    if not isinstance(literal, SomeDecl) and literal.with_:
        raise _NoRule("expressions using with keyword cannot be used for rule head")
    if isinstance(literal, SomeDecl | SomeIn):
        raise _NoRule("'some' declarations cannot be used for rule head")
    if not isinstance(literal, Expr):
        raise _NoRule("expression cannot be used for rule head")
    if literal.negated:
        raise _NoRule("negated expressions cannot be used for rule head")
    return _rule_of_term(literal.term, literal.location)


def _rule_of_term(term: Term, place: Location) -> WrittenRule:
    if isinstance(term, Call):
        operator = term.operator
        name = operator.name if isinstance(operator, Var) else _dotted(operator)
        if name in ("eq", "assign"):
            if len(term.args) != 2:
                raise _NoRule("assignment requires two operands")
            return _constant(term.args[0], term.args[1], name == "assign", place)
        if name in _OPERATORS or name in BUILTIN_NAMES:
            raise _NoRule("rule name conflicts with built-in function")
        if not term.args:
            raise _NoRule("rule argument list must take at least one argument")
        head = Head(_head_ref(operator), term.args, location=place)
        return WrittenRule(Rule(head, location=place), body=False)
    if isinstance(term, Ref):
        ref = _head_ref(term)
        if len(ref.path) > 1:
            return WrittenRule(
                Rule(Head(ref, location=place), location=place), body=False, value=False
            )
        head = Head(Ref(ref.head, (), location=ref.location), key=ref.path[0], location=place)
        return WrittenRule(Rule(head, location=place), body=False)
    if isinstance(term, Var) and term.name in ("input", "data"):
        raise _NoRule("refs cannot be used for rule head")
    raise _NoRule(f"{KINDS_OF_TERM[type(term)]} cannot be used for rule name")


def _constant(left: Term, value: Term, assign: bool, place: Location) -> WrittenRule:
    """``p = value``, ``p[k] = value`` and ``f(x) = value``."""
    args: tuple[Term, ...] | None = None
    if isinstance(left, Call):
        args, left = left.args, left.operator
    if not isinstance(left, Var | Ref):
        raise _NoRule(f"{KINDS_OF_TERM[type(left)]} cannot be used for rule name")
    head = Head(_head_ref(left), args, value=value, assign=assign, location=place)
    return WrittenRule(Rule(head, location=place), body=False)


def _head_ref(term: Var | Ref) -> Ref:
    if isinstance(term, Var):
        return Ref(term, (), location=term.location)
    if not isinstance(term.head, Var):
        raise _NoRule(f"invalid rule head: {term.location.text}")
    return term


def _dotted(ref: Ref) -> str:
    """The names of a reference joined, as those of built-ins are; its text if it has others."""
    names = [ref.head.name] if isinstance(ref.head, Var) else []
    names += [part.value for part in ref.path if isinstance(part, String)]
    return ".".join(names) if len(names) == len(ref.path) + 1 else ref.location.text


def _check_v1(written: WrittenRule) -> list[RegoLoadError]:
    """What v1 demands of a rule's declaration."""
    rule = written.rule
    head = rule.head
    kind = "function" if head.args else "rule"
    messages = []
    name = head.ref.head.name if isinstance(head.ref.head, Var) else ""
    if not head.ref.path and name in _V1_KEYWORDS:
        messages.append(f"{name} keyword cannot be used for rule name")
    if not written.body and not written.value:
        messages.append(f"{kind} must have value assignment and/or body declaration")
    if written.body and not written.if_ and not rule.default:
        messages.append(f"`if` keyword is required before {kind} body")
    if head.key is not None and not head.contains:
        messages.append("`contains` keyword is required for partial set rules")
    return [RegoLoadError("rego_parse_error", text, rule.location) for text in messages]
