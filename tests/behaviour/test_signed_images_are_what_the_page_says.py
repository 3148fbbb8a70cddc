"""docs/images.md: its policies can be used, its command answers, and its template refuses."""

import json
import re

import yaml

from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT
from tests.webhook.images.signing import (
    Layout,
    Sigstore,
    b64,
    new_key,
    pem,
    public_pem,
    simply_signed,
)
from webhook.images.policy_files import load_policies

PAGE = (ROOT / "docs" / "images.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
(TYPED,) = re.findall(r"^waddle (verify-image .*)$", PAGE, re.MULTILINE)


def test_the_key_s_image_is_verified_and_the_template_refuses_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key, layout = new_key(), Layout(tmp_path / "copied")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "cosign.pub").write_bytes(public_pem(key))
    (tmp_path / "images" / "policy.yaml").write_text(BLOCKS[0])
    image = layout.image("1.4")
    before = waddle(*TYPED.split(), "--layout", "copied", "-o", "json")
    layout.sign_simply(image, [simply_signed(key, image)])
    after = waddle(*TYPED.split(), "--layout", "copied", "-o", "json")
    assert (before.returncode, after.returncode) == (1, 0)

    trusted = b64(pem(Sigstore().authority.certificate))
    (tmp_path / "policies.yaml").write_text(BLOCKS[1].replace("LS0tLS1CRUdJTi...", trusted))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app", "namespace": "team"},
        "spec": {"containers": [{"name": "app", "image": "registry.example/team/app:1.4"}]},
    }
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    for answer, code, words in (
        (before, 1, "it is not signed by the authority of ours: missing is release"),
        (after, 0, ""),
    ):
        (value,) = json.loads(answer.stdout)
        items = {value["reference"]: {"value": value}}
        (tmp_path / "answers.json").write_text(json.dumps({"items": items}))
        files = ["-f", "policies.yaml", "-f", "pod.yaml", "--provider", "images=answers.json"]
        ended = waddle("test", *files)
        assert ended.returncode == code, ended.stdout + ended.stderr
        assert words in ended.stdout


def test_the_policy_with_identities_and_attestations_can_be_used(tmp_path):
    (tmp_path / "trusted_root.json").write_text(json.dumps(Sigstore().root()))
    (tmp_path / "policy.yaml").write_text(BLOCKS[4])
    (policy,) = load_policies([tmp_path / "policy.yaml"])
    assert [one.language for one in policy.attestations[0].conditions] == ["cel", "rego"]


def test_the_cluster_s_policy_can_be_used_with_its_secret(tmp_path):
    (tmp_path / "policy.yaml").write_text(BLOCKS[3])
    (tmp_path / "secrets" / "release").mkdir(parents=True)
    (tmp_path / "secrets" / "release" / "cosign.pub").write_bytes(public_pem(new_key()))
    (policy,) = load_policies([tmp_path / "policy.yaml"], tmp_path / "secrets")
    assert policy.name == "ours"
