"""Manifests as people write them: without a namespace."""

from __future__ import annotations

import subprocess

import pytest

from tests.webhook.cli.manifest_lines import gators_lines, manifest
from tests.webhook.constraint.policies import constraint, template


@pytest.mark.slow
def test_gator_takes_an_object_that_names_no_namespace_for_one_of_a_namespace(program, tmp_path):
    """Else whatever is about namespaced kinds passes manifests as people write them."""
    thing = manifest(
        tmp_path,
        template(),
        *(
            constraint(name=name, match=match)
            for name, match in {
                "cluster": {"scope": "Cluster"},
                "namespaced": {"scope": "Namespaced"},
                "named": {"namespaces": ["default"]},
                "any": {"namespaces": ["*"]},
                "other": {"excludedNamespaces": ["kube-*"]},
                "selected": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
                "unlabelled": {
                    "namespaceSelector": {
                        "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]
                    }
                },
            }.items()
        ),
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        {"apiVersion": "cat.example/v1", "kind": "Cat", "metadata": {"name": "c"}},
    )

    def found(*command):
        run = subprocess.run(
            [*map(str, command), "test", f"-f={thing}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr
        return [line for line in run.stdout.splitlines() if ".gatekeeper.sh/" not in line]

    theirs = found(program("gator"))
    ours = gators_lines("-f", thing).stdout.splitlines()

    assert {line.split('"')[1] for line in theirs} == {"any", "namespaced", "other", "unlabelled"}
    assert [line for line in ours if ".gatekeeper.sh/" not in line] == theirs
