"""Asks one replica."""

from tests.cluster import ApiError
from tests.manifests import CONFIGURATION
from tests.patience import until
from tests.system.installed import InstalledServer
from tests.system.replicas import PATIENT_SECONDS, WEBHOOKS, WORKLOADS, Plane


def ask_replica(plane: Plane, replica: InstalledServer) -> None:
    """Have the API server ask a process of this machine, and nobody else, about one namespace."""
    until(lambda: is_asked(plane, replica), "the configuration is ours")


def is_asked(plane: Plane, replica: InstalledServer) -> bool:
    """Whether the configuration names the process now; who keeps the bundle writes it, too."""
    configuration = plane.api.request("GET", f"{WEBHOOKS}/{CONFIGURATION}")
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://localhost:{replica.ports['admission']}{path}"
        webhook["timeoutSeconds"] = PATIENT_SECONDS
        only = f"has(request.namespace) && request.namespace == '{WORKLOADS}'"
        webhook["matchConditions"].append({"name": "tests-alone", "expression": only})
    try:
        plane.api.request("PUT", f"{WEBHOOKS}/{CONFIGURATION}", configuration)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True
