"""Webhook configurations by which policies count as asked, though the API server calls nobody."""

from typing import Final

from tests.cluster import Api

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
EVERYTHING: Final = "everything"
"""Their name."""

NOBODY: Final = "request.userInfo.username == 'nobody'"
"""Admits only requests of a user that does not exist."""


def install_catch_all_webhooks(api: Api, condition: str = NOBODY) -> None:
    """Have everything sent that one user does, who is nobody, to where Waddle would answer.

    ``condition`` may leave out more.
    """
    for kind, path in (("Validating", "admit"), ("Mutating", "mutate")):
        webhook = {
            "name": "everything.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:1/v1/{path}"},
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": 1,
            "matchConditions": [{"name": "nobody", "expression": condition}],
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["*/*"],
                }
            ],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": EVERYTHING},
            "webhooks": [webhook],
        }
        api.apply(f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations/{EVERYTHING}", body)
