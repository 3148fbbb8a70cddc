"""Proof that the code of expressions is as it must be; see :mod:`tests.verified_code`."""

from tests.verified_code import verify
from webhook.cel.check.environment import Environment
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression, compile_checked
from webhook.cel.fast.expression import NAMESPACE, fast_source
from webhook.cel.fast.policy import GIVEN, Part, whole_source
from webhook.cel.kubernetes import admission
from webhook.constraint.drivers.cel_source import CelSource


def verified_expression(text: str, environment: Environment) -> bool:
    """Whether there is code for it, which is as it must be."""
    written = fast_source(checked_expression(text, environment))
    if written is None:
        return False
    source, constants = written
    verify(source, {*NAMESPACE, *NAMESPACE["__builtins__"], *constants})
    return True


def verified_policy(
    variables: dict[str, Part], validations: list[tuple[Part, Part | None]]
) -> bool:
    """The same of a whole policy."""
    written = whole_source(variables, validations)
    if written is None:
        return False
    verify(written.text, {*GIVEN, *GIVEN["__builtins__"], *written.constants})
    return True


def verified(source: CelSource) -> None:
    """Fail unless the code of a source, and of all its expressions, is as it must be."""
    types: dict[str, Type] = {"anyObject": DYN, "params": DYN}
    variables = {}
    for one in source.variables:
        environment = admission(types, params=True)
        verified_expression(one.expression, environment)
        variables[one.name] = _part(one.expression, environment)
        types[one.name] = variables[one.name].checked.type
    environment = admission(types, params=False)
    pairs: list[tuple[Part, Part | None]] = []
    for validation in source.validations:
        for text in (validation.expression, validation.message_expression):
            if text:
                verified_expression(text, environment)
        validation_message = validation.message_expression
        message = _part(validation_message, environment) if validation_message else None
        pairs.append((_part(validation.expression, environment), message))
    if pairs:
        verified_policy(variables, pairs)


def _part(text: str, environment: Environment) -> Part:
    found, checked = compile_checked(text, environment)
    return Part(checked, found.has_exact_errors)
