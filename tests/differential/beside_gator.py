"""Waddle's answers about the files that gator reads."""

from __future__ import annotations

from typing import Any

from tests.webhook.constraint.policies import pod
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget


def ours(documents: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Whether it is taken, and the messages for a Pod."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    try:
        client.add_template(documents[0])
        for document in documents[1:]:
            client.add_constraint(document)
    except ConstraintFrameworkError as error:
        return "refused" if error.bug is None else "bug", []
    answer = client.snapshot.review(AugmentedObject(pod()))
    if answer.faults:
        return "no verdict", []
    return "taken", [item.msg for item in answer.results if not item.error]
