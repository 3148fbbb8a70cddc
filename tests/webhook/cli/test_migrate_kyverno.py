"""Kyverno's policies at the commands migrate, check and test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.policy_library import POLICIES
from tests.webhook.cli.in_process import waddle
from tests.webhook.images.signing import new_key, public_pem
from webhook.images.policy import read_policy

if TYPE_CHECKING:
    from pathlib import Path

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}


def policy(expression: str = "true", kind: str = "ValidatingPolicy") -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS]},
            "validations": [{"expression": expression}],
        },
    }


def cluster_policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "old"},
        "spec": {"rules": list(rules)},
    }


def output_of(folder: Path, verb: list[str], *documents: Any) -> tuple[int, str, str]:
    """Exit code, output and what is said beside it, of a command about some documents."""
    file = folder / "policies.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    done = waddle(*verb, "-f", file)
    return done.returncode, done.stdout, done.stderr


MIGRATE = ["migrate", "kyverno"]


def test_a_policy_in_cel_runs_as_it_is_and_the_output_says_where(tmp_path: Path) -> None:
    code, output, _ = output_of(tmp_path, MIGRATE, policy())
    assert code == 0
    assert "as it is  ValidatingPolicy/p (" in output
    assert "every command reviews by the policy" in output


def test_what_a_policy_uses_and_is_not_here_is_named(tmp_path: Path) -> None:
    code, output, _ = output_of(tmp_path, MIGRATE, policy("random() == 'x'"))
    assert code == 1
    assert "missing: spec.validations[0].expression: random() gives another value" in output


def test_each_rule_of_a_policy_before_cel_is_reported_with_what_takes_its_place(
    tmp_path: Path,
) -> None:
    about = {"match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}
    cel = {"expressions": [{"expression": "object.metadata.name != 'x'"}]}
    old = cluster_policy(
        about | {"name": "a", "validate": {"cel": cel}},
        about | {"name": "b", "validate": {"pattern": {"spec": {"hostNetwork": False}}}},
        {"name": "c", "mutate": {"x": 1}},
        {"generate": {"x": 1}},
        about | {"name": "d", "validate": {"foreach": [{"list": "x"}]}},
        about | {"name": "e", "validate": {"cel": {"expressions": [{"expression": "objekt"}]}}},
    )
    file = tmp_path / "new.yaml"
    code, output, _ = output_of(tmp_path, [*MIGRATE, "--converted", str(file)], old)
    assert code == 1
    assert "differs: rule a: becomes ValidatingPolicy old-a" in output
    assert "differs: rule b: becomes ValidatingPolicy old-b" in output
    assert "rule c: mutate: write mutators" in output
    assert "rule [3]: generate: no equivalent" in output
    assert "rule d: validate: write a ValidatingPolicy, or a template in Rego or CEL (" in output
    assert "rule e: validate: write a ValidatingPolicy, or a template" in output
    made = list(yaml.safe_load_all(file.read_text()))
    assert [one["metadata"]["name"] for one in made] == ["old-a", "old-b"]
    checked = waddle("check", "-f", file)
    assert checked.stdout == "2 policies can be used\n"
    comments = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert len(comments) == 4
    assert comments[0].startswith("# Incomplete: ClusterPolicy/old: rule c: mutate: ")


def test_a_part_of_the_files_is_not_converted(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    file = tmp_path / "new.yaml"
    about = {"match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}
    pattern = about | {"name": "b", "validate": {"pattern": {"spec": {"hostNetwork": False}}}}
    words = [*MIGRATE, "-f", str(broken), "--converted", str(file)]
    code, _, stderr = output_of(tmp_path, words, cluster_policy(pattern))
    assert code == 2
    assert "nothing is written, because a file cannot be read" in stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("GeneratingPolicy", "makes no objects"), ("DeletingPolicy", "deletes no objects")],
)
def test_kinds_that_nothing_evaluates_are_missing(tmp_path: Path, kind: str, reason: str) -> None:
    code, output, _ = output_of(tmp_path, [*MIGRATE, "-o", "json"], policy(kind=kind))
    assert code == 1
    [one] = json.loads(output)
    assert (one["kind"], one["grade"]) == (kind, "missing")
    assert reason in one["notes"][0]["text"]


KEY = public_pem(new_key()).decode()
SIGNED = {
    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    "verifyImages": [
        {
            "imageReferences": ["registry.example/*"],
            "attestors": [
                {"entries": [{"keys": {"publicKeys": KEY, "rekor": {"ignoreTlog": True}}}]}
            ],
        }
    ],
}


def test_rules_about_images_become_verification_policies_and_constraints(tmp_path: Path) -> None:
    """The provider reads the written policies, and the library's template takes the constraint."""
    by_kms = {"imageReferences": ["a.b/*"], "attestors": [{"entries": [{"keys": {"kms": "a://"}}]}]}
    old = cluster_policy(SIGNED | {"name": "a"}, SIGNED | {"name": "b", "verifyImages": [by_kms]})
    image_policy = policy(
        "images.containers.map(i, verifyImageSignatures(i, [attestors.a])).all(e, e > 0)",
        "ImageValidatingPolicy",
    )
    cosign = {"key": {"data": KEY}, "ctlog": {"insecureIgnoreTlog": True}}
    image_policy["spec"]["attestors"] = [{"name": "a", "cosign": cosign}]
    file = tmp_path / "new.yaml"
    code, output, warned = output_of(
        tmp_path, [*MIGRATE, "--converted", str(file)], old, image_policy
    )

    assert code == 1
    becomes = "becomes VerificationPolicy {}, RequireSignedImages {}"
    assert f"differs: rule a: {becomes.format('old-a', 'old-a')}" in output
    assert "differs: rule a: mutateDigest: add policies/supply-chain/digests" in output
    assert "missing: rule b: verifyImages[0].attestors[0].entries[0].keys.kms: export" in output
    assert f"differs: {becomes.format('p', 'p')}" in output
    assert "the template policies/supply-chain/signed-images" in output
    assert "RequireSignedImages old-a and p may match the same image" in warned

    made = list(yaml.safe_load_all(file.read_text()))
    kinds = ["VerificationPolicy", "RequireSignedImages"] * 2
    assert [one["kind"] for one in made] == kinds
    for one in (made[0], made[2]):
        assert read_policy(one, no_file).count == 1
    template = POLICIES / "supply-chain" / "signed-images" / "template.yaml"
    checked = waddle("check", "-f", file, "-f", template)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.startswith("3 policies can be used\n")


def no_file(name: str) -> bytes:
    raise FileNotFoundError(name)


def test_the_rules_of_a_policy_of_one_namespace_become_policies_of_it(tmp_path: Path) -> None:
    about = {"match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}
    second = {"name": "b", "validate": {"pattern": {"a": "b"}}, **about}
    old = cluster_policy(SIGNED | {"name": "a"}, second)
    old["kind"] = "Policy"
    old["metadata"]["namespace"] = "team"
    code, output, _ = output_of(tmp_path, MIGRATE, old)
    assert code == 0
    assert "rule a: becomes VerificationPolicy team-old-a, RequireSignedImages team-old-a" in output
    assert "differs: rule b: becomes NamespacedValidatingPolicy old-b" in output


def test_two_policies_of_one_name_do_not_become_one(tmp_path: Path) -> None:
    old = cluster_policy(SIGNED)
    code, output, _ = output_of(tmp_path, MIGRATE, old, old)
    assert code == 1
    assert output.count("becomes VerificationPolicy old") == 1
    assert (
        "VerificationPolicy old is already the name of another policy: rename one of the two"
        in output
    )


def test_an_image_validating_policy_that_cannot_be_expressed_is_named(tmp_path: Path) -> None:
    code, output, _ = output_of(tmp_path, MIGRATE, policy(kind="ImageValidatingPolicy"))
    assert code == 1
    assert "missing: spec.validations[0].expression: true: write conditions in CEL" in output


def test_files_without_a_policy_of_kyverno_are_reported(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    code, _, errors = output_of(tmp_path, MIGRATE, pod)
    assert code == 2
    assert "have no policy of Kyverno" in errors


def test_check_compiles_policies_in_cel_and_says_where_one_is_wrong(tmp_path: Path) -> None:
    assert output_of(tmp_path, ["check"], policy())[:2] == (0, "1 policy can be used\n")
    code, output, _ = output_of(tmp_path, ["check"], policy("objekt == 1"))
    assert code == 1
    line = 1 + (tmp_path / "policies.yaml").read_text().splitlines().index(
        "  - expression: objekt == 1"
    )
    expected = f"policies.yaml:{line}: ValidatingPolicy/p: spec.validations[0].expression: ERROR: "
    assert expected in output
    assert "0 policies can be used, 1 cannot" in output


@pytest.mark.parametrize("spec", [[], "x", {"validations": [1]}, {"validations": {"a": 1}}])
def test_check_names_a_spec_of_another_shape(tmp_path: Path, spec: Any) -> None:
    code, output, _ = output_of(tmp_path, ["check"], policy() | {"spec": spec})
    assert code == 1
    assert "policies.yaml:" in output
    assert ": ValidatingPolicy/p: " in output


def test_check_names_the_kinds_that_nothing_evaluates(tmp_path: Path) -> None:
    code, output, _ = output_of(tmp_path, ["check"], policy(), cluster_policy())
    assert code == 0
    assert "ClusterPolicy/old: not evaluated: " in output
    code, _, alone = output_of(tmp_path, ["check"], cluster_policy())
    assert code == 2
    assert "policies.yaml:1: ClusterPolicy old: not evaluated: " in alone


def test_test_names_what_it_does_not_evaluate(tmp_path: Path) -> None:
    code, _, errors = output_of(tmp_path, ["test"], cluster_policy())
    assert code == 2
    assert "policies.yaml:1: ClusterPolicy old: not evaluated: " in errors


def old_exception(*names: str, **spec: Any) -> dict[str, Any]:
    excused = [{"policyName": name, "ruleNames": ["*"]} for name in names]
    match = {"any": [{"resources": {"kinds": ["Pod"], "names": ["bad"]}}]}
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "bad-pods", "namespace": "shop"},
        "spec": {"match": match, "exceptions": excused, **spec},
    }


def test_an_older_exception_is_written_for_the_policies_that_its_rules_become(
    tmp_path: Path,
) -> None:
    target = tmp_path / "converted.yaml"
    command = ["migrate", "kyverno", "--converted", str(target)]
    code, output, _ = output_of(tmp_path, command, cluster_policy(OWNER), old_exception("old"))
    assert code == 0, output
    assert "becomes PolicyException.policies.kyverno.io bad-pods" in output
    [becomes] = [
        one for one in yaml.safe_load_all(target.read_text()) if one["kind"] == "PolicyException"
    ]
    assert becomes["spec"]["policyRefs"] == [{"kind": "ValidatingPolicy", "name": "old"}]
    code, output, _ = output_of(tmp_path, command, cluster_policy(OWNER), old_exception("none"))
    assert code == 1
    assert "none is not among the files: give it with -f" in output


def test_an_older_exception_of_a_test_excuses_its_rules(tmp_path: Path) -> None:
    with_tests(tmp_path, kyverno_test(expected("skip", "bad"), exceptions=["../e.yaml"]))
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(old_exception("old")))
    assert "1 of 1 case equal" in output_of(tmp_path, MIGRATE, cluster_policy(OWNER))[1]
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(old_exception("old", podSecurity=[{"a": 1}])))
    _, output, _ = output_of(tmp_path, MIGRATE, cluster_policy(OWNER))
    assert "PolicyException bad-pods: spec.podSecurity: exclude the controls" in output


OWNER = {
    "name": "owner",
    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    "validate": {"message": "no owner", "pattern": {"metadata": {"labels": {"owner": "?*"}}}},
}


def kyverno_test(*results: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Test", "metadata": {"name": "t"}}
    files = {"policies": ["../policies.yaml"], "resources": ["pods.yaml"]}
    return {**head, **files, "results": list(results), **fields}


def expected(result: str, name: str, rule: str = "owner") -> dict[str, Any]:
    return {"policy": "old", "rule": rule, "kind": "Pod", "resources": [name], "result": result}


def with_tests(folder: Path, test: dict[str, Any]) -> None:
    """Write a test into the folder beside policies that Kyverno's own have."""
    below = folder / ".kyverno-test"
    below.mkdir()
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": []},
        }
        for name, labels in (("good", {"owner": "a"}), ("bad", {}))
    ]
    (below / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    (below / "kyverno-test.yaml").write_text(yaml.safe_dump(test))


def test_the_tests_of_policies_are_run_by_what_they_become(tmp_path: Path) -> None:
    with_tests(tmp_path, kyverno_test(expected("pass", "good"), expected("fail", "bad")))
    code, output, _ = output_of(tmp_path, MIGRATE, cluster_policy(OWNER))
    assert code == 0
    assert "Their tests (kyverno-test.yaml): 2 of 2 cases equal" in output


def test_each_case_that_differs_is_named(tmp_path: Path) -> None:
    test = kyverno_test(expected("pass", "good"), expected("pass", "bad"), expected("fail", "gone"))
    with_tests(tmp_path, test)
    code, output, _ = output_of(tmp_path, MIGRATE, cluster_policy(OWNER))
    place = f"{tmp_path}/.kyverno-test/kyverno-test.yaml:1"
    assert code == 1
    assert "1 of 3 cases equal" in output
    assert f"  {place}: old/owner: Pod bad is to pass: expected pass, got fail: no owner" in output
    assert "no Pod gone is in the files of resources" in output
    code, output, _ = output_of(tmp_path, [*MIGRATE, "-o", "json"], cluster_policy(OWNER))
    rows = json.loads(output)
    assert [(one["kind"], one["grade"]) for one in rows] == [
        ("ClusterPolicy", "differs"),
        ("Test", "differs"),
    ]
    assert len(rows[1]["notes"]) == 2


def test_a_test_that_cannot_be_read_leaves_the_answer_open(tmp_path: Path) -> None:
    with_tests(tmp_path, {})
    (tmp_path / ".kyverno-test/kyverno-test.yaml").write_text("a: [")
    code, _, complaints = output_of(tmp_path, MIGRATE, cluster_policy(OWNER))
    assert code == 2
    assert "kyverno-test.yaml: " in complaints


def test_a_test_that_names_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with_tests(tmp_path, kyverno_test(expected("pass", "good"), resources=["gone.yaml"]))
    code, output, _ = output_of(tmp_path, MIGRATE, cluster_policy(OWNER))
    assert code == 1
    assert "gone.yaml: No such file or directory; correct the name, or add the file" in output
    assert output.count("kyverno-test.yaml:") == 1, "the line names its file once"
