"""Admission of requests by a template and a constraint."""

import time
from typing import Any

import yaml

from tests.behaviour.serving import review
from webhook.api.admission import AdmissionRequest, read_review
from webhook.constraint import isolation as isolations
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.isolation import Isolation
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.review.policy_set import PolicySet
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.preparation import (
    AccessReader,
    Preparations,
    SlowReviewer,
    TemplateCompiler,
)
from webhook.serving.recorder import Recorder
from webhook.serving.revision import Revision, Serving

TEMPLATE = "templates.gatekeeper.sh/v1"
CONSTRAINT = "constraints.gatekeeper.sh/v1beta1"


class Admitting:
    """Decides by policies, and what it told."""

    def __init__(
        self,
        *documents: str,
        isolation: Isolation = isolations.DEFAULT,
        reviewer: SlowReviewer | None = None,
        recorder: Recorder | None = None,
        compiler: TemplateCompiler | None = None,
        rights: AccessReader | None = None,
        **options: Any,
    ) -> None:
        client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()], isolation=isolation)
        for document in (item for text in documents for item in yaml.safe_load_all(text)):
            if document["kind"] == "ConstraintTemplate":
                client.add_template(document)
            else:
                client.add_constraint(document)
        self.serving = Serving(Revision(PolicySet(client.snapshot), client))
        self.registry, self.lines = Registry(), list[bytes]()
        log = Log(self.lines.append).logger("test")
        chosen = AdmissionOptions(**{"review_timeout_seconds": 10.0, **options})
        self.admission = Admission(
            self.serving,
            chosen,
            self.registry,
            log,
            recorder,
            Preparations(templates=compiler, reviewer=reviewer, rights=rights),
        )

    def ask(self, request: AdmissionRequest, query: bytes = b"", late: float = 0.0) -> Any:
        return self.admission(request, query, time.monotonic() - late)


def request_of(obj: dict[str, Any], **request: Any) -> AdmissionRequest:
    """The request of an object."""
    return read_review(review(obj, **request))
