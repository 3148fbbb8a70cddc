"""A policy that cannot be used hides nothing that the others find, in no command."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.policies import exception
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import DENY, constraint, pod, template

UNUSABLE = {
    "can never give a message": template("K8sBroken", "package p\nviolation { true }"),
    "does not parse": template("K8sBroken", "package p\nviolation[{"),
    "does not compile": template("K8sBroken", 'package p\nviolation[{"msg": x}] { true }'),
    "has a wrong schema": template("K8sBroken", DENY, schema={"type": 5}),
    "has a wrong spec": {**template("K8sBroken"), "spec": []},
    "has no target": {**template("K8sBroken"), "spec": {"targets": []}},
}
GOOD = [template("K8sDeny", DENY), constraint("K8sDeny", "denies")]


def folder_of(path, *documents):
    """A folder with these, each in a file."""
    for number, document in enumerate(documents):
        (path / f"{number}.yaml").write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("why", UNUSABLE)
def test_test_judges_by_the_others_and_names_it(tmp_path, why):
    broken = [UNUSABLE[why], constraint("K8sBroken", "broken")]
    run = waddle("test", "-f", folder_of(tmp_path, *broken, *GOOD, pod()))
    assert run.returncode == 1
    assert "deny    K8sDeny/denies" in run.stdout
    assert "k8sbroken" in run.stderr
    assert "not decided" not in run.stderr  # once, and not of each object
    assert "Traceback" not in run.stderr


def test_nothing_found_is_not_said_where_not_all_was_judged(tmp_path):
    run = waddle("test", "-f", folder_of(tmp_path, UNUSABLE["does not parse"], pod()))
    assert run.returncode == 1
    assert "0 violations" not in run.stdout
    assert "the check is incomplete (faults: 1)" in run.stdout


@pytest.mark.parametrize("why", UNUSABLE)
def test_check_finds_the_effect_of_the_others(tmp_path, why):
    broken = [UNUSABLE[why], constraint("K8sBroken", "broken")]
    run = waddle("check", "-o", "json", "-f", folder_of(tmp_path, *broken, *GOOD, pod()))
    found = json.loads(run.stdout)
    assert run.returncode == 1
    assert "k8sbroken" in json.dumps(found["problems"])
    assert "denies" in json.dumps(found["manifests"])


def test_verify_runs_the_tests_of_the_others(tmp_path):
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(UNUSABLE["can never give a message"]))
    (tmp_path / "of_bad.yaml").write_text(yaml.safe_dump(constraint("K8sBroken", "broken")))
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(GOOD[0]))
    (tmp_path / "of_good.yaml").write_text(yaml.safe_dump(GOOD[1]))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod()))
    case = {"name": "denied", "object": "pod.yaml", "assertions": [{"violations": 1}]}
    suite = {
        "apiVersion": "test.gatekeeper.sh/v1alpha1",
        "kind": "Suite",
        "metadata": {"name": "s"},
        "tests": [
            {
                "name": name,
                "template": f"{name}.yaml",
                "constraint": f"of_{name}.yaml",
                "cases": [case],
            }
            for name in ("bad", "good")
        ],
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    run = waddle("verify", "-v", tmp_path)
    assert run.returncode == 1
    assert "hooks.hooks_builtin" in run.stdout + run.stderr
    assert "PASS" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("given", "spec", "warning"),
    [
        ("K8sDeny/gone", {}, "there is no constraint K8sDeny/gone"),
        (
            "K8sDeny/closed",
            {},
            "K8sDeny closed allows no exceptions: its annotation waddle.dev/exceptions says so",
        ),
        (
            "K8sDeny/denies",
            {"matchConditions": [{"name": "owned", "expression": "object.metadata.owner == 'me'"}]},
            (
                "an object was not excused, because its conditions could not be evaluated: "
                "expression 'object.metadata.owner == 'me'' resulted in error: no such key: owner"
            ),
        ),
        (
            "K8sDeny/denies",
            {"notBefore": "2098-01-01T00:00:00Z"},
            "it begins at 2098-01-01T00:00:00Z, and has no effect before",
        ),
    ],
)
def test_an_exception_that_excuses_less_than_it_says_is_named(tmp_path, given, spec, warning):
    closed = constraint(
        "K8sDeny", "closed", metadata={"annotations": {"waddle.dev/exceptions": "none"}}
    )
    pods = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
    excuses = exception("e", given, match=pods, **spec)
    folder = folder_of(tmp_path, *GOOD, closed, pod(), excuses)
    run = waddle("test", "-f", folder)
    assert run.returncode == 1
    assert "deny    K8sDeny/denies" in run.stdout
    assert run.stderr == f"WARNING - ClusterPolicyException e: {warning}\n"
    assert (
        f"4.yaml:1: ClusterPolicyException/e: {warning}\n" in waddle("check", "-f", folder).stdout
    )


@pytest.mark.parametrize("annotations", [{"waddle.dev/exceptions": ["all"]}, "text", ["all"]])
def test_an_annotation_of_another_type_allows_no_exception_of_a_namespace(tmp_path, annotations):
    """Both commands ended with a traceback."""
    denies = constraint("K8sDeny", "odd", metadata={"annotations": annotations})
    excuses = exception("e", "K8sDeny/odd", namespace="shop")
    folder = folder_of(tmp_path, template("K8sDeny", DENY), denies, pod(), excuses)
    tested = waddle("test", "-f", folder)
    assert "deny    K8sDeny/odd" in tested.stdout
    assert "K8sDeny odd allows no exceptions" in tested.stderr
    assert "K8sDeny odd allows no exceptions" in waddle("check", "-f", folder).stdout


def test_check_points_to_the_exception_of_the_right_namespace(tmp_path):
    shop, pay = (exception("e", "K8sDeny/gone", namespace=name) for name in ("shop", "pay"))
    run = waddle("check", "-f", folder_of(tmp_path, *GOOD, shop, pay | {"spec": {}}))
    places = [
        line.split(": ")[1:3] for line in run.stdout.splitlines() if "PolicyException/" in line
    ]
    files = {title: place.rpartition("/")[2] for place, title in places}
    assert files == {"PolicyException/pay/e": "3.yaml:1", "PolicyException/shop/e": "2.yaml:1"}
    assert "1 PolicyException can be used, 1 cannot" in run.stdout


def test_what_is_wrong_with_an_exception_is_said_after_its_name_once(tmp_path):
    never = exception("e", "K8sDeny/denies", namespace="shop", expires=None)
    run = waddle("test", "-f", folder_of(tmp_path, *GOOD, pod(), never))
    fault = "3.yaml:1: PolicyException shop/e: spec.expires: Required value\n"
    assert run.stderr.endswith(fault)
    assert "PolicyException e" not in run.stderr


def test_each_fault_of_a_policy_names_file_and_line(tmp_path):
    """At ``test`` and ``check``, whatever the kind; and no policy with a fault counts as usable."""
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g"},
        "spec": {"members": {"a": {"kind": "K8sDeny"}}, "expression": "a() &&"},
    }
    provider = {
        "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
        "kind": "Provider",
        "metadata": {"name": "p"},
        "spec": {"url": "http://p", "timeout": 3},
    }
    unknown = constraint("Unknown", "c")
    never = exception("e", "K8sDeny/denies", namespace="shop", expires=None)
    folder = folder_of(tmp_path, template("K8sDeny", DENY), unknown, group, provider, never, pod())
    tested = waddle("test", "-f", folder).stderr.splitlines()
    checked = waddle("check", "-f", folder)
    problems = json.loads(waddle("check", "-f", folder, "-o", "json").stdout)["problems"]
    places = {one["name"]: one["place"] for one in problems if one["severity"] == "error"}
    for number, name in enumerate(("c", "g", "p", "e"), start=1):
        place = f"{number}.yaml:1"
        assert any(place in line for line in tested), (name, tested)
        assert place in checked.stdout
        assert places[name].endswith(place)
    usable = "1 policy, 0 PolicyExceptions and 0 Providers can be used, 4 cannot"
    assert usable in checked.stdout.splitlines()


def test_only_objects_besides_policies_are_counted(tmp_path):
    denies = constraint("K8sDeny", "denies", match={"kinds": [{"apiGroups": [""], "kinds": ["*"]}]})
    denies["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    excused = exception("e", "K8sDeny/denies", namespace="shop", match={"name": "other"})
    folder = folder_of(tmp_path, template("K8sDeny", DENY), denies, excused, pod())
    assert "in 1 reviewed object, by 1 constraint" in waddle("test", "-f", folder).stdout
    checked = waddle("check", "-f", folder).stdout
    assert "2 policies and 1 PolicyException can be used\n" in checked
