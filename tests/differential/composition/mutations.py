"""Faults to put into the generator: small wrong changes to its syntax trees.

They are the kinds that make verdicts wrong: ``and`` for ``or``, a dropped ``not``, a parenthesis
less, a kind narrowed too much, in the generator's own conditions and in the text that it writes.
They know no form by name, so that they need no change when a form is added.

What cannot be wrong is not made: a kind forgotten (``ANY`` for any other) or a proof left out makes
code only more general, and a parenthesis too many changes nothing. So a form is said to bind as
tightly as can be, never more loosely, and an operand to stand where everything may.
"""

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

PAYING: Final = re.compile(
    r"charge|spend|work\b|made\b|called\b|_turn\b|pay|price|free|straight|effects|quiet|bodies"
    r"|refuse|NotImplementedError"
)
"""In a statement of what an evaluation pays, or of what is refused: no verdict depends on it, and
tests of their own hold it (tests/webhook/rego/write/test_payment.py)."""

KINDS: Final = ("STRING", "INT", "BOOL", "LIST", "DICT", "SET", "NULL")

NARROWED: Final = {"ANY": ("STRING", "LIST", "INT")}

TEXTS: Final = (
    ("and for or", re.compile(r" or "), " and "),
    ("or for and", re.compile(r" and "), " or "),
    ("a dropped not", re.compile(r"\bis not\b"), "is"),
    ("a dropped not", re.compile(r"\bnot "), ""),
)

Change = Callable[[ast.AST], ast.AST | None]
"""Gives the changed node, which replaces the one it is given a copy of."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault in a module."""

    module: str
    line: int
    description: str
    source: str
    """The line as it is without the fault."""
    tree: Callable[[], ast.Module]
    """Makes the module's tree with the fault in it."""

    @property
    def name(self) -> str:
        """For a list of those that survive; lines move, their text seldom does."""
        return f"{self.module} | {self.description} | {self.source}"


def mutants(module: str, text: str) -> Iterator[Mutant]:
    """All mutants of a module's source."""
    tree = ast.parse(text)
    lines = text.splitlines()
    skipped = _skipped(tree)
    for at, node in enumerate(ast.walk(tree)):
        if id(node) in skipped or not hasattr(node, "lineno"):
            continue
        for description, change in _changes(node):
            source = lines[node.lineno - 1].strip()
            yield Mutant(
                module, node.lineno, description, source, partial(_changed, tree, at, change)
            )


def _changed(tree: ast.Module, at: int, change: Change) -> ast.Module:
    """A copy of the tree, with another node in place of the one of that number."""
    copied = copy.deepcopy(tree)
    target = next(one for number, one in enumerate(ast.walk(copied)) if number == at)
    replaced = _Replace(target, change(target)).visit(copied)
    assert isinstance(replaced, ast.Module)
    return ast.fix_missing_locations(replaced)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node is self._old:
            return self._new
        return self.generic_visit(node)


def _skipped(tree: ast.Module) -> set[int]:
    """Nodes in docstrings, annotations, assertions, and statements about what is paid."""
    found: set[int] = set()

    def leave_out(node: ast.AST | None) -> None:
        if node is not None:
            found.update(map(id, ast.walk(node)))

    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or isinstance(node, ast.Assert | ast.Raise)
            or (
                isinstance(node, ast.Expr | ast.Assign | ast.AugAssign)
                and PAYING.search(ast.unparse(node))
            )
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ):
            leave_out(node)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            leave_out(node.annotation)
        elif isinstance(node, ast.Call) and _called(node) in ("within", "_within"):
            leave_out(node.args[-1])
        elif isinstance(node, ast.FunctionDef):
            leave_out(node.returns)
            if PAYING.search(node.name):
                leave_out(node)
    return found


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        description = "or for and" if other is ast.Or else "and for or"
        yield description, lambda one: ast.BoolOp(other(), one.values)  # type: ignore[attr-defined]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "a dropped not", lambda one: one.operand  # type: ignore[attr-defined]
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.JoinedStr):
        yield from _formatted(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _texts(node.value)
    elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _kinds(node)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _calls(node: ast.Call) -> Iterator[tuple[str, Change]]:
    """``all_of`` for ``any_of``, and what a negation or a parenthesis is made with."""
    called = _called(node)
    swapped = {"all_of": "any_of", "any_of": "all_of", "all": "any", "any": "all"}.get(called)
    if swapped:
        description = f"{swapped} for {called}"

        def swap(one: ast.AST) -> ast.AST:
            assert isinstance(one, ast.Call)
            return ast.Call(ast.Name(swapped, ast.Load()), one.args, one.keywords)

        yield description, swap
    if called == "negation" and node.args:
        yield "a dropped not", lambda one: one.args[0]  # type: ignore[attr-defined]
    if called in ("within", "_within"):

        def anything(one: ast.AST) -> ast.AST:
            assert isinstance(one, ast.Call)
            return ast.Call(one.func, [*one.args[:-1], _attribute("Binds", "CONDITIONAL")], [])

        yield "a parenthesis less", anything


def _kinds(node: ast.Attribute | ast.Name) -> Iterator[tuple[str, Change]]:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    owner = getattr(node.value, "id", "") if isinstance(node, ast.Attribute) else ""
    if owner == "Binds" and name != "ATOM":
        yield "a parenthesis less", _renamed(node, "ATOM")
    if owner == "Kind" or (not owner and name in KINDS):
        for other in NARROWED.get(name, ("LIST" if name == "STRING" else "STRING",)):
            yield f"{other} for {name}", _renamed(node, other)


def _attribute(owner: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(owner, ast.Load()), name, ast.Load())


def _renamed(node: ast.Attribute | ast.Name, name: str) -> Change:
    if isinstance(node, ast.Name):
        return lambda _: ast.Name(name, ast.Load())
    return lambda one: ast.Attribute(one.value, name, ast.Load())  # type: ignore[attr-defined]


def _texts(text: str) -> Iterator[tuple[str, Change]]:
    for description, pattern, other in TEXTS:
        for found in pattern.finditer(text):
            changed = text[: found.start()] + other + text[found.end() :]
            yield description, lambda _, changed=changed: ast.Constant(changed)  # type: ignore[misc]
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        yield "a parenthesis less", lambda _: ast.Constant(text[1:-1])


def _formatted(node: ast.JoinedStr) -> Iterator[tuple[str, Change]]:
    """A text in parentheses, without them."""
    first, last = node.values[0], node.values[-1]
    if not (isinstance(first, ast.Constant) and isinstance(last, ast.Constant)):
        return
    if str(first.value).startswith("(") and str(last.value).endswith(")") and first is not last:

        def bare(one: ast.AST) -> ast.AST:
            assert isinstance(one, ast.JoinedStr)
            begin, end = one.values[0], one.values[-1]
            assert isinstance(begin, ast.Constant)
            assert isinstance(end, ast.Constant)
            begin.value, end.value = str(begin.value)[1:], str(end.value)[:-1]
            return one

        yield "a parenthesis less", bare
