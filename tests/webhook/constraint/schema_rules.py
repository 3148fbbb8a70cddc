"""Schemas with rules, and what is said of them."""

from tests.webhook.constraint.schemas import template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.targets.admission import AdmissionTarget


def rules(*texts, **more):
    return {"x-kubernetes-validations": [{"rule": text, **more} for text in texts]}


def text(limit=None, *texts, **more):
    limits = {} if limit is None else {"maxLength": limit}
    return {"type": "string", **limits, **more, **rules(*texts)}


def items(of, limit=None, *texts, **more):
    limits = {} if limit is None else {"maxItems": limit}
    return {"type": "array", "items": of, **limits, **more, **rules(*texts)}


def entries(of, limit=None, *texts, **more):
    limits = {} if limit is None else {"maxProperties": limit}
    return {"type": "object", "additionalProperties": of, **limits, **more, **rules(*texts)}


def fields(*texts, required=(), **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        **rules(*texts),
    }


def ours(schema):
    """Returns our refusal of a schema."""
    client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
    try:
        client.create_crd(template("Asked", schema))
    except InvalidTemplate as error:
        return str(error)
    return ""
