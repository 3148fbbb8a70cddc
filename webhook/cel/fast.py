"""The fast form of an expression: a function of Python's own, exact whenever it returns.

It absorbs no errors: where one occurs it raises, whatever comes, and the exact form is asked
(:mod:`webhook.cel.exact`). So it may raise too often, and must never return what the exact form
would not. Sources are put together by :mod:`webhook.rego.write.expression` alone; names in them are
made here, and no text of a policy becomes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.environment import functions
from webhook.cel.exact import VARIABLES
from webhook.cel.library.all import direct
from webhook.cel.library.regex import compiled
from webhook.cel.narrowing import called
from webhook.cel.paths import may_nest, stored_in
from webhook.cel.run import access, arithmetic, equality, paced
from webhook.cel.syntax.ast import (
    Call,
    Constant,
    Fold,
    ListOf,
    MapOf,
    Name,
    Select,
    children,
    qualified,
)
from webhook.rego.write import expression as source
from webhook.rego.write.expression import Binds, Expression, Kind

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run
    from webhook.cel.syntax.ast import Expr

MAX_NODES: Final = 2_000
MAX_LOOPS: Final = 12
"""Loops within each other; CPython takes 20 blocks."""
MAX_INDENT: Final = 60
"""Blocks within each other; CPython takes 100 indentations."""

NAMESPACE: Final[dict[str, Any]] = {
    "__builtins__": {"len": len},
    "condition": access.condition,
    "item": access.item,
    "optional_item": access.optional_item,
    "unnested": access.unnested,
    "plain_item": paced.plain_item,
    "plain_optional_item": paced.plain_optional_item,
    "is_not": arithmetic.is_not,
    "negate": arithmetic.negate,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "modulo": arithmetic.modulo,
    "less": equality.less,
    "less_or_equal": equality.less_or_equal,
    "greater": equality.greater,
    "greater_or_equal": equality.greater_or_equal,
    "items": paced.items,
    "pairs": paced.pairs,
    "equals": paced.equals,
    "member": paced.member,
    "added": paced.added,
    "or_value": paced.or_value,
    "found_in": paced.found_in,
}
"""All that generated code is run with, constants apart."""

_OPERATORS: Final = {
    "_-_": "subtract",
    "_*_": "multiply",
    "_/_": "divide",
    "_%_": "modulo",
    "_[_]": "item",
    "_[?_]": "optional_item",
    "_<_": "less",
    "_<=_": "less_or_equal",
    "_>_": "greater",
    "_>=_": "greater_or_equal",
}
KNOWN: Final = ("anyObject", "params")
"""Composed variables that are known before anything is evaluated, and decoded JSON all through."""

_JSON: Final = frozenset({".object", ".oldObject", ".params", ".request", ".namespaceObject"})
"""Variables that are decoded JSON all through."""

_ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_KINDS: Final = {"bool": Kind.BOOL, "string": Kind.STRING}


class _UnwrittenError(Exception):
    """A form that only the exact form has."""


def fast_source(checked: Checked) -> tuple[str, dict[str, Any]] | None:
    """The text of the fast form and the constants that it names; None where there is none."""
    writer = _Writer(checked)
    try:
        return writer.write(checked.parsed.root), writer.constants
    except _UnwrittenError:
        return None


def fast_form(checked: Checked) -> Run | None:
    """The fast form, compiled; None where there is none."""
    written = fast_source(checked)
    if written is None:
        return None
    text, constants = written
    namespace = {**NAMESPACE, **constants}
    try:
        code = compile(text, "<expression>", "exec")
    except (MemoryError, RecursionError, SyntaxError):  # larger than CPython compiles
        return None
    exec(code, namespace)  # noqa: S102  # of generated names and repr() alone
    run: Run = namespace["f"]
    return run


def _within_path(function: str, operand: Expr) -> str:
    """What takes an item: an optional that lies in the middle of a path is left to the exact form."""
    return function if stored_in(operand) is None else f"plain_{function}"


def _cost(node: Expr) -> int:
    """The nodes of an expression, those of loops within it counted once."""
    count, waiting = 0, [node]
    while waiting:
        count += 1
        waiting.extend(children(waiting.pop()))
    return count


class _Writer:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0
        self.names = 0
        self.constants: dict[str, Any] = {}
        self.roots: dict[str, Expression] = {}
        self.scopes: list[dict[str, Expression]] = []

    def write(self, root: Expr) -> str:
        cost = _cost(root)
        if cost > MAX_NODES:
            raise _UnwrittenError
        value = self.value(root)
        self.line(f"return {value.source}")
        head = ["def f(E, M):", f"    M.left -= {cost}"]
        head += ["    if M.left < M.next_look:", "        M.check()"]
        head += [f"    {local.source} = E[{name!r}]" for name, local in self.roots.items()]
        return "\n".join([*head, *self.lines, ""])

    # --- lines --------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        if self.indent > MAX_INDENT:
            raise _UnwrittenError
        self.lines.append("    " * self.indent + text)

    def new(self, kind: Kind = Kind.ANY) -> Expression:
        self.names += 1
        return source.name(f"v{self.names}", kind)

    def assign(self, local: Expression, value: Expression) -> None:
        self.line(f"{local.source} = {value.within(Binds.CONDITIONAL)}")

    def held(self, node: Expr) -> Expression:
        """A value that may be named after other lines have been written."""
        value = self.value(node)
        if value.is_simple:
            return value
        local = self.new(value.kind)
        self.assign(local, value)
        return local

    # --- nodes --------------------------------------------------------------------------------

    def value(self, node: Expr) -> Expression:
        match node:
            case Constant():
                return self.constant(node.value)
            case Name():
                return self.name(self.checked.names[node])
            case Select():
                return self.select(node)
            case Call():
                return self.call(node)
            case ListOf() if not node.optional:
                return source.list_of(self.operands(node.items))
            case MapOf():
                return self.map_of(node)
            case Fold():
                return self.fold(node)
        raise _UnwrittenError

    def constant(self, value: Any) -> Expression:
        if type(value) in {str, bool, int, type(None)}:
            return source.scalar(value)
        return self.constant_named(value)

    def constant_named(self, value: Any) -> Expression:
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return source.name(name)

    def operands(self, nodes: list[Expr]) -> list[Expression]:
        """Values in the order of evaluation, whatever lines each of them needs."""
        found: list[Expression] = []
        for node in nodes:
            before = len(self.lines)
            value = self.value(node)
            if len(self.lines) > before:
                # What was found before is computed before these lines.
                late = self.lines[before:]
                del self.lines[before:]
                found = [self.kept(one) for one in found]
                self.lines += late
            found.append(value)
        return found

    def kept(self, value: Expression) -> Expression:
        if value.is_simple:
            return value
        local = self.new(value.kind)
        self.assign(local, value)
        return local

    def name(self, meaning: str) -> Expression:
        if meaning.startswith(":"):
            raise _UnwrittenError
        if not meaning.startswith("."):
            for scope in reversed(self.scopes):
                if meaning in scope:
                    return scope[meaning]
        name = meaning.removeprefix(".")
        if name not in self.roots:
            self.roots[name] = self.new()
        return self.roots[name]

    def select(self, node: Select) -> Expression:
        meaning = self.checked.names.get(node)
        if meaning is not None:
            return self.name(meaning)
        field = source.scalar(node.field)
        if self.checked.types[node.operand].name == VARIABLES:
            if node.field in KNOWN:
                value = self.name(f".variables.{node.field}")
            else:
                value = source.item(self.value(node.operand), field.source)
            if not node.tests:
                return value
            self.assign(self.new(), value)  # it is there, unless it cannot be computed
            return source.TRUE
        operand = self.value(node.operand)
        if node.tests:  # nothing but a dict has keys: all else is left to the exact form
            return source.compare(field, "in", source.method(operand, "keys"))
        if node.optional:
            return source.call(_within_path("optional_item", node.operand), operand, field)
        return source.item(operand, field.source)

    def map_of(self, node: MapOf) -> Expression:
        keys = [entry.key for entry in node.entries]
        texts = [key.value for key in keys if isinstance(key, Constant) and type(key.value) is str]
        if len(set(texts)) < len(keys) or any(entry.optional for entry in node.entries):
            raise _UnwrittenError
        values = self.operands([entry.value for entry in node.entries])
        return source.dict_of(zip(map(source.scalar, texts), values, strict=True))

    # --- conditions ---------------------------------------------------------------------------

    def condition(self, node: Expr) -> Expression:
        """A value that is true or false."""
        value = self.value(node)
        return value if value.kind is Kind.BOOL else source.call("condition", value, kind=Kind.BOOL)

    def logic(self, node: Call) -> Expression:
        ends = node.function == "_||_"
        local: Expression | None = None
        tests: list[Expression] = []
        indent = self.indent
        for arg in node.args:
            before = len(self.lines)
            self.indent += 1
            test = self.condition(arg)
            self.indent -= 1
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
        found = self.joined(tests, ends)
        if local is None:
            return found
        self.assign(local, found)
        self.indent = indent
        return local

    def joined(self, tests: list[Expression], ends: bool) -> Expression:
        found = source.any_of(tests) if ends else source.all_of(tests)
        return found.forgetting().of_kind(Kind.BOOL)

    def conditional(self, node: Call) -> Expression:
        test = self.condition(node.args[0])
        local = self.new()
        self.line(f"if {test.source}:")
        self.indent += 1
        then = self.branch(node.args[1])
        self.assign(local, then)
        self.indent -= 1
        self.line("else:")
        self.indent += 1
        other = self.branch(node.args[2])
        self.assign(local, other)
        self.indent -= 1
        return local.of_kind(then.kind) if then.kind is other.kind else local

    def branch(self, node: Expr) -> Expression:
        """One of a conditional."""
        value = self.value(node)
        if may_nest(node, self.checked):
            return source.call("unnested", value)
        return value

    # --- calls --------------------------------------------------------------------------------

    def call(self, node: Call) -> Expression:
        function = node.function
        if function in {"_&&_", "_||_"}:
            return self.logic(node)
        if function == "_?_:_":
            return self.conditional(node)
        found = self.checked.functions.get(node)
        nodes = list(node.args)
        if node.target is not None and (found is None or found == function):
            nodes.insert(0, node.target)
        if function in {"_==_", "_!=_"}:
            return self.equality(node, negated=function == "_!=_")
        if function == "@in":
            return self.membership(node)
        args = self.operands(nodes)
        if function == "!_":
            if args[0].kind is Kind.BOOL:
                return source.negation(args[0])
            return source.call("is_not", args[0], kind=Kind.BOOL)
        if function == "-_":
            return source.call("negate", args[0])
        if function == "_+_":
            kind = Kind.STRING if args[0].kind is Kind.STRING else Kind.ANY
            return source.call("added", "M", *args, kind=kind)
        if function in _ORDERS and {one.kind for one in args} == {Kind.INT}:
            return source.compare(args[0], function.strip("_"), args[1])
        if function in {"_[_]", "_[?_]"}:
            return source.call(_within_path(_OPERATORS[function], nodes[0]), *args)
        if function in _OPERATORS:
            kind = Kind.BOOL if function in _ORDERS else Kind.ANY
            return source.call(_OPERATORS[function], *args, kind=kind)
        return self.library(node, found or function, args, nodes)

    def library(
        self, node: Call, name: str, args: list[Expression], nodes: list[Expr]
    ) -> Expression:
        if name == "size":
            return source.call("len", args[0], kind=Kind.INT)
        if name == "dyn":
            return args[0]
        if name == "matches" and isinstance(nodes[1], Constant):
            pattern = self.constant_named(compiled(nodes[1].value))
            return source.call("found_in", "M", pattern, args[0], kind=Kind.BOOL)
        if name in {"startsWith", "endsWith"} and args[1].kind is Kind.STRING:
            return source.method(args[0], name.lower(), args[1], kind=Kind.BOOL)
        if name == "orValue":
            if not isinstance(nodes[1], Constant) and args[1].source not in {"[]", "{}"}:
                raise _UnwrittenError
            return source.call("or_value", *args)
        if name in {"ip", "or", "sum"}:
            raise _UnwrittenError
        results = {overload.result.name for overload in functions().get(name, ())}
        kind = _KINDS.get(results.pop(), Kind.ANY) if len(results) == 1 else Kind.ANY
        form = called(name, node, self.checked)
        if name == "string" and form == name and args[0].kind is Kind.STRING:
            return args[0]
        called_as = self.constant_named(direct(form, len(args)))
        return source.call(called_as.source, "M", *args, kind=kind)

    def equality(self, node: Call, *, negated: bool) -> Expression:
        left, right = self.operands(node.args)
        if left.is_known and not right.is_known:
            left, right = right, left
        operator = ("==", "!=") if right.kind is Kind.STRING else ("is", "is not")
        known = (
            right.is_known and not left.is_known and type(right.value) in {str, bool, type(None)}
        )
        if known and right.kind is Kind.BOOL and not self.is_json(node):
            known = False
        if known or (left.kind is Kind.STRING and right.kind is Kind.STRING):
            return source.compare(left, operator[negated], right)
        if left.kind is Kind.INT and right.kind is Kind.INT:
            return source.compare(left, ("==", "!=")[negated], right)
        found = source.call("equals", "M", left, right, kind=Kind.BOOL)
        return source.negation(found) if negated else found

    def is_json(self, node: Call) -> bool:
        """Whether what is compared with a constant is never a value of a library's."""
        of: Expr = next((one for one in node.args if not isinstance(one, Constant)), node)
        if self.checked.types[of].name == "bool":
            return True
        if not isinstance(of, Select):
            return False
        path = qualified(of) or ""
        if path.startswith(tuple(f"variables.{name}." for name in KNOWN)):
            return True
        while isinstance(of, Select) and of not in self.checked.names:
            of = of.operand
        return self.checked.names.get(of) in _JSON

    def membership(self, node: Call) -> Expression:
        within = node.args[1]
        if isinstance(within, ListOf) and all(
            isinstance(item, Constant) and type(item.value) is str for item in within.items
        ):
            # A text is equal to nothing but itself, here as there.
            texts = source.tuple_of([self.value(item) for item in within.items])
            return source.compare(self.value(node.args[0]), "in", texts)
        return source.call("member", "M", *self.operands(node.args), kind=Kind.BOOL)

    # --- macros -------------------------------------------------------------------------------

    def fold(self, node: Fold) -> Expression:
        if node.kind in {"map_value", "map_entry"} or self.loops >= MAX_LOOPS:
            raise _UnwrittenError
        range_ = self.held(node.range)
        cost = 2 + _cost(node.body) + (0 if node.test is None else _cost(node.test))
        result = self.new(Kind.BOOL if node.kind in {"all", "exists"} else Kind.ANY)
        begin = {"all": "True", "exists": "False", "exists_one": "0"}.get(node.kind, "[]")
        self.line(f"{result.source} = {begin}")
        first = self.new()
        targets, scope = first.source, {node.first: first}
        if node.second is not None:
            second = scope[node.second] = self.new()
            targets += f", {second.source}"
        goes = "items" if node.second is None else "pairs"
        self.line(f"for {targets} in {goes}(M, {range_.source}, {cost}):")
        self.scopes.append(scope)
        self.loops += 1
        self.indent += 1
        indent = self.indent
        self.turn(node, result)
        self.indent = indent - 1
        self.loops -= 1
        self.scopes.pop()
        if node.kind == "exists_one":
            return source.compare(result, "==", "1")
        return result.of_kind(Kind.LIST) if result.kind is Kind.ANY else result

    def turn(self, node: Fold, result: Expression) -> None:
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
