"""Policies on a bench: a replica gets events, and its statuses are read."""

from tests import policies
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import Pod
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.policies import PolicyController
from webhook.readiness import Tracker

POD = Pod("waddle-abc", "waddle-system", "pod-uid", ("webhook",))
KIND = "K8sAlways"
TEMPLATE_STATUS = "waddle--abc-k8salways"
CONSTRAINT_STATUS = "waddle--abc-k8salways-all"
INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
REGO = 'package always\nviolation[{"msg": "no"}] { true }'
BROKEN = "package always\nviolation[{"


def template(rego=REGO, generation=1, uid="t", annotations=None):
    metadata = {"uid": uid, "generation": generation, "annotations": annotations or {}}
    return policies.template(KIND, rego, metadata=metadata)


def constraint(generation=1, uid="c", action="deny"):
    metadata = {"uid": uid, "generation": generation}
    return policies.constraint(KIND, "all", metadata=metadata, enforcementAction=action)


class Bench:
    """A controller with all it works on, and a clock that counts its readings."""

    def __init__(self, drivers=(), targets=(), reviewed_targets=None, **options):
        drivers = drivers or (RegoDriver(),)
        targets = targets or (AdmissionTarget(),)
        self.client = Client(targets=targets, drivers=drivers, reviewed_targets=reviewed_targets)
        self.tracker = Tracker(lambda: 0.0)
        self.tracker.track("ConstraintTemplate")
        self.time = 0
        self.controller = PolicyController(
            self.client, self.tracker, POD, lambda: f"time {self.time}", **options
        )

    def apply(self, templates=(), constraints=()):
        """Apply a batch and publish it, at a time of its own."""
        self.time += 1
        for document in templates:
            self.controller.template("k8salways", document)
        for document in constraints:
            self.controller.constraint(KIND, "all", document)
        self.controller.published()

    def retry(self):
        """Try what waits to be tried again, and publish it, at a time of its own."""
        self.time += 1
        self.controller.retry()
        self.controller.published()

    def status(self, name):
        """The status of a status object, or None."""
        document = self.controller.statuses.get(name)
        return None if document is None else document["status"]

    @property
    def enforced(self):
        """The names of the constraints in the snapshot."""
        return [item.name for item in self.client.snapshot.constraints]


def requiring_ingress(quote=""):
    clause = '[[{"groups":["networking.k8s.io"],"versions":["v1"],"kinds":["Ingress"]}]]'
    return {"metadata.gatekeeper.sh/requires-sync-data": f"{quote}{clause}{quote}\n"}
