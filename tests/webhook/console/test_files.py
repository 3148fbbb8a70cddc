"""Files as a picture: what is in force, what is broken, what it finds."""

import asyncio
from pathlib import Path

import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint, write_policies
from tests.policies import exception, expansion_template
from tests.webhook.admission_policies.making import binding, kyverno
from tests.webhook.admission_policies.making import policy as admission_policy
from webhook import log
from webhook.console import pages
from webhook.console.files import FilesSource, Place
from webhook.console.picture import Picture, Shown
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.known import ADMISSION_ALONE, TARGETS

LOG = log.Log(lambda _: None).logger("test")


class Follower:
    """A source whose files are read when a test says so."""

    def __init__(self, policies: Path, *manifests: Path) -> None:
        client = Client(targets=TARGETS, drivers=[RegoDriver()], reviewed_targets=ADMISSION_ALONE)
        self.source = FilesSource(Place((policies,), manifests), client, Shown(), LOG)

    def look(self) -> Picture:
        return self.source.read()


def test_a_constraint_that_breaks_is_degraded_and_one_that_never_was_good_is_an_error(
    tmp_path: Path,
):
    write_policies(tmp_path, REQUIRED_LABELS, constraint("good", "owner"))
    follower = Follower(tmp_path)
    assert {item.state for item in follower.look().policies} == {"active"}
    (tmp_path / "1.yaml").write_text(constraint("good", "[1]"))
    (tmp_path / "2.yaml").write_text(constraint("never", "[1]"))
    states = {item.name: item.state for item in follower.look().policies}
    assert states == {"requiredlabel": "active", "good": "degraded", "never": "error"}


def test_an_exception_is_in_the_state_that_a_cluster_would_report(tmp_path: Path):
    """An exception of a file was active although it had ended, or named no constraint."""
    of_owner, pod = (
        "RequiredLabel/owner",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    )
    failing = [{"name": "f", "expression": "object.metadata.nothing == 1"}]
    match = {"name": "p"}
    listed = [
        exception("good", of_owner, match=match),
        exception("over", of_owner, match=match, expires="2020-01-01T00:00:00Z"),
        exception("early", of_owner, match=match, notBefore="2098-01-01T00:00:00Z"),
        exception("astray", "RequiredLabel/none", match=match),
        exception("failing", of_owner, match=match, matchConditions=failing),
        exception("broken", of_owner),
    ]
    write_policies(tmp_path, REQUIRED_LABELS, constraint("owner", "owner"))
    (tmp_path / "exceptions.yaml").write_text(yaml.safe_dump_all(listed))
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "pod.yaml").write_text(yaml.safe_dump(pod))
    shown = pages.exceptions(Follower(tmp_path, objects).look(), {})["exceptions"]
    states = {row["name"]: (row["state"], row["told"], row["message"][:19]) for row in shown}
    assert states == {
        "good": ("active", "Active", ""),
        "over": ("not for admission", "Expired", "it ended at 2020-01"),
        "early": ("pending", "Pending", "it begins at 2098-0"),
        "astray": ("error", "Invalid", "there is no constra"),
        "failing": ("active", "Active", "an object was not e"),
        "broken": ("error", "Invalid", "it would excuse eve"),
    }


def test_a_mutator_and_what_is_wrong_with_it_is_shown(tmp_path: Path):
    mutator = (
        "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: a}\nspec: {}\n"
    )
    write_policies(tmp_path, mutator)
    [item] = Follower(tmp_path).look().policies
    assert (item.category, item.kind, item.state) == ("mutator", "Assign", "error")
    assert item.faults


def test_a_policy_about_plans_says_that_it_enforces_nothing_here(tmp_path: Path):
    """As a replica says it in a status."""
    about = "validation.resourcechange.terraform.cloud.google.com"
    of_plans = REQUIRED_LABELS.replace("admission.k8s.gatekeeper.sh", about)
    write_policies(tmp_path, of_plans, constraint("one", "owner").replace("match:", "# of any:"))
    found = {item.kind: (item.state, item.faults) for item in Follower(tmp_path).look().policies}
    why = f"enforces nothing here: it is for {about} alone"
    assert found == {
        "ConstraintTemplate": ("not for admission", (why,)),
        "RequiredLabel": ("not for admission", (f"its template {why}",)),
    }


def test_an_object_in_a_namespace_that_is_among_the_manifests_is_selected_by_its_labels(
    tmp_path: Path,
):
    only = constraint("one", "owner", extra="").replace(
        "match: {", "match: {namespaceSelector: {matchLabels: {team: a}}, "
    )
    policies = write_policies(tmp_path / "p", REQUIRED_LABELS, only)
    manifests = tmp_path / "m.yaml"
    texts = [
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: a, owner: x}}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: b, labels: {owner: x}}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: in-a, namespace: a}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: in-b, namespace: b}}",
    ]
    manifests.write_text("\n---\n".join(texts))
    found = Follower(policies, manifests).look()
    assert found.violations is not None
    assert [(item.name, item.place) for item in found.violations] == [("in-a", f"{manifests}:5")]


def test_manifests_that_cannot_be_read_are_reported_and_the_others_reviewed(tmp_path: Path):
    policies = write_policies(tmp_path / "p", REQUIRED_LABELS, constraint("one", "owner"))
    manifests = write_policies(
        tmp_path / "m", "{[", "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
    )
    found = Follower(policies, manifests, tmp_path / "gone").look()
    assert len(found.trouble) == 2
    assert found.violations is not None
    assert len(found.violations) == 1


def test_who_waits_for_a_picture_gets_the_newest():
    async def wait() -> int:
        shown = Shown()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shown.changed(0))
            await asyncio.sleep(0)
            shown.swap(shown.picture)
            shown.swap(shown.picture)
        return waiting.result()

    assert asyncio.run(wait()) == 2


def test_manifests_are_reviewed_as_they_would_be_stored_and_with_what_they_imply(tmp_path: Path):
    policies, manifests = tmp_path / "policies", tmp_path / "manifests"
    policies.mkdir()
    manifests.mkdir()
    expansion = expansion_template("e")
    mutator = """
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: owner}
spec:
  match: {namespaces: [owned]}
  location: metadata.labels.owner
  parameters: {assign: {value: me}}
"""
    write_policies(
        policies, REQUIRED_LABELS, constraint("owned", "owner"), yaml.safe_dump(expansion), mutator
    )
    deployments = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": namespace, "namespace": namespace},
            "spec": {"template": {"spec": {}}},
        }
        for namespace in ("owned", "other")
    ]
    (manifests / "all.yaml").write_text(yaml.safe_dump_all(deployments))
    picture = Follower(policies, manifests).look()
    assert {(one.name, one.message.partition("]")[0]) for one in picture.violations or ()} == {
        ("other", "[Implied by e")
    }


def test_a_constraint_that_matches_nothing_says_so_on_its_page(tmp_path: Path):
    policies, manifests = tmp_path / "policies", tmp_path / "manifests"
    policies.mkdir()
    manifests.mkdir()
    misspelt = constraint("one", "owner").replace("Pod", "pods")
    write_policies(policies, REQUIRED_LABELS, misspelt)
    (manifests / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    [item] = [one for one in Follower(policies, manifests).look().policies if one.name == "one"]
    assert item.state == "active"
    assert item.advice[0] == "it matches no object of the manifests"
    assert 'names the kind "pods": is Pod meant?' in item.advice[1]


GROUP = """
apiVersion: waddle.dev/v1alpha1
kind: ConstraintGroup
metadata: {name: either}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [ConfigMap]}]}
  enforcementAction: warn
  members:
    owner: {kind: RequiredLabel, parameters: {label: owner}}
    team: {kind: RequiredLabel, parameters: {label: team}}
  expression: owner() || team()
"""


def test_a_group_is_shown_as_constraints_are_with_what_it_finds(tmp_path: Path):
    policies, manifests = tmp_path / "policies", tmp_path / "objects"
    policies.mkdir()
    manifests.mkdir()
    write_policies(policies, REQUIRED_LABELS, GROUP)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}}
    (manifests / "object.yaml").write_text(yaml.safe_dump(config_map))
    follower = Follower(policies, manifests)
    picture = follower.look()
    item = picture.policy("ConstraintGroup", "either")
    assert item is not None
    assert (item.category, item.state, item.action) == ("constraint", "active", "warn")
    [found] = picture.violations or ()
    assert (found.policy, found.name, found.action) == ("ConstraintGroup/either", "bare", "warn")
    (policies / "0.yaml").write_text("")
    item = follower.look().policy("ConstraintGroup", "either")
    assert item is not None
    assert item.state == "error"
    assert "member owner: there is no ConstraintTemplate" in item.faults[0]


def test_admission_policies_of_files_say_what_has_no_effect_or_a_doubtful_one(tmp_path: Path):
    reference = {"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    documents = [
        admission_policy("true", name="unbound"),
        admission_policy("params == null", name="limited", paramKind=kind),
        binding("lost", "nowhere"),
        binding("empty", "limited", paramRef=reference),
    ]
    write_policies(tmp_path, *map(yaml.safe_dump, documents))
    found = {item.name: item for item in Follower(tmp_path).look().policies}
    states = {name: item.state for name, item in found.items()}
    assert states == {
        "unbound": "not asked",
        "limited": "active",
        "lost": "not asked",
        "empty": "active",
    }
    assert found["unbound"].faults[0].startswith("no binding names it")
    assert found["lost"].faults[0].startswith("there is no ValidatingAdmissionPolicy nowhere")
    [advice] = found["empty"].advice
    assert advice.startswith("its paramRef finds no ConfigMap limits in namespace shop")
    assert (found["unbound"].advice, found["limited"].faults) == ((), ())


def test_the_page_of_a_policy_of_files_names_a_version_that_is_served_no_longer(tmp_path: Path):
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1beta1"], "resources": ["deployments"]}
    doubtful = kyverno()
    of_kyverno = doubtful["spec"]["matchConstraints"]["resourceRules"]
    of_kyverno[0] |= rule
    documents = [admission_policy("true", rule=rule), binding(), doubtful]
    write_policies(tmp_path, *map(yaml.safe_dump, documents))
    picture = Follower(tmp_path).look()
    for kind, name in (("ValidatingAdmissionPolicy", "p"), ("ValidatingPolicy", "k")):
        page = pages.policy(picture, {"kind": kind, "name": name})
        [advice] = [one for one in page["policy"]["advice"] if "apps/v1beta1" in one]
        assert "since Kubernetes 1.16" in advice
