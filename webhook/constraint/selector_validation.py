"""The checks of label selectors that a schema cannot express, with apimachinery's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.constraint.errors import InvalidConstraint, invalid
from webhook.constraint.names import label_value_faults, qualified_name_faults

# Gatekeeper names this path for both selectors, and without "match".
_PATH: Final = "spec.labelSelector"


def validate_selectors(constraint: Mapping[str, Any]) -> None:
    """Checks both selectors of ``spec.match``; raises :class:`InvalidConstraint`."""
    spec = constraint.get("spec")
    match = spec.get("match") if type(spec) is dict else None
    if type(match) is not dict:
        return  # absent, or invalid by the schema
    for name in ("labelSelector", "namespaceSelector"):
        if not validate_selector(match.get(name)):
            return


def validate_selector(selector: Any) -> bool:
    """Checks one selector beyond its schema; raises :class:`InvalidConstraint`.

    Returns False for a malformed selector, which the schema reports better.
    """
    if type(selector) is not dict:
        return True
    faults = _label_faults(selector.get("matchLabels"))
    expressions = selector.get("matchExpressions")
    if type(expressions) is list:
        for index, expression in enumerate(expressions):
            if type(expression) is not dict or not _is_well_typed(expression):
                return False  # the schema will say so, with the path
            faults += _requirement_faults(expression, f"{_PATH}.matchExpressions[{index}]")
    if faults:
        text = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
        raise InvalidConstraint(f"invalid Constraint: {text}")
    return True


def _label_faults(labels: Any) -> list[str]:
    if type(labels) is not dict:
        return []
    path = f"{_PATH}.matchLabels"
    faults: list[str] = []
    for name, value in labels.items():
        faults += [invalid(path, name, fault) for fault in qualified_name_faults(name)]
        if type(value) is str:
            faults += [invalid(path, value, fault) for fault in label_value_faults(value)]
    return faults


def _is_well_typed(expression: Mapping[str, Any]) -> bool:
    fields = (("key", str), ("operator", str), ("values", list))
    return all(
        expression.get(name) is None or type(expression[name]) is expected
        for name, expected in fields
    )


def _requirement_faults(expression: Mapping[str, Any], path: str) -> list[str]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    faults: list[str] = []
    if operator in {"In", "NotIn"}:
        if not values:
            faults.append(
                f"{path}.values: Required value: must be specified when `operator` is 'In' or "
                "'NotIn'"
            )
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            faults.append(
                f"{path}.values: Forbidden: may not be specified when `operator` is 'Exists' or "
                "'DoesNotExist'"
            )
    else:
        faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key") or ""
    faults += [invalid(f"{path}.key", key, fault) for fault in qualified_name_faults(key)]
    for index, value in enumerate(values):
        if type(value) is str:
            faults += [
                invalid(f"{path}.values[{index}]", value, fault)
                for fault in label_value_faults(value)
            ]
    return faults
