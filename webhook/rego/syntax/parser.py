"""Stage 1: from source text to :class:`~webhook.rego.syntax.ast.Module`, or to a body for queries.

The tree follows the source: this stage resolves and rewrites nothing. Errors have OPA's code,
message, row and column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.bare_rules import NoRule, rule_of
from webhook.rego.syntax.cursor import DEPTH_EXCEEDED, Cursor, Refused
from webhook.rego.syntax.lexer import Source, Tokens
from webhook.rego.syntax.parser_bodies import BodyParser
from webhook.rego.syntax.parser_logic import LogicParser
from webhook.rego.syntax.parser_rules import RuleParser, WrittenRule
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM, TermParser

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.syntax.cursor import Parenthesised

_FUTURE: Final = {**t.FUTURE_V0, **t.FUTURE_V1}
_V0_KEYWORDS: Final = dict(t.KEYWORDS)
_V1_KEYWORDS: Final = {**t.KEYWORDS, **t.FUTURE_V0}
_ROOTS: Final = ("data", "future", "input", "rego")

# Before one of these characters a keyword can only be the name of a rule.
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
_HEAD_KEYWORDS: Final = {"if": "p if { ... }", "contains": "p contains x"}


def parse_module(source: str, file: str = "", version: ast.RegoVersion = "v1") -> ast.Module:
    """Returns the module in ``source``, read as this version of the language.

    ``version`` of the result is v1 also where a v0 module imports ``rego.v1``.
    Raises :class:`RegoErrors`.
    """
    return parse_written(source, file, version)[0]


def parse_written(
    source: str, file: str = "", version: ast.RegoVersion = "v1"
) -> tuple[ast.Module, Tokens, Parenthesised]:
    """Returns the module with its tokens, and with the places of terms in parentheses.

    Raises :class:`RegoErrors`.
    """
    reader = _Module(Source(file, source), version)
    try:
        return reader.module(), reader.cursor.tokens, reader.cursor.groups
    except Refused as refusal:
        raise RegoErrors(refusal.errors) from None
    except RecursionError:
        raise RegoErrors([_too_deep(file)]) from None
    finally:
        reader.close()


def parse_query(
    source: str, version: ast.RegoVersion = "v1", imports: Iterable[str] = ()
) -> ast.Body:
    """Returns the literals of a query such as ``data.test.p = x``.

    ``imports`` names future keywords that are in force. Raises :class:`RegoErrors`.
    """
    reader = None
    try:
        reader = _Module(Source("", source), version, imports)
        return reader.query()
    except Refused as refusal:
        raise RegoErrors(refusal.errors) from None
    except RecursionError:
        raise RegoErrors([_too_deep("")]) from None
    finally:
        if reader is not None:
            reader.close()


def has_metadata(comments: Iterable[tuple[Location, str]]) -> bool:
    """Whether one of these comments may begin a block of metadata."""
    return any(text.lstrip().startswith("METADATA") for _, text in comments)


def parse_ref(source: str) -> ast.Ref:
    """Returns the reference in ``source``, which may be a single name.

    Raises :class:`RegoErrors`.
    """
    body = parse_query(source)
    term = body[0].term if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if isinstance(term, ast.Var):
        term = ast.Ref(term, (), location=term.location)
    if not isinstance(term, ast.Ref):
        fault = RegoLoadError("rego_parse_error", "expected ref", body[0].location)
        raise RegoErrors([fault])
    return term


def _too_deep(file: str) -> RegoLoadError:
    return RegoLoadError("rego_parse_error", DEPTH_EXCEEDED, Location(file, 1, 1))


class _Module:
    """Reads a whole file, statement by statement, with readers for the parts of a statement."""

    def __init__(
        self, source: Source, version: ast.RegoVersion, imports: Iterable[str] = ()
    ) -> None:
        keywords = _V0_KEYWORDS if version == "v0" else _V1_KEYWORDS
        self.cursor = cursor = Cursor(source, keywords, version)
        self.terms = terms = TermParser(cursor)
        logic = LogicParser(cursor, terms)
        self.bodies = bodies = BodyParser(cursor, terms, logic)
        terms.bodies = logic.bodies = bodies
        self.rules = RuleParser(cursor, terms, bodies)
        self.checked = version != "v0"
        self.package: ast.Ref | None = None
        self.imports: list[ast.Import] = []
        self.written: list[WrittenRule] = []
        self.faults: list[RegoLoadError] = []
        for name in imports:
            self._import_keywords({name: _FUTURE[name]})

    def close(self) -> None:
        """Ends what readers know of each other: otherwise only a collection of garbage would free them."""
        terms = self.terms
        del self.bodies.logic.bodies, terms.bodies

    # --- a query ---------------------------------------------------------------------------

    def query(self) -> ast.Body:
        """Reads all literals, with any separators."""
        cursor = self.cursor
        literals: list[object] = []
        while cursor.kinds[cursor.i] != t.EOF:
            literals.extend(self._top_body())
        if not literals:
            cursor.refuse("found empty body")
        return tuple(literals)  # type: ignore[arg-type]

    def _top_body(self) -> ast.Body:
        """Literals joined by semicolons."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] == t.EOF:
            cursor.refuse("found empty body")
        literals = [self.bodies.literal()]
        while cursor.kinds[cursor.i] == t.SEMICOLON:
            cursor.i += 1
            literals.append(self.bodies.literal())
        return tuple(literals)

    # --- a module --------------------------------------------------------------------------

    def module(self) -> ast.Module:
        """Returns the whole file."""
        cursor = self.cursor
        first = True
        while cursor.kinds[cursor.i] != t.EOF:
            cursor.remembered.clear()
            start = cursor.i
            self._statement(first)
            first = False
            if cursor.i == start:
                cursor.illegal()
        if first:
            cursor.i = 0
            place = Location(cursor.source.file, 0, 0)
            raise Refused([RegoLoadError("rego_parse_error", "empty module", place)])
        if self.checked:
            for written in self.written:
                self.faults.extend(_check_v1(written))
        if self.faults or self.package is None:
            raise Refused(self.faults)
        rules = self._first_branches()
        annotations: list[ast.Annotations] = []
        if has_metadata(cursor.tokens.comments):
            # Imported here: it loads YAML, 9 ms and 1 MiB; templates seldom have metadata.
            from webhook.rego.syntax.annotations import attach, read_annotations  # noqa: PLC0415

            # Like OPA, a misplaced or unreadable block is an error only if metadata is requested.
            annotations, _ = read_annotations(cursor.tokens.comments, parse_ref)
            rules, annotations, _ = attach(annotations, self.package, self.imports, rules)
        return ast.Module(
            self.package,
            tuple(self.imports),
            tuple(rules),
            "v1" if self.checked else "v0",
            file=cursor.source.file,
            annotations=tuple(annotations),
            comments=tuple(cursor.tokens.comments),
            source=cursor.source.text,
            location=self.package.location,
        )

    def _first_branches(self) -> list[ast.Rule]:
        """Returns the rules that are no else branch of another."""
        branches: set[int] = set()
        for written in self.written:
            if written.rule.else_ is not None:
                branches.add(id(written.rule.else_))
        return [parsed.rule for parsed in self.written if id(parsed.rule) not in branches]

    def _statement(self, first: bool) -> None:
        """Reads one package clause, import, rule or body."""
        cursor = self.cursor
        kinds = cursor.kinds
        kind = kinds[cursor.i]
        followers = _FOLLOWERS.get(kind)
        if followers is not None and kinds[cursor.i + 1] in followers:
            cursor.refuse(f"{t.NAMES[kind]} keyword cannot be used for rule name")
        if kind == t.ILLEGAL and cursor.texts[cursor.i]:
            raise Refused(cursor.scan_errors())
        place = cursor.here()
        is_path = kind in t.PATHS
        if is_path and kinds[cursor.i + 1] not in (t.DOT_ATTACHED, t.LBRACK_ATTACHED):
            if first and kind != t.PACKAGE:
                self.faults.append(self._fault("package expected", place))
            if kind == t.PACKAGE:
                self._package(first, place)
            else:
                self._import()
            if kinds[cursor.i] == t.SUB:
                cursor.illegal()
            return
        start, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        rules = self.rules.rules()
        kinds[start] = kind
        if rules is not None:
            if first:
                self.faults.append(self._fault("package expected", place))
            self.written.extend(rules)
            return
        cursor.i, cursor.wildcards, cursor.depth = start, wildcards, depth
        body = self._top_body()
        if first:
            self.faults.append(self._fault("package expected", place))
            return
        self._rule_of_body(body)

    def _fault(self, message: str, location: Location) -> RegoLoadError:
        return RegoLoadError("rego_parse_error", message, location)

    def _step_to_path(self) -> None:
        cursor = self.cursor
        cursor.i += 1
        if not cursor.is_name(cursor.i):
            cursor.illegal()

    def _path(self) -> ast.Term:
        """Reads the term of a package clause or import, whose first name may be a keyword."""
        cursor = self.cursor
        kind = cursor.kinds[cursor.i]
        cursor.kinds[cursor.i] = t.IDENT
        at = cursor.i
        try:
            return self.terms.term()
        finally:
            cursor.kinds[at] = kind

    def _package(self, first: bool, place: Location) -> None:
        cursor = self.cursor
        self._step_to_path()
        term = self._path()
        path: list[ast.Term] = []
        if isinstance(term, ast.Ref):
            if not isinstance(term.head, ast.Var):
                kind = KINDS_OF_TERM[type(term.head)]
                cursor.refuse(f"unexpected {kind} token: expecting var", term.head.location)
            path = list(term.path)
            head: ast.Term = term.head
        else:
            head = term
        if not isinstance(head, ast.Var):
            cursor.illegal()
        for part in path:
            if not isinstance(part, ast.String):
                kind = KINDS_OF_TERM[type(part)]
                cursor.refuse(f"unexpected {kind} token: expecting string", part.location)
        if not first:
            self.faults.append(self._fault("unexpected package", place))
            return
        name = ast.String(head.name, location=head.location)
        self.package = ast.Ref(
            ast.Var("data", location=head.location), (name, *path), location=place
        )

    # --- imports ---------------------------------------------------------------------------

    def _import(self) -> None:
        cursor = self.cursor
        start = cursor.i
        self._step_to_path()
        try:
            term = self._path()
        except Refused as refusal:
            refusal.errors.append(cursor.error("expected path"))
            raise
        path = ast.Ref(term, (), location=term.location) if isinstance(term, ast.Var) else term
        if not isinstance(path, ast.Ref) or not isinstance(path.head, ast.Var):
            cursor.refuse("expected path")
        for part in path.path:
            if not isinstance(part, ast.String):
                kind = KINDS_OF_TERM[type(part)]
                cursor.refuse(f"unexpected {kind} token: expecting string", part.location)
        root = path.head.name
        if root not in _ROOTS:
            cursor.hint("if this is unexpected, try updating OPA")
            cursor.refuse(
                "unexpected import path, must begin with one of: {data, future, input, rego}, "
                f"got: {root}",
                path.location,
            )
        alias = alias_place = None
        if cursor.kinds[cursor.i] == t.AS:
            cursor.i += 1
            alias_place = cursor.here()
            alias = self._alias()
        else:
            self._check_import_name(path, root)
        imported = ast.Import(path, alias, location=cursor.since(cursor.starts[start]))
        if root == "rego":
            self._import_rego(path, alias_place)
        elif root == "future":
            self._import_future(path, alias_place)
        self.imports.append(imported)

    def _alias(self) -> str:
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.IDENT:
            cursor.illegal("expected var")
        place = cursor.here()
        term = self.terms.term()
        if not isinstance(term, ast.Var):
            cursor.illegal("expected var")
        if term.name in ("input", "data"):
            cursor.refuse(
                f"unexpected import alias, must not be a reserved name, got: {term.name}", place
            )
        return term.name

    def _check_import_name(self, path: ast.Ref, root: str) -> None:
        """Without an alias, the last name of the path must be no keyword."""
        cursor = self.cursor
        last = path.path[-1] if path.path else path.head
        name = last.value if isinstance(last, ast.String) else root
        if root != "future" and (
            name in _V0_KEYWORDS or (cursor.version != "v0" and name in _V1_KEYWORDS)
        ):
            cursor.hint("import a different path or use an alias")
            cursor.refuse(
                f"unexpected import path, must not end with a keyword, got: {name}", last.location
            )

    def _import_rego(self, path: ast.Ref, alias: Location | None) -> None:
        cursor = self.cursor
        imported = (
            path.path[0].value
            if len(path.path) == 1 and isinstance(path.path[0], ast.String)
            else ""
        )
        if imported not in ("v1", "v2"):
            cursor.refuse(
                f"invalid import `{path.location.text}`, must be one of: `rego.v1`, `rego.v2`",
                path.location,
            )
        if alias is not None:
            cursor.refuse("`rego` imports cannot be aliased", alias)
        self.checked = True
        self._import_keywords(t.FUTURE_V0)
        if imported == "v2":
            self._import_keywords(t.FUTURE_V1)

    def _import_future(self, path: ast.Ref, alias: Location | None) -> None:
        cursor = self.cursor
        names = [part.value for part in path.path if isinstance(part, ast.String)]
        if not names or names[0] != "keywords":
            cursor.refuse("invalid import, must be `future.keywords`", path.location)
        if alias is not None:
            cursor.refuse("`future` imports cannot be aliased", alias)
        if len(names) != 2:  # longer ones, too: OPA looks at no further name
            self._import_keywords(_FUTURE)
        else:
            if names[1] not in _FUTURE:
                allowed = " ".join(sorted(_FUTURE))
                cursor.refuse(f"unexpected keyword, must be one of [{allowed}]", path.location)
            self._import_keywords({names[1]: _FUTURE[names[1]]})

    def _import_keywords(self, keywords: dict[str, int]) -> None:
        cursor = self.cursor
        if "not" in keywords:
            cursor.not_bodies = True
        cursor.add_keywords(keywords)

    # --- rules without a body ----------------------------------------------------------------

    def _rule_of_body(self, body: ast.Body) -> None:
        """Takes a body at the top for a rule: a constant, or ``p[x]`` and ``f(x)`` bare."""
        place = body[0].location
        try:
            self.written.append(rule_of(body))
        except NoRule as fault:
            self.faults.append(self._fault(self._with_hint(fault.args[0], body), place))

    def _with_hint(self, message: str, body: ast.Body) -> str:
        """Advise the import where a plain ``if`` or ``contains`` led the reader astray."""
        cursor = self.cursor
        if self.checked:
            return message
        first = body[0]
        names = []
        if len(body) == 1 and isinstance(first, ast.Expr) and isinstance(first.term, ast.Var):
            names.append(first.term.name)
        if cursor.i not in cursor.newlines:
            names.append(cursor.texts[cursor.i])
        for name in names:
            if name in _HEAD_KEYWORDS:
                example = _HEAD_KEYWORDS[name]
                return f"{message} (hint: `import future.keywords.{name}` for `{example}` rules)"
        return message


def _check_v1(written: WrittenRule) -> list[RegoLoadError]:
    """Checks a rule's declaration as v1 demands it."""
    rule = written.rule
    head = rule.head
    kind = "function" if head.args else "rule"
    messages = []
    name = head.ref.head.name if isinstance(head.ref.head, ast.Var) else ""
    if not head.ref.path and name in _V1_KEYWORDS:
        messages.append(f"{name} keyword cannot be used for rule name")
    if not written.body and not written.value:
        messages.append(f"{kind} must have value assignment and/or body declaration")
    if written.body and not written.if_ and not rule.default:
        messages.append(f"`if` keyword is required before {kind} body")
    if head.key is not None and not head.contains:
        messages.append("`contains` keyword is required for partial set rules")
    return [RegoLoadError("rego_parse_error", text, rule.location) for text in messages]
