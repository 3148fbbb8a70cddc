"""Compiles expressions of Kyverno's policies."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.types import BOOL, DYN, STRING
from webhook.cel.engine import compile_checked
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import ADMISSION_REQUEST, admission
from webhook.kyverno import library
from webhook.kyverno.kinds import InvalidPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment
    from webhook.cel.check.types import Type
    from webhook.cel.engine import Expression


def objects_in(spec: Mapping[str, Any], field: str) -> list[Json]:
    """Returns the objects of a list, empty if absent; raises :class:`InvalidPolicy`."""
    value = spec.get(field) or []
    if type(value) is not list or any(type(item) is not dict for item in value):
        raise InvalidPolicy(f"spec.{field} is not a list of objects")
    return value


def object_in(spec: Mapping[str, Any], field: str) -> Json:
    """Returns the object in a field, empty if absent; raises :class:`InvalidPolicy`."""
    value = spec.get(field) or {}
    if type(value) is not dict:
        raise InvalidPolicy(f"{field} is not an object")
    return value


def environment(types: Mapping[str, Type], *, namespaced: bool = False) -> Environment:
    """Returns Kubernetes' environment with Kyverno's additions.

    ``types`` are those of the policy's variables; match conditions have none.
    """
    base = admission(types, params=False)
    return replace(
        base,
        variables={**base.variables, **library.VARIABLES},
        messages={
            **base.messages,
            **library.MESSAGES,
            ADMISSION_REQUEST: {
                **base.messages[ADMISSION_REQUEST],
                "object": DYN,
                "oldObject": DYN,
            },
        },
        functions=library.kyverno_functions(namespaced=namespaced),
        extended=True,
    )


_NOT_BUILT: Final = re.compile(
    r"undeclared reference to '(?:\w+\.)?(\w+)'"
    r"|no matching overload for '(\w+)' applied to 'kyverno\.resources"
)


_OF_DYN: Final = {
    BOOL: ": compare it, as in `… == true`",
    STRING: ": write `string(…)`",
}
"""How an expression of type dyn gets the expected type."""


def compiled(
    item: Mapping[str, Any], field: str, given: Environment, expected: Sequence[Type], noun: str
) -> tuple[Expression, Checked]:
    """Returns the expression of a field, and the result of the type checker.

    ``expected`` are the types that it may have, none where it may have any. As in Kyverno, dyn is
    none of them. Raises :class:`InvalidPolicy`, which names the field below ``noun``.
    """
    text = item.get(field)
    if not isinstance(text, str):
        raise InvalidPolicy(f"spec.{noun}.{field} is missing")
    try:
        expression, checked = compile_checked(text, given)
    except CompileError as error:
        names = [match[1] or match[2] for match in _NOT_BUILT.finditer(str(error))]
        refused = (library.REFUSED[name] for name in names if name in library.REFUSED)
        raise InvalidPolicy(f"spec.{noun}.{field}: {next(refused, error)}") from None
    if expected and expression.type not in expected:
        types = " or ".join(map(str, expected))
        hint = _OF_DYN.get(expected[0], "") if expression.type.is_dyn else ""
        raise InvalidPolicy(
            f"spec.{noun}.{field}: must evaluate to {types} but gives {expression.type}{hint}"
        )
    return expression, checked


_COMPARED_WITH_NULL: Final = re.compile(
    r"(?<![\w.])(?:object|oldObject)\s*[!=]=\s*null\b"
    r"|\bnull\s*[!=]=\s*(?:object|oldObject)\b(?!\s*[.\[])"
)
"""A missing object of a policy in CEL is an empty map; of a ClusterPolicy, null."""


def null_warnings(spec: Json) -> tuple[str, ...]:
    """Returns a warning for each comparison of a whole object with null."""
    comparisons = dict.fromkeys(_COMPARED_WITH_NULL.findall(str(spec)))
    return tuple(
        f"spec: `{text}` is the same for every request: a missing object is an empty map in "
        "Kyverno, and no null. Read request.operation"
        for text in comparisons
    )


def without_nulls(value: Any) -> Any:
    """Returns a ClusterPolicy's part in CEL, with missing objects as of a policy in CEL."""
    if type(value) is dict:
        return {name: without_nulls(part) for name, part in value.items()}
    if type(value) is list:
        return [without_nulls(part) for part in value]
    if type(value) is str:
        return _COMPARED_WITH_NULL.sub(lambda match: match[0].replace("null", "{}"), value)
    return value
