"""Applies a mutating policy to an object, with one resource of parameters.

k8s.io/apiserver, admission/plugin/policy/mutating. The mutations run in order, each on the result
of the one before; a failed mutation changes nothing.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission_policies.applying import applied
from webhook.admission_policies.authorizer import NO_ANSWERS, authorizers
from webhook.admission_policies.json_patch import TestFailed, patched
from webhook.admission_policies.list_types import merge_type
from webhook.api.gvk import gvk_of
from webhook.cel.check.environment import is_object
from webhook.cel.errors import EvaluationError, NoAuthorizer
from webhook.cel.run.conversions import CONVERSIONS
from webhook.cel.run.meter import POLICY_COST
from webhook.cel.run.values import NOTHING, Duration, Opaque, Optional, Timestamp, Uint
from webhook.constraint.drivers.cel_review import variables_of
from webhook.constraint.drivers.cel_validator import (
    Composed,
    Purse,
    conditions_hold,
    failure_text,
    pass_on,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.admission_policies.authorizer import Answers
    from webhook.admission_policies.reading import MutatingPolicy, PolicyMutation
    from webhook.api.shapes import Json


class PolicyChange(NamedTuple):
    """An object after a policy's mutations; ``faults`` are the errors of failed mutations.

    ``undecided`` are mutations whose questions to the authorizer have no answer. ``is_skipped`` is
    whether a match condition is false.
    """

    object: Json
    faults: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    is_skipped: bool = False


def change(
    policy: MutatingPolicy,
    request: Json,
    namespace: Json | None,
    params: Any,
    look: Callable[[], None] | None = None,
    *,
    answers: Answers = NO_ANSWERS,
    definitions: Iterable[Mapping[str, Any]] = (),
) -> PolicyChange:
    """Changes the object of a request that a policy matches.

    ``definitions`` are the known CustomResourceDefinitions; they define how lists are merged.
    """
    obj: Json = request["object"]
    given = variables_of({**request, "namespaceObject": namespace}) | authorizers(request, answers)
    try:
        if not conditions_hold(
            policy.conditions, {**given, "params": params, "namespaceObject": None}, look
        ):
            return PolicyChange(obj, is_skipped=True)
    except NoAuthorizer as wanting:
        return PolicyChange(obj, undecided=(f"a match condition {wanting}",))
    except EvaluationError as error:
        pass_on(error)
        return PolicyChange(obj, (error.text,))
    faults, undecided = [], []
    for mutation in policy.mutations:
        composed = Composed(policy.variables, {**given, "object": obj}, params)
        try:
            obj = _changed(mutation, obj, composed, look, definitions)
        except NoAuthorizer as wanting:
            undecided.append(f"expression '{mutation.expression.source.strip()}' {wanting}")
        except EvaluationError as error:
            pass_on(error)
            faults.append(error.text)
    return PolicyChange(obj, tuple(faults), tuple(undecided))


def _changed(
    mutation: PolicyMutation,
    obj: Json,
    composed: Composed,
    look: Callable[[], None] | None,
    definitions: Iterable[Mapping[str, Any]],
) -> Json:
    expression = mutation.expression
    try:
        value = Purse(POLICY_COST, look).pay(expression, composed.env)
    except NoAuthorizer:
        raise
    except EvaluationError as error:
        pass_on(error)
        raise EvaluationError(failure_text(expression, composed.env, error)) from None
    return with_value(mutation.patch_type, value, obj, definitions)


def with_value(
    patch_type: str,
    value: Any,
    obj: Json,
    definitions: Iterable[Mapping[str, Any]],
    *,
    replaces_wholes: bool = False,
) -> Json:
    """Returns an object changed by the value of a mutation's expression.

    ``replaces_wholes`` allows atomic lists and objects in a configuration. Raises
    :class:`~webhook.cel.errors.EvaluationError`.
    """
    if patch_type == "JSONPatch":
        operations = [_operation(item.value) for item in value]
        try:
            return patched(obj, operations)
        except TestFailed:
            return obj
    _check_types(value, value.type_name)
    gvk = gvk_of(obj)
    configuration: Json = {**_plain(value), "apiVersion": gvk.group_version, "kind": gvk.kind}
    return applied(
        obj, configuration, merge_type(gvk, definitions), replaces_wholes=replaces_wholes
    )


def _operation(fields: Mapping[str, Any]) -> Json:
    """Returns an operation of a JSON Patch; missing fields are empty."""
    operation: Json = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        operation["from"] = fields["from"]
    if "value" in fields:
        value = fields["value"]
        if type(value) is Opaque and is_object(value.type_name):
            _check_types(value, value.type_name)
        operation["value"] = _plain(value)
    return operation


def _check_types(value: Any, path: str) -> None:
    """Refuses an object type that belongs to another field."""
    if type(value) is Opaque and is_object(value.type_name):
        if value.type_name != path:
            raise EvaluationError(
                f'type mismatch: unexpected type name "{value.type_name}", expected "{path}", which '
                "matches field name path from root Object type"
            )
        for name, inner in value.value.items():
            _check_types(inner, f"{path}.{name}")
    elif type(value) is list:
        for inner in value:
            _check_types(inner, path)
    elif type(value) is dict:
        for inner in value.values():
            _check_types(inner, path)


def _plain(value: Any) -> Any:
    """Returns a value as JSON."""
    if type(value) is Opaque and is_object(value.type_name):
        return {name: _plain(inner) for name, inner in value.value.items()}
    if type(value) is dict:
        return {str(name): _plain(inner) for name, inner in value.items()}
    if type(value) is list:
        return [_plain(inner) for inner in value]
    if type(value) is Uint:
        return int(value)
    if type(value) is bytes:
        return b64encode(value).decode()
    if type(value) in {Timestamp, Duration}:
        return CONVERSIONS["string"](value)
    if type(value) is Optional and value.value is not NOTHING:
        return _plain(value.value)
    if value is None or type(value) in {bool, int, float, str}:
        return value
    raise EvaluationError("the expression evaluated to a type that could not marshal to JSON")
