"""Writes the fast form of an expression: each form of CEL as Python's own.

The fast form absorbs no errors; see :mod:`webhook.cel.fast.expression`.
:mod:`webhook.rego.write.expression` alone joins sources; names in them are made here, and no text
of a policy becomes a name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.check.checker import Checked, narrowed_name
from webhook.cel.check.environment import functions
from webhook.cel.check.literals import known_members
from webhook.cel.fast.operators import KINDS, KNOWN, OPERATORS, ORDERS, cost_of, within_path
from webhook.cel.library.all import direct
from webhook.cel.library.regex import compiled
from webhook.cel.paths import goes_on, may_change, may_nest
from webhook.cel.run.values import VARIABLES
from webhook.cel.syntax import ast
from webhook.rego.write import expression as source
from webhook.rego.write.expression import Binds, Expression, Kind

MAX_NODES: Final = 2_000

MAX_INDENT: Final = 60
"""Blocks within each other; CPython takes 100 indentations."""

MAX_LOOPS: Final = 12
"""Loops within each other; CPython takes 20 blocks."""

SHORT: Final = (12, 3, 1)
"""Free turns of a loop: of an outermost loop, of a loop within it, and of deeper loops. The free
work is at most 36 times the paid work for the nodes of the expression.
"""

ROOTS: Final = frozenset({".object", ".oldObject", ".params", ".request", ".namespaceObject"})
"""Variables that are decoded JSON all through."""

_PLAIN: Final = frozenset(
    {"!_", "@in", "_!=_", "_&&_", "_<=_", "_<_", "_==_", "_>=_", "_>_", "_||_"}
    | {"contains", "endsWith", "join", "lowerAscii", "matches", "replace", "size", "split"}
    | {"startsWith", "string", "substring", "trim", "upperAscii"}
)
"""Functions that always return bools, texts, numbers and lists of texts."""


class Unwritten(Exception):
    """An expression that only the exact form can evaluate."""


def is_plain(node: ast.Expr, known: Callable[[ast.Expr], bool | None]) -> bool:
    """Returns whether a node is such an expression.

    ``known`` answers for names, macros and composed variables; None for a node of another sort.
    """
    value = known(node)
    if value is not None:
        return value
    match node:
        case ast.Constant():
            return type(node.value) in {str, bool, int, float, type(None)}
        case ast.Select():
            return node.tests or (not node.optional and is_plain(node.operand, known))
        case ast.ListOf():
            return not node.optional and all(is_plain(item, known) for item in node.items)
        case ast.MapOf():
            return all(
                is_plain(entry.value, known) and not entry.optional for entry in node.entries
            )
        case ast.Call():
            return _is_plain_call(node, known)
        case ast.Name() | ast.Fold():
            return False
    return False


def _is_plain_call(node: ast.Call, known: Callable[[ast.Expr], bool | None]) -> bool:
    function, args = node.function, node.args
    if function in _PLAIN:
        return True
    if function == "_[_]":
        return is_plain(args[0], known)
    if function == "_?_:_":
        return is_plain(args[1], known) and is_plain(args[2], known)
    if function in {"_+_", "dyn"}:
        return all(is_plain(arg, known) for arg in args)
    if function == "orValue" and node.target is not None:
        return _holds_plain(node.target, known) and is_plain(args[0], known)
    return False


def _holds_plain(node: ast.Expr, known: Callable[[ast.Expr], bool | None]) -> bool:
    """Returns whether an optional holds such a value, if any: one that was looked for by a path."""
    if isinstance(node, ast.Select) and node.optional:
        of = node.operand
    elif isinstance(node, ast.Call) and node.function == "_[?_]":
        of = node.args[0]
    else:
        return False
    return is_plain(of, known) or _holds_plain(of, known)


class Writer:
    """Writes one expression, with its own names of locals and constants."""

    has_exact_errors = True
    """Whether the first error of the written code may be reported."""

    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.lines: list[str] = []
        self.indent = 1
        self.names = 0
        self.constants: dict[str, Any] = {}
        self.roots: dict[str, Expression] = {}
        self.ways: set[ast.Expr] = set()
        self.loops = 0
        self.scopes: list[dict[str, Expression]] = []
        self.computed: frozenset[str] = frozenset()
        """Composed variables that have their value at this place on every path."""
        self.plain: set[str] = set()
        """Locals that hold decoded JSON all through."""
        self.plain_folds: set[ast.Fold] = set()

    # --- lines, locals and constants -----------------------------------------------------------

    def line(self, text: str) -> None:
        """Adds a line at the present depth."""
        if self.indent > MAX_INDENT:
            raise Unwritten
        self.lines.append("    " * self.indent + text)

    def new(self, kind: Kind = Kind.ANY) -> Expression:
        """Returns a local that is not in use yet."""
        self.names += 1
        return source.name(f"v{self.names}", kind)

    def assign(self, local: Expression, value: Expression) -> None:
        """Gives a local its value."""
        self.line(f"{local.source} = {value.within(Binds.CONDITIONAL)}")

    def constant_named(self, value: Any) -> Expression:
        """Gives a value a name in the code's globals, and returns the name."""
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return source.name(name)

    def kept(self, value: Expression) -> Expression:
        """Returns a value that may be repeated: itself, or a new local that holds it."""
        if value.is_simple:
            return value
        local = self.new(value.kind)
        self.assign(local, value)
        return local

    # --- expressions ---------------------------------------------------------------------------

    def write(self, root: ast.Expr) -> str:
        """The whole function."""
        cost = cost_of(root)
        if cost > MAX_NODES:
            raise Unwritten
        value = self.value(root)
        self.line(f"return {value.source}")
        head = ["def f(E, M):", f"    M.left -= {cost}"]
        head += ["    if M.left < M.next_look:", "        M.check()"]
        head += [f"    {local.source} = E[{name!r}]" for name, local in self.roots.items()]
        return "\n".join([*head, *self.lines, ""])

    def held(self, node: ast.Expr) -> Expression:
        """A value that may be named after other lines have been written."""
        return self.kept(self.value(node))

    # --- nodes --------------------------------------------------------------------------------

    def value(self, node: ast.Expr) -> Expression:
        """Writes the expression that computes a node, behind the lines that it needs."""
        match node:
            case ast.Constant():
                return self.constant(node.value)
            case ast.Name():
                return self.read(node)
            case ast.Select():
                return self.select(node)
            case ast.Call():
                return self.call(node)
            case ast.ListOf() if not node.optional:
                return source.list_of(self.operands(node.items))
            case ast.MapOf():
                return self.map_of(node)
            case ast.Fold():
                return self.fold(node)
            case ast.Bind():
                return self.bind(node)
        raise Unwritten

    def constant(self, value: Any) -> Expression:
        """A value that is known."""
        if type(value) in {str, bool, int, type(None)}:
            return source.scalar(value)
        return self.constant_named(value)

    def operands(self, nodes: list[ast.Expr]) -> list[Expression]:
        """Returns values in the order of evaluation, with the lines that they need before."""
        values: list[Expression] = []
        for node in nodes:
            before = len(self.lines)
            value = self.value(node)
            if len(self.lines) > before:
                # The values before this one must be computed before these lines.
                late = self.lines[before:]
                del self.lines[before:]
                values = [self.kept(operand) for operand in values]
                self.lines += late
            values.append(value)
        return values

    def read(self, node: ast.Name) -> Expression:
        """A variable; an optional that a macro gives is left to the exact form, if it may change."""
        meaning = self.checked.names[node]
        value = self.name(meaning)
        if meaning.startswith((".", ":")) or not may_change(node, self.checked):
            return value
        if value.source in self.plain or node in self.ways:
            return value
        return source.call("settled", value)

    def way(self, node: ast.Expr) -> Expression:
        """Writes the beginning of a path as it is."""
        self.ways.add(node)
        return self.value(node)

    def name(self, meaning: str) -> Expression:
        """A variable, of a macro or of the environment."""
        if meaning.startswith(":"):
            raise Unwritten
        if not meaning.startswith("."):
            for scope in reversed(self.scopes):
                if meaning in scope:
                    return scope[meaning]
        name = meaning.removeprefix(".")
        if name not in self.roots:
            self.roots[name] = self.new()
        return self.roots[name]

    def select(self, node: ast.Select) -> Expression:
        """Returns a field, or whether the field exists."""
        meaning = self.checked.names.get(node)
        if meaning is not None:
            return self.name(meaning)
        field = source.scalar(node.field)
        if self.is_composed(node):
            value = self.variable(node)
            if not node.tests:
                return value
            if not value.is_simple:
                self.assign(self.new(), value)  # it is there, unless it cannot be computed
            return source.TRUE
        operand = self.way(node.operand)
        if node.tests:  # nothing but a dict has keys: all else is left to the exact form
            return source.compare(field, "in", source.method(operand, "keys"))
        if node.optional or goes_on(node.operand, self.checked):
            return source.call(
                within_path("optional_item", node.operand, self.checked), operand, field
            )
        if operand.kind not in {Kind.ANY, Kind.DICT}:
            raise Unwritten  # a value without fields; Python would warn about a literal
        return source.item(operand, field.source)

    def is_composed(self, node: ast.Select) -> bool:
        """Returns whether it is a composed variable."""
        return self.checked.types[node.operand].name == VARIABLES

    def variable(self, node: ast.Select) -> Expression:
        """A composed variable."""
        if node.field in KNOWN:
            return self.name(f".variables.{node.field}")
        return source.item(self.value(node.operand), source.scalar(node.field).source)

    def is_plain(self, node: ast.Expr) -> bool:
        """Returns whether the value of a node, as it is written, is decoded JSON all through."""
        return is_plain(node, self.said_plain)

    def said_plain(self, node: ast.Expr) -> bool | None:
        """Returns whether a name, a macro or a composed variable is; None for another node."""
        meaning = self.checked.names.get(node)
        if meaning is not None:
            for scope in reversed(self.scopes):
                if meaning in scope:
                    return scope[meaning].source in self.plain
            return meaning in ROOTS
        if isinstance(node, ast.Fold):
            return node in self.plain_folds
        if isinstance(node, ast.Select) and self.is_composed(node):
            return self.is_plain_variable(node.field)
        return None

    def is_plain_variable(self, name: str) -> bool:
        """Returns whether a composed variable is."""
        return name in KNOWN

    def map_of(self, node: ast.MapOf) -> Expression:
        """A map of texts that are known."""
        keys = [entry.key for entry in node.entries]
        texts = [
            key.value for key in keys if isinstance(key, ast.Constant) and type(key.value) is str
        ]
        if len(set(texts)) < len(keys) or any(entry.optional for entry in node.entries):
            raise Unwritten
        values = self.operands([entry.value for entry in node.entries])
        return source.dict_of(zip(map(source.scalar, texts), values, strict=True))

    def bind(self, node: ast.Bind) -> Expression:
        """``cel.bind``: its value is computed, whether or not it is read."""
        value = self.held(node.value)
        if self.is_plain(node.value):
            self.plain.add(value.source)
        self.scopes.append({node.name: value})
        body = self.value(node.body)
        self.scopes.pop()
        return body

    # --- macros: loops, which pay before they run ----------------------------------------------

    def fold(self, node: ast.Fold) -> Expression:
        """A macro over items: a loop."""
        if node.kind in {"map_value", "map_entry"} or self.loops >= MAX_LOOPS:
            raise Unwritten
        range_ = self.held(node.range)
        cost = 2 + cost_of(node.body) + (0 if node.test is None else cost_of(node.test))
        result = self.new(Kind.BOOL if node.kind in {"all", "exists"} else Kind.ANY)
        begin = {"all": "True", "exists": "False", "exists_one": "0"}.get(node.kind, "[]")
        self.line(f"{result.source} = {begin}")
        first = self.new()
        targets, scope = first.source, {node.first: first}
        if node.second is not None:
            second = scope[node.second] = self.new()
            targets += f", {second.source}"
        goes = "items" if node.second is None else "pairs"
        self.line(f"for {targets} in {self._turns(goes, range_, cost).source}:")
        if self.is_plain(node.range):
            self.plain.update(local.source for local in scope.values())
        computed = self.computed
        self.scopes.append(scope)
        self.loops += 1
        self.indent += 1
        indent = self.indent
        self._turn(node, result)
        if self.is_plain(node.body):
            self.plain_folds.add(node)
        self.indent = indent - 1
        self.loops -= 1
        self.scopes.pop()
        self.computed = computed  # there may be no turn
        if node.kind == "exists_one":
            return source.compare(result, "==", "1")
        return result.of_kind(Kind.LIST) if result.kind is Kind.ANY else result

    def _turns(self, goes: str, range_: Expression, cost: int) -> Expression:
        """Returns the items that a loop goes through: a short list as it is."""
        paid = source.call(goes, "M", range_, str(cost))
        if goes != "items":
            return paid
        most = source.scalar(SHORT[min(self.loops, len(SHORT) - 1)])
        is_short = source.compare(source.call("len", range_), "<=", most)
        if range_.kind is not Kind.LIST:
            is_short = source.all_of([source.is_of(range_, Kind.LIST), is_short])
        return source.conditional(range_, is_short, paid)

    def _turn(self, node: ast.Fold, result: Expression) -> None:
        """Writes the body of a loop."""
        local = result.source
        if node.test is not None:
            self.line(f"if {self.condition(node.test).source}:")
            self.indent += 1
        if node.kind == "all":
            test = source.negation(self.condition(node.body))
            self.line(f"if {test.source}:")
            self.line(f"    {local} = False")
            self.line("    break")
        elif node.kind == "exists":
            self.line(f"if {self.condition(node.body).source}:")
            self.line(f"    {local} = True")
            self.line("    break")
        elif node.kind == "exists_one":
            self.line(f"if {self.condition(node.body).source}:")
            self.line(f"    {local} = added(M, {local}, 1)")
        else:
            self.line(f"{local}.append({self.value(node.body).source})")

    # --- conditions ---------------------------------------------------------------------------

    def condition(self, node: ast.Expr) -> Expression:
        """A value that is true or false."""
        value = self.value(node)
        return value if value.kind is Kind.BOOL else source.call("condition", value, kind=Kind.BOOL)

    def logic(self, node: ast.Call) -> Expression:
        """Writes ``&&`` and ``||``: the lines of an operand run only if it is evaluated."""
        ends = node.function == "_||_"
        local: Expression | None = None
        tests: list[Expression] = []
        indent = self.indent
        computed = self.computed
        for number, arg in enumerate(node.args):
            before = len(self.lines)
            self.indent += 1
            test = self.condition(arg)
            self.indent -= 1
            if number == 0:
                computed = (
                    self.computed
                )  # later operands may not be evaluated, and so their locals not set
            if len(self.lines) > before:
                late = self.lines[before:]
                del self.lines[before:]
                local = local or self.new(Kind.BOOL)
                if tests:
                    self.assign(local, self.joined(tests, ends))
                    self.line(f"if {'not ' if ends else ''}{local.source}:")
                    self.lines += late
                    self.indent += 1
                else:
                    self.lines += [line[4:] for line in late]
                tests = []
            tests.append(test)
        self.computed = computed
        value = self.joined(tests, ends)
        if local is None:
            return value
        self.assign(local, value)
        self.indent = indent
        return local

    def joined(self, tests: list[Expression], ends: bool) -> Expression:
        """Operands without lines between them."""
        test = source.any_of(tests) if ends else source.all_of(tests)
        return test.forgetting().of_kind(Kind.BOOL)

    def conditional(self, node: ast.Call) -> Expression:
        """``a ? b : c``."""
        test = self.condition(node.args[0])
        local = self.new()
        branch = self.way if node in self.ways else self.branch
        self.line(f"if {test.source}:")
        computed = self.computed
        self.indent += 1
        then = branch(node.args[1])
        self.assign(local, then)
        self.indent -= 1
        self.line("else:")
        computed, self.computed = self.computed, computed
        self.indent += 1
        other = branch(node.args[2])
        self.assign(local, other)
        self.indent -= 1
        self.computed &= computed
        return local.of_kind(then.kind) if then.kind is other.kind else local

    def branch(self, node: ast.Expr) -> Expression:
        """Writes one branch of a conditional."""
        value = self.value(node)
        if may_nest(node, self.checked):
            return source.call("unnested", value)
        return value

    # --- calls --------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Expression:
        """An operator, or a function."""
        function = node.function
        if function in {"_&&_", "_||_"}:
            return self.logic(node)
        if function == "_?_:_":
            return self.conditional(node)
        named = self.checked.functions.get(node)
        nodes = list(node.args)
        if node.target is not None and (named is None or named == function):
            nodes.insert(0, node.target)
        special = self.special(node)
        if special is not None:
            return special
        if function in {"_[_]", "_[?_]"}:
            self.ways.add(nodes[0])
        args = self.operands(nodes)
        if function == "!_":
            if args[0].kind is Kind.BOOL:
                return source.negation(args[0])
            return source.call("is_not", args[0], kind=Kind.BOOL)
        if function == "-_":
            return source.call("negate", args[0])
        if function in ORDERS and {arg.kind for arg in args} == {Kind.INT}:
            return source.compare(args[0], function.strip("_"), args[1])
        if function in {"_[_]", "_[?_]"}:
            return source.call(within_path(OPERATORS[function], nodes[0], self.checked), *args)
        if function in OPERATORS:
            kind = Kind.BOOL if function in ORDERS else Kind.ANY
            return source.call(OPERATORS[function], *args, kind=kind)
        return self.library(node, named or function, args, nodes)

    def special(self, node: ast.Call) -> Expression | None:
        """Writes a node that treats its operands in its own way; None for others."""
        match node.function:
            case "_==_" | "_!=_":
                return self.equality(node, negated=node.function == "_!=_")
            case "@in":
                return self.membership(node)
            case "_+_":
                return self.sum_of(node)
            case "orValue":
                return self.path_or(node)
            case "hasValue":
                return self.path_test(node)
        return None

    def sum_of(self, node: ast.Call) -> Expression:
        """Returns ``a + b + c``, in one call unless a later error could hide a sum's error."""
        later: list[ast.Expr] = []
        of: ast.Expr = node
        while isinstance(of, ast.Call) and of.function == "_+_":
            later.append(of.args[1])
            of = of.args[0]
        if len(later) < 2 or (self.has_exact_errors and not all(map(self.is_silent, later[:-1]))):
            args = self.operands(node.args)
            return source.call("added", "M", *args, kind=self.kind_of_sum(args[0]))
        args = self.operands([of, *reversed(later)])
        return source.call("summed", "M", *args, kind=self.kind_of_sum(args[0]))

    def kind_of_sum(self, first: Expression) -> Kind:
        """Returns the kind of a sum: a text or list if the first operand is one."""
        return first.kind if first.kind in {Kind.STRING, Kind.LIST} else Kind.ANY

    def is_silent(self, node: ast.Expr) -> bool:
        """Returns whether a node raises no error: that of a field is left to the exact form."""
        while isinstance(node, ast.Select) and not node.optional and not self.is_composed(node):
            node = node.operand
        return isinstance(node, ast.Constant | ast.Name)

    def path_or(self, node: ast.Call) -> Expression | None:
        """``a.?b.c[?'d'].orValue(e)`` at once, for a constant; None where it is something else."""
        (other,) = node.args
        is_known = (
            isinstance(other, ast.Constant)
            or (isinstance(other, ast.ListOf) and not other.items)
            or (isinstance(other, ast.MapOf) and not other.entries)
        )
        if not is_known or (path := self.path(node.target)) is None:
            return None
        base = self.value(path[0])
        return source.call("at_path", base, source.tuple_of(path[1]), self.value(other))

    def path_test(self, node: ast.Call) -> Expression | None:
        """``a.?b.c[?'d'].hasValue()`` at once; None where it is something else."""
        if (path := self.path(node.target)) is None:
            return None
        keys = source.tuple_of(path[1])
        return source.call("is_at_path", self.value(path[0]), keys, kind=Kind.BOOL)

    def path(self, of: ast.Expr | None) -> tuple[ast.Expr, list[Expression]] | None:
        """Returns the operand of a path's first question mark, and the keys from there; or None.

        Behind the first question mark a missing item is no error, with or without further question
        marks.
        """
        keys: list[Expression] = []
        beginning: tuple[ast.Expr, list[Expression]] | None = None
        while of is not None and (step := self.step(of)) is not None:
            before, key, is_optional = step
            keys = [source.scalar(key), *keys]
            if is_optional:
                beginning = before, keys
            of = before
        return beginning

    def step(self, node: ast.Expr) -> tuple[ast.Expr, str, bool] | None:
        """The operand and the text of the last step of a path, and whether it has a question mark."""
        match node:
            case ast.Select(tests=False) if node not in self.checked.names:
                step = node.operand, node.field, node.optional
            case ast.Call(function="_[_]" | "_[?_]", args=[of, ast.Constant(value=str(key))]):
                step = of, key, node.function == "_[?_]"
            case _:
                return None
        return None if self.checked.types[step[0]].name == VARIABLES else step

    def library(
        self, node: ast.Call, name: str, args: list[Expression], nodes: list[ast.Expr]
    ) -> Expression:
        """A function of the library."""
        if name == "size":
            return source.call("len", args[0], kind=Kind.INT)
        if name == "dyn":
            return args[0]
        if name == "matches" and isinstance(nodes[1], ast.Constant):
            searched = compiled(nodes[1].value)
            if searched.instructions:
                raise Unwritten  # the exact form charges for it
            pattern = self.constant_named(searched)
            return source.call("found_in", "M", pattern, args[0], kind=Kind.BOOL)
        if name in {"startsWith", "endsWith"} and Kind.STRING in {args[0].kind, args[1].kind}:
            return source.method(args[0], name.lower(), args[1], kind=Kind.BOOL)
        if name == "contains" and args[0].kind is Kind.STRING and args[1].is_simple:
            return source.compare(args[1], "in", args[0])
        if name == "orValue":
            if not isinstance(nodes[1], ast.Constant) and args[1].source not in {"[]", "{}"}:
                raise Unwritten
            return source.call("or_value", *args)
        if name in {"ip", "or", "sum"}:
            raise Unwritten
        results = {overload.result.name for overload in functions().get(name, ())}
        kind = KINDS.get(results.pop(), Kind.ANY) if len(results) == 1 else Kind.ANY
        form = narrowed_name(name, node, self.checked)
        if name == "string" and form == name and args[0].kind is Kind.STRING:
            return args[0]
        called_as = self.constant_named(direct(form, len(args)))
        call = source.call(called_as.source, "M", *args, kind=kind)
        if name == "string" and form == name and args[0].is_local:
            return source.conditional(
                args[0].of_kind(Kind.STRING), source.is_of(args[0], Kind.STRING), call
            )
        return call

    def equality(self, node: ast.Call, *, negated: bool) -> Expression:
        """``a == b``, in Python's way where that is CEL's."""
        left, right = self.operands(node.args)
        if left.is_known and not right.is_known:
            left, right = right, left
        operator = ("==", "!=") if right.kind is Kind.STRING else ("is", "is not")
        known = (
            right.is_known and not left.is_known and type(right.value) in {str, bool, type(None)}
        )
        if known and right.kind is Kind.BOOL and not self.is_comparable(node):
            known = False
        if known or (left.kind is Kind.STRING and right.kind is Kind.STRING):
            return source.compare(left, operator[negated], right)
        if left.kind is Kind.INT and right.kind is Kind.INT:
            return source.compare(left, ("==", "!=")[negated], right)
        equal = source.call("equals", "M", left, right, kind=Kind.BOOL)
        return source.negation(equal) if negated else equal

    def is_comparable(self, node: ast.Call) -> bool:
        """Whether the operand that is compared with a boolean is never a value of a library's."""
        of: ast.Expr = next((arg for arg in node.args if not isinstance(arg, ast.Constant)), node)
        if self.checked.types[of].name == "bool":
            return True
        return self.is_decoded(of)

    def is_decoded(self, node: ast.Expr) -> bool:
        """Whether it is decoded JSON, and no whole variable, which tests give other values, too."""
        return self.checked.names.get(node) not in ROOTS and self.is_plain(node)

    def membership(self, node: ast.Call) -> Expression:
        """``a in b``."""
        within = node.args[1]
        if isinstance(within, ast.ListOf) and not within.items:
            return source.FALSE
        known = known_members(within, self.checked)
        if known is not None:
            item = self.value(node.args[0])
            is_hashed = item.kind is Kind.STRING or self.is_decoded(node.args[0])
            if is_hashed and isinstance(within, ast.ListOf) and all(map(_is_text, within.items)):
                # A text is equal to nothing but itself, here as there.
                texts = source.tuple_of([self.value(member) for member in within.items])
                return source.compare(item, "in", texts)
            return source.call("is_among", item, self.constant_named(known), kind=Kind.BOOL)
        return source.call("member", "M", *self.operands(node.args), kind=Kind.BOOL)


def _is_text(node: ast.Expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is str
