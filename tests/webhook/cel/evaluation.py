"""Evaluates expressions in CEL."""

from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter

ENVIRONMENT = admission({}, params=True)


def evaluate(source, variables=None, meter=None):
    given = {"object": None, "oldObject": None, "request": None, "namespaceObject": None}
    expression = compile_expression(source, ENVIRONMENT)
    return expression.evaluate({**given, **(variables or {})}, meter or Meter())
