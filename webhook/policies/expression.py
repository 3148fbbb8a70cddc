"""An expression in CEL over objects, with the variables of a review, as templates have them."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any, Final

from webhook.api.gvk import name_of, namespace_of
from webhook.cel.check.types import DYN
from webhook.cel.engine import compile_expression
from webhook.cel.errors import TimeUp
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cel.run.texts import shown
from webhook.cel.run.values import NOTHING, Lost, Optional, from_key
from webhook.constraint.drivers.cel_review import any_object, variables_of
from webhook.constraint.drivers.cel_source import ANY_OBJECT, PARAMS
from webhook.constraint.drivers.cel_validator import Composed

SECONDS_MAX: Final = 10.0
"""An expression within Kubernetes' limits takes a second."""


def evaluate(
    expression: str,
    *,
    obj: Any = None,
    old: Any = None,
    namespace: Any = None,
    params: Any = None,
    seconds: float = SECONDS_MAX,
) -> Any:
    """Returns the value of an expression, in JSON types.

    Only an object: it is created. Only an old object: it is deleted. Both: an update. Raises
    :class:`~webhook.cel.errors.CompileError` and :class:`~webhook.cel.errors.EvaluationError`.
    """
    given = variables_of(_request(obj, old, namespace))
    known = {ANY_OBJECT: any_object(given), PARAMS: params}
    composed = Composed({}, given, {"spec": {"parameters": params}}, known)
    environment = admission(dict.fromkeys((PARAMS, ANY_OBJECT), DYN), params=False)
    compiled = compile_expression(expression, environment)
    return _plain(compiled.evaluate(composed.env, Meter(look=_for(seconds))))


def _for(seconds: float) -> Callable[[], None]:
    deadline = time.monotonic() + seconds

    def look() -> None:
        if time.monotonic() > deadline:
            raise TimeUp(f"it takes longer than {seconds:g} s")

    return look


def _request(obj: Any, old: Any, namespace: Any) -> dict[str, Any]:
    """Returns the request of a review."""
    operation = "UPDATE" if obj and old else "DELETE" if old else "CREATE"
    about = obj or old or {}
    group, _, version = str(about.get("apiVersion", "")).rpartition("/")
    return {
        "operation": operation,
        "object": obj,
        "oldObject": old,
        "namespaceObject": namespace,
        "name": name_of(about),
        "namespace": namespace_of(about),
        "kind": {"group": group, "version": version, "kind": about.get("kind", "")},
    }


def _plain(value: Any) -> Any:
    """Returns a value of CEL in JSON; types that JSON lacks become CEL's text."""
    if type(value) is Optional:
        return None if value.value is NOTHING else _plain(value.value)
    if type(value) is Lost:
        return value.text
    if type(value) is dict:
        return {shown(from_key(key)): _plain(item) for key, item in value.items()}
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is bytes:
        return base64.b64encode(value).decode()
    if value is None or type(value) in {bool, str, int, float}:
        return value
    return int(value) if isinstance(value, int) else shown(value)
