"""Finds what a template's expressions read and a policy's cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cel.check.types import DYN
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission, match_conditions
from webhook.constraint.drivers.cel_source import ANY_OBJECT, PARAMS

if TYPE_CHECKING:
    from webhook.cel.check.types import Type
    from webhook.constraint.drivers.cel_source import CelSource


def fault_of_conditions(source: CelSource) -> str:
    """Match conditions that read variables: in the webhook they have some; or an empty text."""
    for condition in source.match_conditions:
        try:
            checked_expression(condition.expression, match_conditions())
        except CompileError:
            return (
                f"its match condition {condition.name} reads variables, which those of a "
                "ValidatingAdmissionPolicy do not have"
            )
    return ""


def fault_of_inventory(source: CelSource) -> str:
    """Expressions that read referential data, which no policy is given; or an empty text.

    What has been taken compiles with it, so what does not compile without it reads it.
    """
    if not source.has_inventory:
        return ""
    types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
    try:
        for variable in source.variables:
            expression = checked_expression(variable.expression, admission(types, params=True))
            types[variable.name] = expression.type
        declared = admission(types, params=False)
        for condition in source.match_conditions:
            checked_expression(condition.expression, declared)
        for validation in source.validations:
            checked_expression(validation.expression, declared)
            if validation.message_expression:
                checked_expression(validation.message_expression, declared)
    except CompileError:
        return "its expressions read variables.inventory, which the API server does not have"
    return ""


def fault_of_variables(source: CelSource) -> str:
    """Variables that read the constraint, which only a resource of parameters is; or an empty text."""
    types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
    for variable in source.variables:
        try:
            expression = checked_expression(variable.expression, admission(types, params=False))
        except CompileError:
            return f"its variable {variable.name} reads the constraint as params"
        types[variable.name] = expression.type
    return ""
