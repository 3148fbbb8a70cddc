"""`waddle migrate kubewarden` writes a ConstraintGroup for each policy group that has an equivalent."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

POD = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
MODULES = "registry://ghcr.io/kubewarden/policies"
TRUSTED = {
    "module": f"{MODULES}/trusted-repos:v0.2.0",
    "settings": {"registries": {"allow": ["registry.example.com"]}},
}
PRIVILEGED = {"module": f"{MODULES}/pod-privileged:v0.3.2"}
OWNED = {
    "module": f"{MODULES}/cel-policy:v1.0.0",
    "settings": {
        "variables": [
            {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
        ],
        "validations": [{"expression": "'owner' in variables.labels", "message": "no owner"}],
    },
}
LIBRARY = (
    "general/allowed-registries",
    "pod-security-baseline/privileged-containers",
)


def group(kind: str = "ClusterAdmissionPolicyGroup", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "trusted", **({"namespace": "shop"} if kind[0] == "A" else {})}
    spec = {"rules": [POD | {"operations": ["CREATE", "UPDATE"]}], "message": "No.", **spec}
    return {
        "apiVersion": "policies.kubewarden.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def migrate(
    folder: Path, *documents: Any, kinds: tuple[str, ...] = ()
) -> tuple[int, list[Any], str]:
    """Exit code, what is written, and what is said."""
    (folder / "groups.yaml").write_text(yaml.safe_dump_all(documents))
    options = [word for kind in kinds for word in ("--kind", kind)]
    done = waddle("migrate", "kubewarden", "-f", folder / "groups.yaml", *options)
    return done.returncode, list(yaml.safe_load_all(done.stdout)), done.stderr


def pod(name: str, image: str, *, privileged: bool = False, **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": image, "securityContext": {"privileged": privileged}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"containers": [container]},
    }


def test_what_is_written_decides_as_the_group_did(tmp_path: Path) -> None:
    members = {"trusted": TRUSTED, "privileged": PRIVILEGED, "owned": OWNED}
    code, written, output = migrate(
        tmp_path,
        group(
            policies=members, expression="trusted() || (privileged() && owned())", mode="monitor"
        ),
    )
    assert (code, output) == (0, "")
    assert [one["kind"] for one in written] == ["ConstraintTemplate", "ConstraintGroup"]
    spec = written[1]["spec"]
    assert spec["match"] == {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
    assert (spec["enforcementAction"], spec["message"]) == ("dryrun", "No.")
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "written.yaml").write_text(yaml.safe_dump_all(written))
    for name in LIBRARY:
        template = ROOT / "policies" / name / "template.yaml"
        (policies / f"{Path(name).name}.yaml").write_text(template.read_text())
    objects = [
        pod("trusted", "registry.example.com/a:1", privileged=True),
        pod("owned", "other/a:1", owner="me"),
        pod("nobody", "other/a:1"),
        pod("privileged", "other/a:1", privileged=True, owner="me"),
    ]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    done = waddle("test", "-f", policies, "-f", tmp_path / "objects.yaml", "-o", "json")
    found = [one["violatingObject"]["metadata"]["name"] for one in yaml.safe_load(done.stdout)]
    assert sorted(found) == ["nobody", "privileged"]


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        ("^team-", "team-a", "a-team-b"),
        ("-team$", "a-team", "a-team-b"),
        ("cc", "acca", "cab"),
        ("^a|b$", "cab", "cabc"),
        ("^team-[0-9]+$", "team-42", "team-42-a"),
    ],
)
def test_a_pattern_of_a_label_matches_a_part_of_the_value(
    pattern: str, accepted: str, refused: str, tmp_path: Path
) -> None:
    """The library's policy matches whole values, and refused what Kubewarden accepted."""
    settings = {"mandatory_labels": ["owner"], "constrained_labels": {"owner": pattern}}
    labels = {"module": f"{MODULES}/safe-labels:v1", "settings": settings}
    code, written, _ = migrate(tmp_path, group(policies={"labels": labels}, expression="labels()"))
    assert code == 0
    template = ROOT / "policies" / "general/required-labels/template.yaml"
    objects = [pod("accepted", "a", owner=accepted), pod("refused", "a", owner=refused)]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([*written, *objects]))
    done = waddle("test", "-f", template, "-f", tmp_path / "all.yaml", "-o", "json")
    found = [one["violatingObject"]["metadata"]["name"] for one in yaml.safe_load(done.stdout)]
    assert found == ["refused"]


@pytest.mark.parametrize(
    ("module", "settings", "kind", "difference"),
    [
        (
            "allow-privilege-escalation-psp",
            {"default_allow_privilege_escalation": True},
            "DisallowPrivilegeEscalation",
            "also refuses containers without allowPrivilegeEscalation",
        ),
        (
            "allow-privilege-escalation-psp",
            {"default_allow_privilege_escalation": False},
            "DisallowPrivilegeEscalation",
            "",
        ),
        ("host-namespaces-psp", {}, "DisallowHostNamespaces", "it refuses host ports, too"),
        ("safe-labels", {"mandatory_labels": ["a"]}, "RequireLabels", "an empty value"),
        ("pod-privileged", {}, "DisallowPrivilegedContainers", ""),
    ],
)
def test_a_member_that_decides_otherwise_is_named(
    module: str, settings: dict[str, Any], kind: str, difference: str, tmp_path: Path
) -> None:
    """The library's policy was weaker or stricter, and nobody was told."""
    member = {"module": f"{MODULES}/{module}:v1", "settings": settings}
    document = group(policies={"m": member}, expression="m()")
    code, written, output = migrate(tmp_path, document)
    assert (code, written[-1]["spec"]["members"]["m"]["kind"]) == (0, kind)
    assert bool(output) is bool(difference)
    assert difference in output
    _, _, of_template = migrate(tmp_path, document, kinds=(f"{module}=Mine",))
    assert not of_template


def test_a_group_of_a_namespace_keeps_to_it_and_own_templates_stand_for_modules(
    tmp_path: Path,
) -> None:
    mine = {"module": "registry://example.com/my-policy@sha256:00", "settings": {"a": 1}}
    rules = [
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "operations": ["DELETE"]}
    ]
    document = group(
        "AdmissionPolicyGroup",
        policies={"mine": mine},
        expression="mine()",
        rules=rules,
        backgroundAudit=False,
        objectSelector={"matchLabels": {"a": "b"}},
        matchConditions=[{"name": "x", "expression": "true"}],
    )
    code, (written,), output = migrate(tmp_path, document, kinds=("my-policy=Mine",))
    assert code == 0
    assert written["spec"]["members"] == {"mine": {"kind": "Mine", "parameters": {"a": 1}}}
    assert written["spec"]["match"] == {
        "kinds": [{"apiGroups": ["networking.k8s.io"], "kinds": ["Ingress"]}],
        "namespaces": ["shop"],
        "scope": "Namespaced",
        "labelSelector": {"matchLabels": {"a": "b"}},
    }
    assert "backgroundAudit" not in output, "it is written already"
    assert written["spec"]["enforcementAction"] == "scoped"
    assert "matchConditions" in output
    assert "its operations are DELETE" in output


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ({"module": "registry://example.com/zork:v1"}, "--kind zork=KIND"),
        ({}, "it names no module"),
        (TRUSTED | {"settings": {"tags": {"reject": ["latest"]}}}, "its settings tags"),
        (
            PRIVILEGED | {"settings": {"skip_init_containers": True}},
            "DisallowPrivilegedContainers has no equivalent of the setting skip_init_containers",
        ),
        (
            {**OWNED, "settings": {"validations": [{"expression": "kw.k8s.list()"}]}},
            "its expressions are invalid here",
        ),
    ],
)
def test_what_has_no_equivalent_is_named_and_the_other_groups_are_written(
    member: dict[str, Any], why: str, tmp_path: Path
) -> None:
    good = group(policies={"a": TRUSTED}, expression="a()")
    bad = group(policies={"a": member}, expression="a()")
    code, (written,), output = migrate(tmp_path, bad, good)
    assert code == 1
    assert written["spec"]["members"]["a"]["kind"] == "AllowRegistries"
    assert f"not written: member a: {why}" in output or why in output


def test_a_part_of_the_groups_does_not_look_like_all_of_them(tmp_path: Path) -> None:
    good = group(policies={"trusted": TRUSTED}, expression="trusted()")
    bad = group(policies={"x": {"module": "other/one:v1"}}, expression="x()")
    bad["metadata"]["name"] = "bad\nkind: Namespace"
    file = tmp_path / "groups.yaml"
    file.write_text(yaml.safe_dump_all([good, bad]))
    done = waddle("migrate", "kubewarden", "-f", file)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("# Incomplete: ClusterAdmissionPolicyGroup bad")
    assert "no template replaces other/one:v1" in first
    assert second == "apiVersion: waddle.dev/v1alpha1"
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    done = waddle("migrate", "kubewarden", "-f", file, "-f", broken)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is written, because a file cannot be read" in done.stderr


def test_groups_of_two_namespaces_with_one_name_do_not_replace_each_other(tmp_path: Path) -> None:
    shop = group("AdmissionPolicyGroup", policies={"a": TRUSTED}, expression="a()")
    bank = group("AdmissionPolicyGroup", policies={"a": TRUSTED}, expression="!a()")
    bank["metadata"]["namespace"] = "bank"
    same = group(policies={"a": TRUSTED}, expression="a()")
    same["metadata"]["name"] = "bank.trusted"
    code, written, output = migrate(tmp_path, shop, bank, same)
    assert [one["metadata"]["name"] for one in written] == ["shop.trusted", "bank.trusted"]
    assert code == 1
    assert (
        "ClusterAdmissionPolicyGroup bank.trusted: not written: it would replace "
        "ConstraintGroup/bank.trusted, which is written for AdmissionPolicyGroup bank/trusted"
    ) in output


def test_templates_of_two_members_never_have_one_name(tmp_path: Path) -> None:
    """The last to be applied decided for both."""
    no = {**OWNED, "settings": {"validations": [{"expression": "false"}]}}
    first, second = group(policies={"c": OWNED}, expression="c()"), single("a.b-c", **no)
    first["metadata"]["name"] = "a-b"
    code, written, output = migrate(tmp_path, first, second, first)
    assert (code, output.count("not written")) == (1, 1), "the third has the name of the first"
    templates = [one for one in written if one["kind"] == "ConstraintTemplate"]
    kinds = [one["spec"]["crd"]["spec"]["names"]["kind"] for one in templates]
    assert kinds[0] == "ABC"
    assert kinds[1].startswith("ABC")
    assert len(set(kinds)) == 2
    assert written[1]["spec"]["members"] == {"c": {"kind": kinds[0]}}
    assert written[3]["kind"] == kinds[1]
    (tmp_path / "written.yaml").write_text(yaml.safe_dump_all(written))
    done = waddle("check", "-f", tmp_path / "written.yaml")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("member", "expression", "why"),
    [
        ("a", "a() > 1", "an expression is made of members"),
        ("a", "a() && b()", "spec.expression names b, members are: a"),
        ("a", "", "spec.expression"),
        ("a-b", "a() - b()", "spec.members.a-b: a member's name is an identifier"),
    ],
)
def test_a_group_that_would_be_refused_is_not_written(
    member: str, expression: str, why: str, tmp_path: Path
) -> None:
    code, _, output = migrate(tmp_path, group(policies={member: TRUSTED}, expression=expression))
    assert code == 1
    assert "ClusterAdmissionPolicyGroup trusted: not written: " in output
    assert why in output


@pytest.mark.parametrize(
    ("scopes", "scope", "note"),
    [
        (["Cluster"], "Cluster", ""),
        (["*", None], None, ""),
        (["Namespaced", "Namespaced"], "Namespaced", ""),
        (["Cluster", "*"], None, "its rules have several scopes, and a match has a single one"),
    ],
)
def test_the_scope_of_rules_is_kept(
    scopes: list[str | None], scope: str | None, note: str, tmp_path: Path
) -> None:
    rules = [POD | ({} if one is None else {"scope": one}) for one in scopes]
    code, (written,), output = migrate(
        tmp_path, group(policies={"a": TRUSTED}, expression="a()", rules=rules)
    )
    assert code == 0
    assert written["spec"]["match"].get("scope") == scope
    assert note in output


def test_nothing_of_kubewarden_is_no_success(tmp_path: Path) -> None:
    code, _, output = migrate(tmp_path, pod("a", "b"))
    assert code == 2
    assert "no policy group" in output


def single(name: str, **spec: Any) -> dict[str, Any]:
    policy = group("ClusterAdmissionPolicy", **spec)
    del policy["spec"]["message"]
    return policy | {"metadata": {"name": name}}


def test_a_policy_that_is_in_no_group_becomes_a_constraint(tmp_path: Path) -> None:
    code, written, output = migrate(
        tmp_path,
        single("trusted", **TRUSTED, mode="monitor"),
        single("owned", **OWNED),
        single("changes", **PRIVILEGED, mutating=True),
        single("mine", module="example.com/mine:v1"),
    )
    assert code == 1
    assert "ClusterAdmissionPolicy changes: not written: it changes objects" in output
    assert "ClusterAdmissionPolicy mine: not written: no template replaces" in output
    trusted, template, owned = written
    assert (trusted["kind"], trusted["metadata"]["name"]) == ("AllowRegistries", "trusted")
    assert trusted["spec"] == {
        "match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]},
        "enforcementAction": "dryrun",
        "parameters": {"registries": ["registry.example.com"]},
    }
    assert owned["kind"] == template["spec"]["crd"]["spec"]["names"]["kind"]
    (tmp_path / "written.yaml").write_text(yaml.safe_dump_all([template, owned]))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod("nobody", "a:1")))
    done = waddle("test", "-f", tmp_path / "written.yaml", "-f", tmp_path / "pod.yaml")
    assert done.returncode == 1
    assert "no owner" in done.stdout
