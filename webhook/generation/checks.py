"""Finds uses in a template's expressions that are unavailable to API server policies."""

from __future__ import annotations

from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission, match_conditions
from webhook.constraint.drivers.cel_source import ANY_OBJECT, PARAMS, CelSource


def fault_of_conditions(source: CelSource) -> str:
    """Returns the fault of a match condition with variables; empty for none.

    Only the webhook's match conditions have variables.
    """
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
    """Returns the fault of expressions that read referential data; empty for none.

    The template compiled with the inventory, so an expression that fails to compile without it
    reads it.
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
    """Returns the fault of a variable that reads the constraint as ``params``; empty for none.

    Only a policy with a resource of parameters has it.
    """
    types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
    for variable in source.variables:
        try:
            expression = checked_expression(variable.expression, admission(types, params=False))
        except CompileError:
            return f"its variable {variable.name} reads the constraint as params"
        types[variable.name] = expression.type
    return ""
