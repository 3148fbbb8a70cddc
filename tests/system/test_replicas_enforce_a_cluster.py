"""Three replicas beside a real API server: what is applied is enforced by all, and said so."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.gate import Gate
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    CRD_PATH,
    NAMESPACE,
    STATUSES,
    TEMPLATES,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    try_request,
)
from tests.system.rounds import rest
from webhook.api.revision import digest_of

CONFIG = f"/apis/config.gatekeeper.sh/v1alpha1/namespaces/{NAMESPACE}/configs/config"


@pytest.fixture(autouse=True)
def nothing_stays(plane: Plane) -> Iterator[None]:
    """Deletes the Config and the synced objects after a test."""
    yield
    try_request(plane.api, "DELETE", CONFIG)
    try_request(plane.api, "DELETE", f"{CONFIG_MAPS}/marker")


def all_deny(replicas: list[Replica], word: str) -> None:
    """Wait until every replica denies the word."""
    for replica in replicas:
        until(lambda replica=replica: replica.denies(word), f"{replica.name} denies {word}")


def all_allow(replicas: list[Replica], word: str) -> None:
    """Wait until every replica allows the word."""
    for replica in replicas:
        until(lambda replica=replica: not replica.denies(word), f"{replica.name} allows {word}")


def enforced(plane: Plane, path: str, count: int = 3) -> bool:
    """Whether byPod shows the present generation, without errors, for so many Pods."""
    document = plane.api.request("GET", path)
    entries = plane.by_pod(path)
    return len(entries) == count and all(
        entry["observedGeneration"] == document["metadata"]["generation"]
        and not entry.get("errors")
        and "webhook" in entry["operations"]
        and entry.get("enforced", True)
        for entry in entries
    )


def test_what_is_applied_is_enforced_by_all_and_shown_by_pod(
    plane: Plane, trio: list[Replica]
) -> None:
    """Applied, updated, deleted: each replica follows, and byPod says so of each Pod."""
    made = plane.put_template(template("Applied"))
    path = f"{CONSTRAINTS}/applied/words"
    until(lambda: enforced(plane, f"{TEMPLATES}/applied"), "the template is shown")
    entries = plane.by_pod(f"{TEMPLATES}/applied")
    assert {entry["templateUID"] for entry in entries} == {made["metadata"]["uid"]}
    assert [entry["id"] for entry in entries] == sorted(replica.name for replica in trio)
    assert plane.api.request("GET", f"{TEMPLATES}/applied")["status"]["created"] is True

    applied = plane.put_constraint(constraint("words", "one", "Applied"))
    all_deny(trio, "one")
    until(lambda: enforced(plane, path), "the constraint is shown")
    entries = plane.by_pod(path)
    assert {entry["constraintUID"] for entry in entries} == {applied["metadata"]["uid"]}
    assert all(entry["activeGeneration"] == 1 and entry["since"] for entry in entries)

    plane.put_constraint(constraint("words", "two", "Applied"))
    all_deny(trio, "two")
    all_allow(trio, "one")
    until(lambda: enforced(plane, path), "the update is shown")
    assert {entry["observedGeneration"] for entry in plane.by_pod(path)} == {2}
    until(lambda: len({replica.digest for replica in trio}) == 1, "the digests are one")

    plane.delete_constraint("words", "Applied")
    all_allow(trio, "two")
    plane.delete_template("applied")

    def has_no_status() -> bool:
        kinds = ("constraintpodstatuses", "constrainttemplatepodstatuses")
        items = [plane.api.request("GET", f"{STATUSES}/{kind}")["items"] for kind in kinds]
        return not any("applied" in item["metadata"]["name"] for found in items for item in found)

    until(has_no_status, "its statuses are gone")


def test_a_status_object_is_gatekeeper_s_to_the_field(plane: Plane, trio: list[Replica]) -> None:
    """Name, labels, owner and fields, read back from the API server."""
    made = plane.put_template(template("Fields"))
    put = plane.put_constraint(constraint("with-dash", "fields", "Fields"))
    all_deny(trio, "fields")
    path = f"{STATUSES}/constraintpodstatuses/waddle--0-fields-with--dash"

    def is_enforced() -> bool:
        found = try_request(plane.api, "GET", path)
        return found is not None and found["status"]["enforced"]  # false as long as it is tried

    until(is_enforced, "the status says that it is enforced")
    status = plane.api.request("GET", path)
    assert status["metadata"]["labels"] == {
        "internal.gatekeeper.sh/pod": "waddle-0",
        "internal.gatekeeper.sh/constraint-name": "with-dash",
        "internal.gatekeeper.sh/constraint-kind": "Fields",
        "internal.gatekeeper.sh/constrainttemplate-name": "fields",
    }
    assert status["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "waddle-0", "uid": trio[0].uid}
    ]
    assert status["status"].pop("since")
    assert status["status"].pop("activeDigest") == digest_of(put)
    assert status["status"] == {
        "id": "waddle-0",
        "constraintUID": put["metadata"]["uid"],
        "operations": ["generate", "status", "webhook"],
        "observedGeneration": 1,
        "activeGeneration": 1,
        "enforced": True,
    }
    crd = plane.api.request("GET", f"{CRD_PATH}/fields.constraints.gatekeeper.sh")
    owner = crd["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    assert crd["metadata"]["labels"]["gatekeeper.sh/constraint"] == "yes"
    plane.delete_template("fields")


def test_a_fault_is_in_the_status_and_what_was_in_force_stays(
    plane: Plane, trio: list[Replica]
) -> None:
    """A template that no longer compiles, admitted past the webhook, keeps its last revision."""
    plane.put_template(template("Faulty"))
    plane.put_constraint(constraint("words", "faulty", "Faulty"))
    all_deny(trio, "faulty")
    plane.put_template(template("Faulty", "package faulty\nviolation[{"))
    path = f"{TEMPLATES}/faulty"

    def shows_the_fault() -> bool:
        entries = plane.by_pod(path)
        return len(entries) == 3 and all(
            entry.get("errors") and entry["observedGeneration"] == 2 for entry in entries
        )

    until(shows_the_fault, "each replica says what is wrong")
    assert {entry["activeGeneration"] for entry in plane.by_pod(path)} == {1}
    assert all(replica.denies("faulty") for replica in trio)
    assert all(replica.is_ready for replica in trio)
    until(
        lambda: b"[!]ConstraintTemplate faulty:" in trio[0].get("health", "/readyz?verbose").body,
        "/readyz?verbose says so too",
    )
    plane.delete_template("faulty")


def test_violations_without_a_message_are_in_the_template_s_status(
    plane: Plane, trio: list[Replica]
) -> None:
    """Whether they have one may be known only when objects are reviewed."""
    path = f"{TEMPLATES}/silent"
    plane.put_template(
        template("Silent", "package silent\nviolation[x] { x := input.review.object }")
    )
    plane.put_constraint(constraint("all", "x", "Silent"))
    replica = trio[0]

    def warnings() -> list[str]:
        assert not replica.denies("any")
        entries = [entry for entry in plane.by_pod(path) if entry["id"] == replica.name]
        found = entries[0].get("expressionWarnings", []) if entries else []
        return [warning["warning"] for warning in found]

    until(lambda: any('without "msg"' in text for text in warnings()), "the replica says so")
    plane.delete_template("silent")


def test_a_template_deleted_and_made_anew_never_shows_stale_entries(
    plane: Plane, trio: list[Replica]
) -> None:
    """Every state of byPod that can be seen speaks of the object that carries it."""
    path = f"{TEMPLATES}/anew"
    for _ in range(3):
        made = plane.put_template(template("Anew"))
        uid = made["metadata"]["uid"]
        until(lambda uid=uid: shown_of(plane, path, uid) == 3, "the template is shown")
        plane.delete_template("anew")
    uid = plane.put_template(template("Anew"))["metadata"]["uid"]
    # A constraint of the CRD that is about to be collected would be collected with it.
    until(lambda: plane.is_generated("anew", uid), "the CRD is the new template's")
    plane.put_constraint(constraint("words", "anew", "Anew"))
    all_deny(trio, "anew")
    plane.delete_template("anew")
    all_allow(trio, "anew")


def shown_of(plane: Plane, path: str, uid: str) -> int:
    """Returns the number of an object's entries; each must have its UID."""
    found = plane.api.request("GET", path)
    assert found["metadata"]["uid"] == uid
    entries = (found.get("status") or {}).get("byPod") or []
    assert {entry["templateUID"] for entry in entries} <= {uid}
    return len(entries)


def test_a_template_waits_for_the_data_it_asks_for(plane: Plane, trio: list[Replica]) -> None:
    """Withheld until Config syncs the kind, in force then, withheld again when it does not."""
    rego = """
    package withdata
    violation[{"msg": "there is a marker"}] {
      input.review.object.data.deny == input.parameters.word
      data.inventory.namespace[_]["v1"]["ConfigMap"][_].data.marker
    }
    """
    needs = (
        '"[[{\\"groups\\": [\\"\\"], \\"versions\\": [\\"v1\\"], \\"kinds\\": [\\"ConfigMap\\"]}]]"'
    )
    document = template("WithData", rego)
    document["metadata"]["annotations"] = {
        "metadata.gatekeeper.sh/requires-sync-data": needs.replace("\\", "")
    }
    marker = config_map("", "marker")
    marker["data"] = {"marker": "yes"}
    plane.api.apply(f"{CONFIG_MAPS}/marker", marker)
    plane.put_template(document)
    plane.put_constraint(constraint("words", "data", "WithData"))
    path = f"{CONSTRAINTS}/withdata/words"

    def is_withheld() -> bool:
        entries = plane.by_pod(f"{TEMPLATES}/withdata")
        shown = [(entry.get("errors") or [{}])[0].get("code") for entry in entries]
        return shown == ["missing_data"] * 3

    until(is_withheld, "the template is withheld")
    assert "missingData" in plane.by_pod(f"{TEMPLATES}/withdata")[0]
    assert not any(replica.denies("data") for replica in trio)

    plane.api.apply(CONFIG, config(sync=[{"group": "", "version": "v1", "kind": "ConfigMap"}]))
    all_deny(trio, "data")
    until(lambda: enforced(plane, path), "the constraint is shown as enforced")
    until(lambda: len(plane.by_pod(CONFIG)) == 3, "the Config has its entries")

    plane.api.apply(CONFIG, config(sync=[]))
    all_allow(trio, "data")
    until(is_withheld, "the template is withheld again")
    plane.delete_template("withdata")


def test_config_excludes_namespaces(plane: Plane, trio: list[Replica]) -> None:
    """Excluded for the webhook: nothing is denied there; taken back: it is again."""
    plane.put_template(template("Excluding"))
    plane.put_constraint(constraint("words", "excluding", "Excluding"))
    all_deny(trio, "excluding")
    match = [{"excludedNamespaces": [WORKLOADS], "processes": ["webhook"]}]
    plane.api.apply(CONFIG, config(match=match))
    all_allow(trio, "excluding")
    plane.api.request("DELETE", CONFIG)
    all_deny(trio, "excluding")
    plane.delete_template("excluding")


def config(**spec: Any) -> dict[str, Any]:
    """A Config, with ``sync`` as its ``syncOnly``."""
    if "sync" in spec:
        spec["sync"] = {"syncOnly": spec["sync"]}
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": NAMESPACE},
        "spec": spec,
    }


@pytest.mark.slow(30)
def test_a_steady_state_writes_nothing_and_what_others_undo_is_put_right(
    plane: Plane, trio: list[Replica]
) -> None:
    """Counted in the API server's audit log; a change costs each replica one status write.

    And all together one of byPod with the conditions, and one of the revision.
    """
    plane.put_template(template("Steady"))
    plane.put_constraint(constraint("words", "steady", "Steady"))
    path = f"{CONSTRAINTS}/steady/words"
    until(lambda: enforced(plane, path), "the constraint is shown")
    names = [replica.name for replica in trio]
    before = len(rest(plane, names))

    plane.put_constraint(constraint("words", "steadier", "Steady"))
    until(lambda: enforced(plane, path), "the update is shown")
    written = rest(plane, names)[before:]
    assert [line for line in written if "constraintpodstatuses" in line].__len__() == 3
    assert 1 <= len([line for line in written if "steady/status" in line]) <= 3
    # One replica keeps the generation, with its outcome; the second of two, so none is dropped.
    # On a busy machine it says before that it is at it, and another may ask to.
    kept = [line for line in written if "policyrevisions" in line]
    # Generations of other tests' policies, which went before, may be dropped meanwhile.
    of_words = [line for line in kept if "steady.words" in line]
    assert 1 <= len(of_words) <= 6
    assert not [line for line in of_words if "delete" in line]
    assert len(written) - len(kept) <= 6

    wiped = plane.api.request("GET", path)
    wiped["status"] = {"totalViolations": 7, "auditTimestamp": "2026-01-01T00:00:00Z"}
    plane.api.request("PUT", f"{path}/status", wiped)
    until(lambda: enforced(plane, path), "byPod is put right")
    status = plane.api.request("GET", path)["status"]
    assert (status["totalViolations"], status["auditTimestamp"]) == (7, "2026-01-01T00:00:00Z")
    plane.delete_template("steady")


def test_the_api_server_asks_and_is_answered(
    plane: Plane, trio: list[Replica], proxy: Proxy
) -> None:
    """Through the webhook configuration: policy, and Gatekeeper's own checks of its resources."""
    proxy.replicas = trio
    plane.put_template(template("Asked"))
    plane.put_constraint(constraint("words", "asked", "Asked"))
    all_deny(trio, "asked")
    plane.register(proxy.port)
    try:

        def refusal(path: str, body: dict[str, Any]) -> str:
            with pytest.raises(ApiError) as refused:
                plane.api.request("POST", f"{path}?dryRun=All", body)
            return refused.value.body

        until(
            lambda: not is_admitted(plane, config_map("asked", "first")), "the webhook is in place"
        )
        found = refusal(CONFIG_MAPS, config_map("asked"))
        assert "[words] denied by asked" in found
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("other"))

        broken = template("Uncompiled", "package uncompiled\nviolation[{")
        assert "rego_parse_error" in refusal(TEMPLATES, broken)
        typo = constraint("typo", "x", "Asked")
        typo["spec"]["parameters"] = {"word": 1}
        assert "word" in refusal(f"{CONSTRAINTS}/asked", typo)
        other = config()
        other["metadata"]["name"] = "other"
        assert "config resource must have name 'config'" in refusal(
            CONFIG.rpartition("/")[0], other
        )
    finally:
        plane.unregister()
        plane.delete_template("asked")


def is_admitted(plane: Plane, document: dict[str, Any]) -> bool:
    """Whether the API server admits a ConfigMap."""
    try:
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", document)
    except ApiError:
        return False
    return True


def test_a_namespace_that_the_watch_has_not_reported_is_read(trio: list[Replica]) -> None:
    """A missing Namespace is Gatekeeper's error; other admissions are answered as before."""
    verdict = trio[0].admit(config_map("x", namespace="never-made"))
    assert verdict["status"]["code"] == 500
    message = 'failed to create augmentedReview: namespaces "never-made" not found'
    assert verdict["status"]["message"] == message
    assert trio[0].admit(config_map("x"))["allowed"] is True


def test_a_constraint_is_judged_by_a_template_that_the_watch_has_not_reported(
    plane: Plane, trio: list[Replica], start: StartReplica, tmp_path: Path
) -> None:
    """A changed template counts, too: users who apply both need not wait for the last replica."""
    numbered = constraint("numbered", "", "Known")
    numbered["spec"]["parameters"] = {"word": 3}
    with closing(Gate(plane.api, tmp_path)) as gate:
        behind = start("waddle-behind", *ALL_OPERATIONS, f"--kubeconfig={gate.kubeconfig}")
        behind.wait_ready()
        plane.put_template(template("Known"))
        plane.put_constraint(constraint("known", "known", "Known"))
        all_deny([*trio, behind], "known")
        assert "spec.parameters.word" in behind.admit(numbered)["status"]["message"]
        missing = behind.admit(constraint("late", "late", "Late"))["status"]
        assert missing["message"] == 'missing ConstraintTemplate: template "late" not found'

        gate.withhold(lambda path: "/constrainttemplates" in path and "watch" in path)
        changed = template("Known")
        schema = changed["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
        schema["properties"]["word"] = {"type": "integer"}
        plane.put_template(changed)
        plane.put_template(template("Late"))
        plane.put_constraint(constraint("late", "late", "Late"))
        all_deny(trio, "late")
        assert not behind.denies("late")
        assert behind.admit(constraint("later", "later", "Late"))["allowed"] is True
        assert behind.admit(numbered)["allowed"] is True
        numbered["spec"]["parameters"] = {"word": []}
        assert "spec.parameters.word" in behind.admit(numbered)["status"]["message"]

        gate.open()
        all_deny([behind], "late")
        plane.delete_template("known")
        plane.delete_template("late")
