"""The resources that a replica asks to watch."""

from tests import policies
from webhook.api.gvk import GroupVersionKind
from webhook.watch.registrar import Registrar

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


class RequestedKinds(Registrar):
    """Records the requested kinds, and the begin of each request."""

    def __init__(self):
        self.requested = set()
        self.history = []
        self.projections = {}

    def add_watch(self, gvk):
        if gvk not in self.requested:
            self.history.append(("add", gvk.kind))
        self.requested.add(gvk)

    def remove_watch(self, gvk):
        self.history.append(("remove", gvk.kind))
        self.requested.discard(gvk)

    def replace_watch(self, gvks):
        self.requested = set(gvks)

    def project(self, gvk, projection, *, is_narrower=False):
        self.history.append(("narrow" if is_narrower else "project", gvk.kind))
        self.projections[gvk] = projection


def template(uid="t", kind="Always", rego='violation[{"msg": "no"}] { true }', annotations=None):
    metadata = {"uid": uid, "generation": 1, "annotations": annotations or {}}
    return policies.template(kind, f"package always\n{rego}", metadata=metadata)
