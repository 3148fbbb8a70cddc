"""Proof that the code of expressions is as it must be; see :mod:`tests.verified_code`."""

from tests.verified_code import verify
from webhook.cel.check.environment import Environment
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression
from webhook.cel.fast import NAMESPACE, fast_source
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


def verified(source: CelSource) -> None:
    """Fail unless the code of all expressions of a source is as it must be."""
    types: dict[str, Type] = {"anyObject": DYN, "params": DYN}
    for one in source.variables:
        environment = admission(types, params=True)
        verified_expression(one.expression, environment)
        types[one.name] = checked_expression(one.expression, environment).type
    environment = admission(types, params=False)
    for validation in source.validations:
        for text in (validation.expression, validation.message_expression):
            if text:
                verified_expression(text, environment)
