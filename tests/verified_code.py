"""Proof that generated code reads only what it has assigned.

Python finds a name that has no value when it is read, which for a policy is too late. What is
checked here of every function, before CPython compiles it: each name that is read has been assigned
on every path that leads there (an operand of ``and``, ``or`` or of a conditional expression is a
path as any other), only names occur that the code defines or is run with, and nothing but the few
kinds of statements, expressions and attributes that the generator means to write.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from webhook.rego.write import generate
from webhook.rego.write.unit import Unit

Names = frozenset[str]

ATTRIBUTES: Final = frozenset(
    [
        "append",
        "charge",
        "check",
        "difference",
        "endswith",
        "found_in",
        "get",
        "items",
        "keys",
        "left",
        "next_check",
        "next_look",
        "pay",
        "print_",
        "removeprefix",
        "bit_length",
        "isprintable",
        "removesuffix",
        "replace",
        "setdefault",
        # of groups
        "add_item",
        "add_member",
        "array_of",
        "set_of",
        "startswith",
        "value",
        "values",
    ]
)
"""All that generated code may read of an object."""


class UnverifiedError(AssertionError):
    """Generated code that is not as it must be: what is wrong, and the function."""


@dataclass(frozen=True, slots=True)
class After:
    """The names that have a value after an expression, by its outcome."""

    true: Names
    false: Names

    @property
    def always(self) -> Names:
        """Returns the names with a value in both cases."""
        return self.true & self.false


class _Never(frozenset[str]):
    """The names after what is never passed: all of them."""

    __slots__ = ()


NEVER: Final = _Never()


def _either(one: Names, other: Names) -> Names:
    """Returns the names with a value after either of two paths."""
    if one is NEVER:
        return other
    return one if other is NEVER else one & other


@dataclass(frozen=True, slots=True)
class Scope:
    """A function's own names, and the names assigned by enclosing functions."""

    known: Names
    """The names that can be read at any time: those of the module and of enclosing functions."""
    own: Names = frozenset()
    """The names that it assigns itself, with those of enclosing functions that are running."""


def verify(source: str, given: Iterable[str]) -> None:
    """Raise :class:`UnverifiedError` unless the program's source is as it must be.

    ``given`` are the names that it is run with.
    """
    statements = ast.parse(source).body
    later = frozenset(_stored(statements))
    scope = Scope(known=frozenset(given), own=later)
    assigned: Names = frozenset()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            # It is called when all that follows it in the module has been run.
            _function(statement, scope.known | later)
            assigned |= {statement.name}
        else:
            assigned = _statement(statement, scope, assigned)


def _fault(node: ast.AST, message: str) -> UnverifiedError:
    return UnverifiedError(f"{message}: {ast.unparse(node)}")


def _stored(statements: Iterable[ast.AST]) -> set[str]:
    """Names that these statements give values to, inner functions left out."""
    found: set[str] = set()
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif type(node) not in _WITHIN_NOTHING:
            # Most of the time went into `ast.iter_child_nodes`, over all that holds nothing.
            for field in node._fields:
                child = getattr(node, field, None)
                if type(child) is list:
                    waiting += [item for item in child if isinstance(item, ast.AST)]
                elif isinstance(child, ast.AST):
                    waiting.append(child)
    return found


_WITHIN_NOTHING: Final = frozenset(
    {ast.Constant, ast.Load, ast.Store, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue}
)
"""Syntax nodes without names that could be stored."""


def _function(node: ast.FunctionDef, known: Names) -> None:
    arguments = node.args
    plain = not (
        arguments.posonlyargs
        or arguments.kwonlyargs
        or arguments.vararg
        or arguments.kwarg
        or arguments.defaults
        or node.decorator_list
    )
    if not plain:
        raise _fault(node, "parameters of another kind")
    params = frozenset(argument.arg for argument in arguments.args)
    own = frozenset(_stored(node.body)) | params
    if hidden := own & known:
        raise _fault(node, f"hides {sorted(hidden)}")
    _block(node.body, Scope(known, own), params)


def _nonlocals(statements: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Nonlocal):
            found.update(statement.names)
    return found


def _block(statements: list[ast.stmt], scope: Scope, assigned: Names) -> Names:
    for statement in statements:
        assigned = _statement(statement, scope, assigned)
    return assigned


def _statement(node: ast.stmt, scope: Scope, assigned: Names) -> Names:
    write = _STATEMENTS.get(type(node))
    if write is None:
        raise _fault(node, f"a statement of another kind ({type(node).__name__})")
    if assigned is NEVER:  # this path is not reached
        write(node, scope, scope.own)
        return NEVER
    return write(node, scope, assigned)


def _assign(node: ast.Assign, scope: Scope, assigned: Names) -> Names:
    assigned = _value(node.value, scope, assigned)
    for target in node.targets:
        assigned = _target(target, scope, assigned)
    return assigned


def _target(node: ast.expr, scope: Scope, assigned: Names) -> Names:
    if isinstance(node, ast.Name):
        return assigned | {node.id}
    if isinstance(node, ast.Tuple):
        for item in node.elts:
            assigned = _target(item, scope, assigned)
        return assigned
    if isinstance(node, ast.Subscript):
        return _value(node.slice, scope, _value(node.value, scope, assigned))
    raise _fault(node, "assigned to")


def _augmented(node: ast.AugAssign, scope: Scope, assigned: Names) -> Names:
    target = node.target
    if not (isinstance(target, ast.Attribute) and target.attr == "left"):
        raise _fault(node, "assigned to")
    assigned = _value(target.value, scope, assigned)
    return _value(node.value, scope, assigned)


def _expression(node: ast.Expr, scope: Scope, assigned: Names) -> Names:
    return _value(node.value, scope, assigned)


def _if(node: ast.If, scope: Scope, assigned: Names) -> Names:
    after = _test(node.test, scope, assigned)
    then = _block(node.body, scope, after.true)
    return _either(then, _block(node.orelse, scope, after.false))


def _for(node: ast.For, scope: Scope, assigned: Names) -> Names:
    if node.orelse:
        raise _fault(node, "a loop with else")
    before = _value(node.iter, scope, assigned)
    _block(node.body, scope, _target(node.target, scope, before))
    return before  # there may be nothing to go through


def _leave(node: ast.stmt, scope: Scope, assigned: Names) -> Names:
    del node, scope, assigned
    return NEVER


def _return(node: ast.Return, scope: Scope, assigned: Names) -> Names:
    if node.value is not None:
        _value(node.value, scope, assigned)
    return NEVER


def _try(node: ast.Try, scope: Scope, assigned: Names) -> Names:
    if node.orelse or node.finalbody:
        raise _fault(node, "try with else or finally")
    after = _block(node.body, scope, assigned)
    for handler in node.handlers:
        if handler.name or not isinstance(handler.type, ast.Name):
            raise _fault(node, "except of another kind")
        _value(handler.type, scope, assigned)
        after = _either(after, _block(handler.body, scope, assigned))
    return after


def _inner(node: ast.FunctionDef, scope: Scope, assigned: Names) -> Names:
    """A function in a function: it is called after its definition, and never leaves it."""
    shared = _nonlocals(node.body)
    if not shared <= scope.own | scope.known:
        raise _fault(node, f"nonlocal {sorted(shared - scope.own)}")
    own = frozenset(_stored(node.body) - shared)
    # Shared names keep their values from outside, as do the outer function's others.
    inner = Scope(scope.known | scope.own, own | scope.own)
    body = [statement for statement in node.body if not isinstance(statement, ast.Nonlocal)]
    _block(body, inner, assigned - own)
    return assigned | {node.name}


def _pass(node: ast.stmt, scope: Scope, assigned: Names) -> Names:
    del node, scope
    return assigned


_STATEMENTS: Final[dict[type, Callable[[Any, Scope, Names], Names]]] = {
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Break: _leave,
    ast.Continue: _leave,
    ast.Expr: _expression,
    ast.For: _for,
    ast.FunctionDef: _inner,
    ast.If: _if,
    ast.Pass: _pass,
    ast.Return: _return,
    ast.Try: _try,
}


def _value(node: ast.expr, scope: Scope, assigned: Names) -> Names:
    return _test(node, scope, assigned).always


def _test(node: ast.expr, scope: Scope, assigned: Names) -> After:
    write = _EXPRESSIONS.get(type(node))
    if write is None:
        raise _fault(node, f"an expression of another kind ({type(node).__name__})")
    return write(node, scope, assigned)


def _name(node: ast.Name, scope: Scope, assigned: Names) -> After:
    if node.id in scope.own:
        if node.id not in assigned:
            raise _fault(node, "may be read before it is assigned")
    elif node.id not in scope.known:
        raise _fault(node, "an unknown name")
    return After(assigned, assigned)


def _walrus(node: ast.NamedExpr, scope: Scope, assigned: Names) -> After:
    after = _value(node.value, scope, assigned) | {node.target.id}
    return After(after, after)


def _logic(node: ast.BoolOp, scope: Scope, assigned: Names) -> After:
    both = isinstance(node.op, ast.And)
    after = _test(node.values[0], scope, assigned)
    true, false = after.true, after.false
    for value in node.values[1:]:
        after = _test(value, scope, true if both else false)
        if both:
            true, false = after.true, false & after.false
        else:
            true, false = true & after.true, after.false
    return After(true, false)


def _not(node: ast.UnaryOp, scope: Scope, assigned: Names) -> After:
    after = _test(node.operand, scope, assigned)
    if isinstance(node.op, ast.Not):
        return After(after.false, after.true)
    if not isinstance(node.op, ast.USub):
        raise _fault(node, "an operator of another kind")
    return After(after.always, after.always)


def _conditional(node: ast.IfExp, scope: Scope, assigned: Names) -> After:
    test = _test(node.test, scope, assigned)
    then = _test(node.body, scope, test.true)
    other = _test(node.orelse, scope, test.false)
    return After(then.true & other.true, then.false & other.false)


def _compare(node: ast.Compare, scope: Scope, assigned: Names) -> After:
    if len(node.ops) > 1:
        raise _fault(node, "a chain of comparisons")
    return _sequence([node.left, *node.comparators], scope, assigned)


def _call(node: ast.Call, scope: Scope, assigned: Names) -> After:
    if any(keyword.arg is None for keyword in node.keywords):
        raise _fault(node, "operands of another kind")
    values = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
    return _sequence(values, scope, assigned)


def _sequence(nodes: Iterable[ast.expr], scope: Scope, assigned: Names) -> After:
    for node in nodes:
        assigned = _value(node, scope, assigned)
    return After(assigned, assigned)


def _attribute(node: ast.Attribute, scope: Scope, assigned: Names) -> After:
    if node.attr not in ATTRIBUTES:
        raise _fault(node, "an attribute of another kind")
    return _sequence([node.value], scope, assigned)


def _constant(node: ast.Constant, scope: Scope, assigned: Names) -> After:
    del scope
    if type(node.value) not in (str, int, float, bool, type(None)):
        raise _fault(node, "a constant of another kind")
    return After(assigned, assigned)


def _dict(node: ast.Dict, scope: Scope, assigned: Names) -> After:
    keys = [key for key in node.keys if key is not None]
    if len(keys) < len(node.keys):
        raise _fault(node, "an object of another kind")
    return _sequence([*keys, *node.values], scope, assigned)


def _slice(node: ast.Slice, scope: Scope, assigned: Names) -> After:
    parts = (node.lower, node.upper, node.step)
    return _sequence([part for part in parts if part is not None], scope, assigned)


def _formatted(node: ast.FormattedValue, scope: Scope, assigned: Names) -> After:
    if node.conversion != -1 or node.format_spec is not None:
        raise _fault(node, "a format of another kind")
    return _sequence([node.value], scope, assigned)


_EXPRESSIONS: Final[dict[type, Callable[[Any, Scope, Names], After]]] = {
    ast.Attribute: _attribute,
    ast.BinOp: lambda node, *at: _sequence([node.left, node.right], *at),
    ast.BoolOp: _logic,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.FormattedValue: _formatted,
    ast.IfExp: _conditional,
    ast.JoinedStr: lambda node, *at: _sequence(node.values, *at),
    ast.List: lambda node, *at: _sequence(node.elts, *at),
    ast.Name: _name,
    ast.NamedExpr: _walrus,
    ast.Slice: _slice,
    ast.Subscript: lambda node, *at: _sequence([node.value, node.slice], *at),
    ast.Tuple: lambda node, *at: _sequence(node.elts, *at),
    ast.UnaryOp: _not,
}


def install() -> None:
    """Verify all that is generated from here on in this process."""
    parts_of = generate.parts_of
    if parts_of.__name__ == "verified":
        return
    seen: set[int] = set()

    def verified(unit: Unit) -> list[str]:
        parts = parts_of(unit)
        source = "\n".join(parts)
        if hash(source) not in seen:
            seen.add(hash(source))
            given = {*generate.NAMESPACE, *generate.NAMESPACE["__builtins__"], "L"}
            verify(source, {*given, *unit.used_builtins.values(), *unit.slow_builtins.values()})
        return parts

    generate.parts_of = verified
