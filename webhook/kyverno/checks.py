"""Converts a rule of a ClusterPolicy to conditions and validations in CEL.

A pattern, conditions of deny, and ``foreach`` over lists become one expression. Source: Kyverno
1.19: pkg/engine/handlers/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import object_of, objects_of
from webhook.cel.check.types import DYN
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.kyverno.conditions import conditions_of, term_of
from webhook.kyverno.jmespath import parsed
from webhook.kyverno.library import kyverno_functions
from webhook.kyverno.patterns import Unwritable, pattern_of
from webhook.kyverno.pod_security import security_validations
from webhook.kyverno.queries import Queries, Term, both, joined

if TYPE_CHECKING:
    from webhook.api.shapes import Json

_LISTS: Final = frozenset(
    ("containers", "ephemeralContainers", "initContainers", "rules", "subjects", "volumes")
)
"""List fields of builtin kinds. Other fields may be single objects."""

_NESTED_MAX: Final = 5
_OF_FOREACH: Final = frozenset(
    ("list", "elementScope", "preconditions", "pattern", "anyPattern", "deny", "foreach", "context")
)


def _check_expressions(cel: Json, expressions: list[Json]) -> None:
    """Raises :class:`Unwritable` for what Kubernetes' CEL has not, and policies in CEL have.

    Kyverno compiles such a rule as a ValidatingAdmissionPolicy, and denies all objects if it cannot.
    """
    types = {str(variable.get("name")): DYN for variable in objects_of(cel.get("variables"))}
    base = admission(types, params=False, authorizer=True)
    of_any = {"orValue": kyverno_functions(namespaced=False)["orValue"]}
    environment = replace(base, functions={**base.functions, **of_any})
    for at, expression in enumerate(expressions):
        try:
            checked_expression(str(expression.get("expression")), environment)
        except CompileError as error:
            why = error.problems[0].message
            where = f"validate.cel.expressions[{at}].expression"
            raise Unwritable(f"{where}: Kyverno cannot compile it, either: {why}") from None


class Check(NamedTuple):
    """A condition that must hold, and its precondition; "" holds always."""

    held: str
    condition: str = ""


def validations_of(validate: Json, queries: Queries) -> tuple[list[str], list[Json]]:
    """Returns preconditions of the rule, and the conditions that must hold.

    Raises :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    if cel := object_of(validate.get("cel")):
        if cel.get("paramKind") or cel.get("paramRef"):
            raise Unwritable("validate.cel.paramKind")
        expressions = cel.get("expressions")
        if type(expressions) is not list or objects_of(expressions) != expressions:
            raise Unwritable("validate.cel.expressions: it is not a list of objects")
        _check_expressions(cel, expressions)
        message = message_of(validate, queries)
        return [], [
            {
                **expression,
                **(
                    {}
                    if expression.get("message") or expression.get("messageExpression")
                    else message
                ),
            }
            for expression in expressions
        ]
    if security := object_of(validate.get("podSecurity")):
        message = message_of(validate, queries)
        if "messageExpression" in message:
            raise Unwritable("validate.message has variables")
        return [], security_validations(security, message.get("message", ""))
    if entries := objects_of(validate.get("foreach")):
        check = _all_of(entries, "validate.foreach", queries)
    else:
        check = _check(validate, "validate", queries, "object")
    conditions = [check.condition] if check.condition else []
    return conditions, [{"expression": check.held, **message_of(validate, queries)}]


def message_of(validate: Json, queries: Queries) -> Json:
    """Returns the message or messageExpression of a rule; empty if it has none.

    Raises :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    message = validate.get("message")
    if type(message) is not str:
        return {}
    if "{{" not in message:
        return {"message": message.strip()}
    try:
        term = term_of(message.strip(), queries)
        # The value of a single variable is of any type, and a message is a text.
        return {"messageExpression": (term if term.kind == "string" else joined([term])).loose}
    except Unwritable as why:
        raise Unwritable(f"validate.message: {why}") from None


def _check(condition: Json, where: str, queries: Queries, at: str) -> Check:
    """Writes the check of a pattern or of conditions."""
    if pattern := object_of(condition.get("pattern")):
        held = pattern_of(pattern, at)
        return Check(held.expression, both(*(f"({part})" for part in held.conditions)))
    if patterns := objects_of(condition.get("anyPattern")):
        return _any_pattern(patterns, at)
    deny = condition.get("deny")
    if type(deny) is dict:
        conditions = deny.get("conditions")
        if not conditions:
            return Check("false")
        return Check(f"!({conditions_of(conditions, _of(where, 'deny.conditions'), queries)})")
    unknown = sorted(condition.keys() - _OF_FOREACH - {"message", "failureAction"})
    raise Unwritable(_of(where, unknown[0] if unknown else "nothing is asked"))


def _of(where: str, name: str) -> str:
    return name if where == "validate" and name != "manifests" else f"{where}.{name}"


def _any_pattern(patterns: list[Json], at: str) -> Check:
    """Requires one of the patterns. The rule is skipped if each pattern is skipped."""
    every = [pattern_of(pattern, at) for pattern in patterns]
    groups = [both(*(f"({condition})" for condition in each.conditions)) for each in every]
    held = [
        f"({both(condition, f'({check.expression})')})"
        for check, condition in zip(every, groups, strict=True)
    ]
    some = "" if "" in groups else " || ".join(f"({group})" for group in groups)
    return Check(" || ".join(held), some)


# --- lists ----------------------------------------------------------------------------------------


def _all_of(entries: list[Json], where: str, queries: Queries) -> Check:
    """Combines the checks of all ``foreach`` entries; an entry without items is skipped."""
    every = [_each(entry, f"{where}[{at}]", queries) for at, entry in enumerate(entries)]
    held = " && ".join(f"({check.held})" for check in every)
    return Check(held, " || ".join(f"({check.condition})" for check in every))


def _each(entry: Json, where: str, queries: Queries) -> Check:
    """Returns whether every item of a list passes a ``foreach`` entry, and whether any counts."""
    if more := sorted(entry.keys() - _OF_FOREACH):
        raise Unwritable(f"{where}.{more[0]}")
    if len(queries.elements) >= _NESTED_MAX:
        raise Unwritable(f"{where}: lists within lists, more than {_NESTED_MAX} deep")
    name = queries.name()
    items, there = _items(entry, where, queries)
    queries.elements.append(name)
    kept = dict(queries.context)
    try:
        for at, variable in enumerate(objects_of(entry.get("context"))):
            take_variable(variable, f"{where}.context[{at}]", queries)
        check = _item(entry, where, queries, name)
    finally:
        queries.elements.pop()
        queries.context = kept
    held = f"(!({check.condition}) || ({check.held}))" if check.condition else check.held
    some = f"{items}.exists({name}, {check.condition})" if check.condition else f"size({items}) > 0"
    every = f"{items}.all({name}, {held})"
    return Check(f"(!({there}) || {every})" if there else every, both(there, some))


def _items(entry: Json, where: str, queries: Queries) -> tuple[str, str]:
    """Returns the list of an entry, and the condition for its existence."""
    text = str(entry.get("list") or "")
    if not text:
        raise Unwritable(f"{where}.list is missing")
    if "{{" in text:
        raise Unwritable(f"{where}.list: a variable in {text}")
    try:
        items = queries.term(parsed(text))
    except Unwritable as why:
        raise Unwritable(f"{where}.list: {why}") from None
    if items.kind == "list":
        return items.text, items.there
    if items.kind == "object" or (items.kind == "any" and text.rpartition(".")[2] not in _LISTS):
        loose = items.text
        several = f"type({loose}) == list ? {loose} : {loose} == null ? [] : [{loose}]"
        return f"({several})", ""
    if items.kind == "any" and items.path:
        return f"{items.path}.orValue([])", ""
    raise Unwritable(f"{where}.list: {text} is not a list")


def _item(entry: Json, where: str, queries: Queries, name: str) -> Check:
    """Returns the check of one item, and its precondition."""
    preconditions = ""
    if entry.get("preconditions"):
        preconditions = conditions_of(
            entry["preconditions"], f"{where}.preconditions", queries, skips_missing=True
        )
    if inner := objects_of(entry.get("foreach")):
        check = _all_of(inner, f"{where}.foreach", queries)
    else:
        is_whole = entry.get("elementScope") is False and not entry.get("deny")
        check = _check(entry, where, queries, "object" if is_whole else name)
    condition = both(
        preconditions and f"({preconditions})", check.condition and f"({check.condition})"
    )
    if entry.get("elementScope") is not True:
        return Check(check.held, condition)
    # An item that is no map is an error, as in Kyverno: it has no such field.
    held = f"type({name}) == map ? ({check.held}) : {name}.elementScope"
    return Check(held, condition and f"type({name}) != map || ({condition})")


# --- variables ------------------------------------------------------------------------------------


def take_variable(entry: Json, where: str, queries: Queries) -> None:
    """Adds a variable of a rule's context, if it depends on the request only.

    Raises :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    name, given = str(entry.get("name") or ""), entry.get("variable")
    if type(given) is not dict:
        kind = next(iter(sorted(entry.keys() - {"name"})), "nothing")
        raise Unwritable(f"{where} {name}: {kind} asks for more than the request")
    try:
        queries.context[name] = _variable(given, queries)
    except Unwritable as why:
        raise Unwritable(f"{where} {name}: {why}") from None


def _variable(given: Json, queries: Queries) -> Term:
    """Returns the value of a variable: ``jmesPath``, of ``value`` if present, else ``default``."""
    value = term_of(given["value"], queries) if "value" in given else None
    term = value
    if path := given.get("jmesPath"):
        if "{{" in str(path):
            raise Unwritable("a variable within jmesPath")
        term = queries.term(parsed(str(path)), value)
    if term is None:
        raise Unwritable("it has neither a value nor a jmesPath")
    default: Any = given.get("default")
    if default is None:
        return term
    default_term = term_of(default, queries)
    if term.kind == "list" and default_term.kind == "list" and not default_term.there:
        if not term.there:
            return term
        return Term(f"({term.there} ? {term.text} : {default_term.text})", "list")
    if term.kind == "any":
        other = queries.name()
        text = f"[dyn({term.text})].map({other}, {other} == null ? dyn({default_term.loose}) : {other})[0]"
        return Term(text)
    return (
        Term(f"[dyn({term.loose})].map(v, v == null ? dyn({default_term.loose}) : v)[0]")
        if term.there
        else term
    )
