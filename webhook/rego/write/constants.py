"""Terms whose value is known while code is written, and their consequences.

Constants of the policy are always known. A constraint's parameters are known if code is written for
it alone (:func:`bind_parameters`), and so are terms that depend only on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.registry import BUILTINS, Builtin
from webhook.rego.check import ir
from webhook.rego.check.variables import every_literal, walk, walk_body
from webhook.rego.run.runtime import MISSING, index
from webhook.rego.run.values import UNDEFINED, RegoSet, Value, key, make_object, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.rego.check.ir import Lit, Rule, Term

PARAMETERS = "parameters"

PARTS_MAX: Final = 10_000
"""The most values in a collection made of known variables. The evaluation makes larger collections,
within its limits. A collection written out in the policy is not shortened.
"""


class NeverHolds(Exception):
    """The part that is being written can have no solution: the rest of its body is not written."""


def static(term: Term, known: Callable[[str], Value]) -> Value:
    """Returns the term's value, UNDEFINED included; MISSING where only an evaluation knows it.

    ``known`` gives the value of a variable, or MISSING.
    """
    if isinstance(term, ir.Const):
        return term.value
    if isinstance(term, ir.Var):
        return known(term.name)
    if isinstance(term, ir.Ref):
        return _followed(static(term.head, known), term.path, known)
    if isinstance(term, (ir.Array, ir.Set)):
        items = _all(term.items, known)
        if items is None or _is_large(items):
            return MISSING
        return items if isinstance(term, ir.Array) else RegoSet(items)
    if isinstance(term, ir.Object):
        names = _all((name for name, _ in term.items), known)
        items = _all((item for _, item in term.items), known)
        if names is None or items is None or _is_large([*names, *items]):
            return MISSING
        if len(set(map(key, names))) < len(names):
            return MISSING
        return make_object(zip(names, items, strict=True))
    return MISSING


def _is_large(value: Value) -> bool:
    """Whether a value has too many parts to be written; naming another twice doubles them."""
    return any(count > PARTS_MAX for count, _ in enumerate(parts(value), 1))


def _followed(value: Value, path: list[Term], known: Callable[[str], Value]) -> Value:
    if value is MISSING:
        return MISSING
    for part in path:
        name = static(part, known)
        if name is MISSING or name is UNDEFINED:
            return MISSING
        value = index(value, name)
        if value is UNDEFINED:
            return value
    return value


def _all(terms: Iterable[Term], known: Callable[[str], Value]) -> list[Value] | None:
    values = []
    for term in terms:
        value = static(term, known)
        if value is MISSING or value is UNDEFINED:
            return None
        values.append(value)
    return values


def bind_parameters(rules: Iterable[Rule], parameters: Value) -> bool:
    """Replaces ``input.parameters`` by the value; False if a modifier may replace input.

    The rules are changed in place. Terms that read the whole ``input`` stay.
    """
    branches = [branch for rule in rules for branch in rule.branches()]
    for branch in branches:
        for lit in _literals(branch):
            if any(modifier.kind == "input" for modifier in lit.withs):
                return False
    for branch in branches:
        for lit in _literals(branch):
            _bind_operand(lit, parameters)
        for term in _terms(branch):
            _bind_reference(term, parameters)
    return True


def _literals(rule: Rule) -> Iterator[Lit]:
    yield from every_literal(rule.body)
    for term in _terms(rule):
        if isinstance(term, ir.Comprehension):
            yield from every_literal(term.body)


def _terms(rule: Rule) -> Iterator[Term]:
    for term in (*rule.rest, *(rule.args or ()), rule.key, rule.value):
        if term is not None:
            yield from walk(term)
    yield from walk_body(rule.body)


def _bind_reference(term: Term, parameters: Value) -> None:
    if isinstance(term, ir.Ref) and is_of_parameters(term):
        term.head = ir.Const(parameters)
        term.path = term.path[1:]


def _bind_operand(lit: Lit, parameters: Value) -> None:
    if isinstance(lit, ir.Call) and gets_parameters(lit):
        lit.args[0] = ir.Const({PARAMETERS: parameters})


def is_of_parameters(ref: ir.Ref) -> bool:
    """Whether the reference begins with ``input.parameters``."""
    first = ref.path[0] if ref.path else None
    return is_input(ref.head) and isinstance(first, ir.Const) and first.value == PARAMETERS


def gets_parameters(call: ir.Call) -> bool:
    """Whether this is ``object.get(input, "parameters", {})``, which policies write for the same."""
    if call.name != "object.get" or not is_input(call.args[0]):
        return False
    name = call.args[1]
    if not isinstance(name, ir.Const):
        return False
    step = name.value[0] if type(name.value) is list and name.value else name.value
    return type(step) is str and step == PARAMETERS


def is_input(term: Any) -> bool:
    """Whether a term is the whole input."""
    return isinstance(term, ir.Var) and term.name == "input"


def is_computable(builtin: Builtin) -> bool:
    """Whether a call with known operands may be answered while code is written."""
    plain = builtin.deterministic and not builtin.relation and builtin.result is not None
    # A caller's own built-in may use the caller's services.
    return plain and BUILTINS.get(builtin.name) is builtin
