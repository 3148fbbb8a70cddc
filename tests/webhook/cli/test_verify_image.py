"""``waddle verify-image``: over a folder and over a registry, on a terminal and as JSON."""

import contextlib
import json

import pytest

from tests.oci_registry import serving
from tests.webhook.cli.in_process import waddle
from tests.webhook.images.signing import (
    MANIFEST,
    Layout,
    bundle,
    envelope,
    new_key,
    public_pem,
    simply_signed,
    statement,
)

POLICY = """\
apiVersion: waddle.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: ours}
spec:
  images: ["%s/*"]
  authorities:
    - {name: release, key: {file: release.pub}, transparencyLog: Ignored}
    - {name: security, key: {file: keys/security.pub}, transparencyLog: Ignored}
"""


@pytest.fixture
def keys(tmp_path):
    """A folder with a policy, the keys it names, and the private halves."""
    release, security = new_key(), new_key()
    (tmp_path / "policies" / "keys").mkdir(parents=True)
    (tmp_path / "policies" / "release.pub").write_bytes(public_pem(release))
    (tmp_path / "policies" / "keys" / "security.pub").write_bytes(public_pem(security))
    (tmp_path / "policies" / "policy.yaml").write_text(POLICY % "registry.example")
    return release, security


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "images")


def verify(tmp_path, *more, image="registry.example/team/app:1.0"):
    return waddle("verify-image", "-f", tmp_path / "policies", *more, image)


def test_a_folder_of_images(tmp_path, keys, layout):
    image = layout.image()
    layout.sign_simply(image, [simply_signed(keys[0], image)])
    ended = verify(tmp_path, "--layout", layout.directory)
    assert ended.returncode == 1
    assert ended.stdout == (
        "registry.example/team/app:1.0: not verified\n"
        f"  digest  {image}\n"
        "  mutable: the tag may name another image tomorrow; give the digest\n"
        "  policy ours: not met\n"
        "    release: signed\n"
        "    security: has not signed\n"
        "      the signature: it is not by this key\n"
    )
    layout.attach(image, bundle(envelope(keys[1], statement(image))[0]))
    ended = verify(tmp_path, "--layout", layout.directory, "-o", "json")
    assert ended.returncode == 0
    (document,) = json.loads(ended.stdout)
    assert document["verified"]
    assert document["by"] == ["release", "security"]


def test_what_cannot_be_read_is_2_and_not_verified(tmp_path, keys, layout):
    ended = verify(tmp_path, "--layout", layout.directory, "-o", "json")
    assert ended.returncode == 2
    assert "has no registry.example/team/app:1.0" in ended.stderr
    (document,) = json.loads(ended.stdout)
    assert document["verified"] is False
    assert verify(tmp_path, "--layout", layout.directory, image="UPPER").returncode == 2
    image = layout.image()
    (layout.directory / "blobs" / "sha256" / image[7:]).write_text("{}")
    ended = verify(tmp_path, "--layout", layout.directory)
    assert ended.returncode == 2
    assert "digest" in ended.stderr


def test_a_policy_that_cannot_be_used_names_its_file_and_field(tmp_path, keys, layout):
    (tmp_path / "policies" / "release.pub").unlink()
    ended = verify(tmp_path, "--layout", layout.directory)
    assert ended.returncode == 2
    assert (
        "policy.yaml: line 1: VerificationPolicy ours: spec.authorities[0].key.file" in ended.stderr
    )
    (tmp_path / "policies" / "policy.yaml").unlink()
    assert "there is no VerificationPolicy" in verify(tmp_path).stderr


@contextlib.contextmanager
def copied(layout, repository):
    """The folder in a registry over real sockets."""
    with serving() as registry:
        for blob in (layout.directory / "blobs" / "sha256").iterdir():
            registry.blobs[f"sha256:{blob.name}"] = blob.read_bytes()
        for entry in layout.entries:
            tag = entry.get("annotations", {}).get("org.opencontainers.image.ref.name", "")
            content = registry.blobs[entry["digest"]]
            registry.put(repository, tag, content, MANIFEST)
        yield registry


@pytest.mark.parametrize("has_referrers", [True, False])
def test_a_registry(tmp_path, keys, layout, has_referrers):
    image = layout.image()
    layout.sign_simply(image, [simply_signed(keys[0], image)])
    if has_referrers:
        layout.attach(image, bundle(envelope(keys[1], statement(image))[0]))
    else:
        layers = [simply_signed(key, image) for key in keys]
        layout.sign_simply(image, layers)
    with copied(layout, "team/app") as registry:
        registry.has_referrers = has_referrers
        (tmp_path / "policies" / "policy.yaml").write_text(POLICY % registry.host)
        options = ["--registry-insecure", registry.host]
        ended = verify(tmp_path, *options, image=f"{registry.host}/team/app:1.0")
        assert (ended.returncode, ended.stderr) == (0, "")
        registry.blobs.clear()
        ended = verify(tmp_path, *options, image=f"{registry.host}/team/app:1.0")
        assert ended.returncode == 1
        assert "note: " in ended.stdout
    ended = verify(tmp_path, *options, image=f"{registry.host}/team/app:1.0")
    assert ended.returncode == 2
    assert ended.stdout == ""
