"""``waddle sync test``: templates whose data nobody syncs are named, and gator agrees."""

import itertools
import json
import subprocess

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.policies import config, template
from tests.webhook.cli.in_process import waddle

ANNOTATION = "metadata.gatekeeper.sh/requires-sync-data"
INGRESS = {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"}
POD = {"group": "", "version": "v1", "kind": "Pod"}


def clause(*kinds):
    return [{name + "s": [kind[name]] for name in ("group", "version", "kind")} for kind in kinds]


def needing(kind, *requirements):
    text = json.dumps(json.dumps([clause(*one) for one in requirements]))[1:-1].replace('\\"', '"')
    rego = 'package p\nviolation[{"msg": "no"}] { false }'
    return template(kind, rego, metadata={"annotations": {ANNOTATION: f'"{text}"'}})


def served(*kinds):
    groups = {}
    for one in kinds:
        groups.setdefault(one["group"], {}).setdefault(one["version"], []).append(one["kind"])
    return {
        "apiVersion": "gvkmanifest.gatekeeper.sh/v1alpha1",
        "kind": "GVKManifest",
        "metadata": {"name": "served"},
        "spec": {"groups": groups},
    }


DOCUMENTS = {
    "one": needing("NeedsOne", [INGRESS], [POD]),
    "either": needing("NeedsEither", [INGRESS, POD]),
    "nothing": template("NeedsNothing", 'package p\nviolation[{"msg": "no"}] { false }'),
    "syncset": {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "ingresses"},
        "spec": {"gvks": [INGRESS]},
    },
    "config": config(sync={"syncOnly": [POD]}, namespace="gatekeeper-system"),
    "served": served(INGRESS, POD),
    "pods alone": served(POD),
}


def given(folder, names):
    arguments = []
    for name in names:
        file = folder / f"{name.replace(' ', '-')}.yaml"
        file.write_text(yaml.safe_dump(DOCUMENTS[name]))
        arguments += ["-f", file]
    return arguments


@pytest.mark.parametrize(
    ("names", "omit", "code", "shown"),
    [
        (("one", "syncset", "config", "served"), False, 0, "1 with requirements, 0 without"),
        (("one", "syncset", "served"), False, 1, "needsone: not synced:\n- /v1:Pod\n1 template: "),
        (("one", "syncset", "config", "pods alone"), False, 1, "- networking.k8s.io/v1:Ingress"),
        (("either", "config"), True, 0, "1 template: 1 with requirements"),
        (("either", "config"), False, 2, "add one, or --force-omit-gvk-manifest"),
        (("either", "served"), False, 1, "- /v1:Pod OR networking.k8s.io/v1:Ingress"),
        (("nothing", "either", "config", "served"), False, 0, "2 templates: 1 with requirements"),
        (("syncset", "served"), False, 2, "have no ConstraintTemplate"),
        (("one", "served", "pods alone"), False, 2, "several GVKManifests"),
    ],
)
def test_what_is_not_synced_is_named(names, omit, code, shown, tmp_path):
    forced = ["--force-omit-gvk-manifest"] if omit else []
    run = waddle("sync", "test", *given(tmp_path, names), *forced)

    assert shown in run.stdout + run.stderr
    assert run.returncode == code


def test_a_broken_annotation_is_named_with_its_place(tmp_path):
    broken = needing("NeedsOne", [POD])
    broken["metadata"]["annotations"][ANNOTATION] = "[[{]"
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(broken))

    run = waddle("sync", "test", tmp_path / "t.yaml", "--force-omit-gvk-manifest")

    assert f"{tmp_path}/t.yaml:1: " in run.stderr
    assert ANNOTATION in run.stderr
    assert run.returncode == 2


def test_programs_read_json(tmp_path):
    run = waddle("sync", "test", *given(tmp_path, ("one", "syncset", "served")), "-o", "json")

    assert json.loads(run.stdout) == {"templates": ["needsone"], "missing": {"needsone": [[POD]]}}


def test_gator_says_the_same(program, tmp_path):
    gator = program("gator")
    others = ("syncset", "config", "served")
    for templates in (("one",), ("either",), ("one", "either", "nothing")):
        for chosen in itertools.chain.from_iterable(
            itertools.combinations(others, number) for number in range(4)
        ):
            for omit in (False, True):
                arguments = given(tmp_path, (*templates, *chosen))
                theirs = subprocess.run(
                    [
                        *(gator, "sync", "test", *(["-f"] if omit else [])),
                        *("-n" if one == "-f" else str(one) for one in arguments),
                    ],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE_SECONDS,
                    check=False,
                )
                forced = ["--force-omit-gvk-manifest"] if omit else []
                ours = waddle("sync", "test", *arguments, *forced)
                compared = templates, chosen, omit
                assert (ours.returncode == 0) == (theirs.returncode == 0), compared
                lines = {line for line in theirs.stderr.splitlines() if line.startswith("- ")}
                our_lines = {line for line in ours.stdout.splitlines() if line.startswith("- ")}
                assert sorted(map(alternatives, lines)) == sorted(map(alternatives, our_lines)), (
                    compared
                )


def alternatives(line):
    return sorted(line.removeprefix("- ").split(" OR "))
