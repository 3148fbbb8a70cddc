"""``graphql.*`` (OPA reference, "GraphQL"): trees are gqlparser's, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.rego.builtins.graphql.parser import parse_query
from webhook.rego.builtins.graphql.schema import check_schema
from webhook.rego.builtins.graphql.sdl import parse_schema
from webhook.rego.builtins.graphql.tree import Node, from_value, shown
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.values import RegoObject, Value
from webhook.rego.types import ANY, BOOLEAN, OBJECT, STRING, any_of, object_of, static_array

_DOCUMENT: Final = any_of(STRING, object_of(ANY, ANY))
_CACHE: Final = "graphql"
# At 50 ns a step: parsing takes about 1 µs a character, and checking about as much again.
_STEPS_A_CHARACTER: Final = 40
# A millisecond, for a tree that comes as a value and has no characters to count.
_STEPS_A_TREE: Final = 20_000


def _tree(context: Context, value: Value, structure: str, parse: Callable[[str], Node]) -> Node:
    """Returns the tree of a document: parsed from its text, or made of the JSON of a tree."""
    if isinstance(value, str):
        context.charge(_STEPS_A_CHARACTER * len(value))
        return parse(value)
    context.charge(_STEPS_A_TREE)
    return from_value(context, structure, value)


def _query(context: Context, value: Value) -> Node:
    if not isinstance(value, str | dict | RegoObject):
        wrong_operand(0, value, "string", "object")
    return _tree(context, value, "QueryDocument", parse_query)


def _schema(context: Context, value: Value) -> tuple[Node, Any]:
    """Returns the tree of a schema, and the schema for checks; made once for each query."""
    if not isinstance(value, str | dict | RegoObject):
        wrong_operand(1, value, "string", "object")
    from webhook.rego.builtins.graphql.query import build_schema  # noqa: PLC0415  # see _valid_trees

    cache: dict[Any, tuple[Value, Node, Any]] = context.cache.setdefault(_CACHE, {})
    key = value if isinstance(value, str) else id(value)
    if key not in cache or cache[key][0] is not value:
        document = _tree(context, value, "SchemaDocument", parse_schema)
        cache[key] = value, shown(document), build_schema(check_schema(document))
    return cache[key][1:]


def _valid_trees(context: Context, query: Value, schema: Value) -> tuple[Node, Node]:
    """Returns the trees of a query and its schema; raises BuiltinError if the query is invalid."""
    # graphql-core is a quarter of the server's start, and hardly any policy needs it.
    from webhook.rego.builtins.graphql.query import check_query  # noqa: PLC0415

    try:
        document = _query(context, query)
        schema_tree, compiled = _schema(context, schema)
        context.charge(_STEPS_A_TREE)
        check_query(compiled, document)
        return shown(document), schema_tree
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> EvaluationError:
    return EvaluationError("eval_cancel_error", "GraphQL is nested too deeply")


@builtin(
    "graphql.parse",
    _DOCUMENT,
    _DOCUMENT,
    result=static_array(OBJECT, OBJECT),
    context=True,
)
def graphql_parse(context: Context, query: Value, schema: Value) -> list[Value]:
    """Returns the trees of a query and of the schema that it is valid under."""
    return list(_valid_trees(context, query, schema))


@builtin(
    "graphql.parse_and_verify",
    _DOCUMENT,
    _DOCUMENT,
    result=static_array(BOOLEAN, OBJECT, OBJECT),
    context=True,
)
def graphql_parse_and_verify(context: Context, query: Value, schema: Value) -> list[Value]:
    """``[true, …]`` with the trees, or ``[false, {}, {}]``."""
    try:
        return [True, *_valid_trees(context, query, schema)]
    except BuiltinError:
        return [False, {}, {}]


@builtin("graphql.is_valid", _DOCUMENT, _DOCUMENT, result=BOOLEAN, context=True)
def graphql_is_valid(context: Context, query: Value, schema: Value) -> bool:
    """Returns whether a query is valid under a schema."""
    try:
        _valid_trees(context, query, schema)
    except BuiltinError:
        return False
    return True


@builtin("graphql.schema_is_valid", _DOCUMENT, result=BOOLEAN, context=True)
def graphql_schema_is_valid(context: Context, schema: Value) -> bool:
    """Returns whether a schema is valid; errors are false, not undefined."""
    try:
        check_schema(_tree(context, schema, "SchemaDocument", parse_schema))
    except BuiltinError:
        return False
    except RecursionError:
        raise _too_deep() from None
    return True


@builtin("graphql.parse_query", STRING, result=OBJECT, context=True)
def graphql_parse_query(context: Context, query: str) -> Value:
    """Returns the tree of a query."""
    return shown(_tree(context, query, "QueryDocument", parse_query))


@builtin("graphql.parse_schema", STRING, result=OBJECT, context=True)
def graphql_parse_schema(context: Context, schema: str) -> Value:
    """Returns the tree of a schema, which is not checked."""
    return shown(_tree(context, schema, "SchemaDocument", parse_schema))
