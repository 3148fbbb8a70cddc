"""Templates, constraints and a small driver that the framework's tests share."""

from __future__ import annotations

from typing import Any

from tests import policies
from webhook.constraint.client import Client
from webhook.constraint.driver import DriverViolation
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import CompileError, PolicyError
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.targets.known import JsonTarget

DENY = 'package p\nviolation[{"msg": "no"}] { true }\n'


class EchoDriver:
    """A second engine: its source is a list of messages; ``!x`` fails, ``?`` does not compile."""

    name = "Echo"

    def compile(self, template: Any, code: Any) -> EchoEvaluator:
        """Keep the messages."""
        if code.source == "?":
            raise CompileError(f"{template.kind}: not understood")
        return EchoEvaluator(code.source)


class EchoEvaluator:
    """Reports each message with the name of the object reviewed."""

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages

    reads_constraint = False

    def begin(self, limits: Any, inventory: Any, shared: Any = None) -> Any:
        """Returns the inventory; nothing else is shared."""
        return inventory

    def evaluate(self, parameters: Any, review: Any, state: Any) -> list[DriverViolation]:
        """The messages, or the failure that is among them."""
        found = []
        for message in self.messages:
            if message.startswith("!") and message[1:] in ((parameters or {}).get("fail"), ""):
                raise PolicyError(message)
            if not message.startswith("!"):
                found.append(DriverViolation(message, {"parameters": parameters}))
        return found


def template(kind="K8sDeny", rego=DENY, **spec: Any) -> dict[str, Any]:
    """A template; ``schema`` gives its parameters', ``target`` fields of its target."""
    return policies.template(kind, rego, **spec)


def echo_template(*messages: str, kind: str = "K8sEcho", **spec: Any) -> dict[str, Any]:
    """A template of the second driver."""
    source: Any = "?" if messages == ("?",) else list(messages)
    code = [{"engine": "Echo", "source": source}]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return template(kind, "", schema=schema, target={"code": code, **spec})


def constraint(kind="K8sDeny", name="c", **spec: Any) -> dict[str, Any]:
    """A constraint with this spec."""
    return policies.constraint(kind, name, **spec)


def client(*documents: dict[str, Any], cel: bool = False, **options: Any) -> Client:
    """A client of both drivers and targets with these templates and constraints."""
    drivers = (RegoDriver(), EchoDriver(), *((CelDriver(),) if cel else ()))
    result = Client(targets=(AdmissionTarget(), JsonTarget()), drivers=drivers, **options)
    for document in documents:
        if document["kind"] == "ConstraintTemplate":
            result.add_template(document)
        else:
            result.add_constraint(document)
    return result


def pod(name="web", namespace="shop", **metadata: Any) -> dict[str, Any]:
    """A Pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
    }


def expands(
    name: str = "pods",
    source: str = "spec.template",
    generated: Any = None,
    applies: Any = None,
    **spec: Any,
) -> dict[str, Any]:
    """An ExpansionTemplate from Deployments to Pods."""
    if applies:
        spec["applyTo"] = [applies]
    if generated:
        spec["generatedGVK"] = generated
    return policies.expansion_template(name, templateSource=source, **spec)


def deployment(**metadata: Any) -> dict[str, Any]:
    """A Deployment with a Pod's template."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "Web", "namespace": "shop", **metadata},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
    }
