"""The rights of a generating replica by the shipped role."""

from pathlib import Path

import yaml


def test_manifests_have_the_rights_to_generate():
    """Of both, and the finalizers that an owner's deletion is blocked by."""
    rules = [
        rule
        for document in yaml.safe_load_all(
            (Path(__file__).parents[3] / "manifests/base/rbac.yaml").read_text()
        )
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == "waddle"
        for rule in document["rules"]
    ]
    resources = {"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
    (found,) = [rule for rule in rules if resources <= set(rule["resources"])]
    assert set(found["verbs"]) == {"get", "list", "watch", "create", "update", "delete"}
