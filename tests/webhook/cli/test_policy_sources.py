"""Policies are read only if they are signed, and by names of a catalogue."""

from __future__ import annotations

import json

import pytest

from tests.oci_registry import digest_of, serving
from tests.policies import constraint, template
from tests.webhook.cli.in_process import waddle
from tests.webhook.images.signing import new_key, public_pem, simply_signed

LABELS = """
package k8srequiredlabels

violation[{"msg": "no owner"}] { not input.review.object.metadata.labels.owner }
"""
POLICY = """\
apiVersion: waddle.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: ours}
spec:
  images: ["%s"]
  authorities:
    - {name: release, key: {file: release.pub}, transparencyLog: Ignored}
"""
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"


class Published:
    """Policies in a registry, and a key that may sign them."""

    def __init__(self, registry, folder):
        self.registry, self.folder, self.key = registry, folder, new_key()
        (folder / "policies").mkdir()
        for name, document in (
            ("template", template("K8sRequiredLabels", LABELS)),
            ("constraint", constraint("K8sRequiredLabels", "owner")),
        ):
            (folder / "policies" / f"{name}.json").write_text(json.dumps(document))
        (folder / "keys").mkdir()
        (folder / "keys" / "release.pub").write_bytes(public_pem(self.key))
        self.trust(f"{registry.host}/team/*")
        self.image = f"{registry.host}/team/policies:v1"
        self.near = ("--registry-insecure", registry.host)
        pushed = waddle("policy", "push", self.image, "-f", folder / "policies", *self.near)
        self.digest = pushed.stdout.strip().partition("@")[2]
        self.blobs = set(registry.blobs)
        registry.requests.clear()

    def trust(self, pattern):
        (self.folder / "keys" / "policy.yaml").write_text(POLICY % pattern)

    def sign(self, key=None, of=None):
        payload, annotations = simply_signed(key or self.key, of or self.digest)
        tag = f"{self.digest.replace(':', '-')}.sig"
        self.registry.put_artifact("team/policies", tag, [(payload, SIMPLE, annotations)])

    @property
    def verification(self):
        return "--verification-policy", self.folder / "keys"

    def read(self):
        """Blobs of the policies that somebody asked for."""
        return [path for _, path in self.registry.requests if path.rpartition("/")[2] in self.blobs]

    def asks(self):
        """Each command that pulls, with its exit code where it gets nothing."""
        return (
            (("policy", "pull", self.image, "-d", self.folder / "out"), 2),
            (("policy", "install", self.image), 2),
            (("policy", "upgrade", self.image), 2),
            (("test", "--image", self.image), 1),
            (("check", "--image", self.image), 2),
            (("verify", "--image", self.image), 1),
        )


@pytest.fixture
def published(tmp_path):
    with serving() as registry:
        yield Published(registry, tmp_path)


@pytest.mark.parametrize("number", range(6))
def test_no_command_reads_policies_that_nobody_has_signed(published, number):
    command, code = published.asks()[number]

    refused = waddle(*command, *published.verification, *published.near)

    assert refused.returncode == code, refused.stdout
    assert published.read() == []
    for part in (published.image, published.digest, "missing is release", "no signature"):
        assert part in refused.stderr


def test_a_signature_of_another_key_or_digest_is_none(published):
    for signed in ({"key": new_key()}, {"of": digest_of(b"other")}):
        published.sign(**signed)
        (command, code), *_ = published.asks()
        refused = waddle(*command, *published.verification, *published.near)
        assert refused.returncode == code
        assert published.read() == []


def test_policies_that_no_verification_policy_is_about_are_not_read(published):
    published.sign()
    published.trust("elsewhere.example/*")

    (command, code), *_ = published.asks()
    refused = waddle(*command, *published.verification, *published.near)

    assert (refused.returncode, published.read()) == (code, [])
    assert "no VerificationPolicy matches it" in refused.stderr


def test_signed_policies_are_pulled_tested_and_checked(published):
    published.sign()
    (published.folder / "pod.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    )
    more = (*published.verification, *published.near)

    pulled = waddle("policy", "pull", published.image, "-d", published.folder / "out", *more)
    tested = waddle("test", "--image", published.image, "-f", published.folder / "pod.json", *more)
    checked = waddle("check", "--image", published.image, *more)

    assert pulled.stdout == f"{published.image}@{published.digest}\n", pulled.stderr
    assert (published.folder / "out" / "template.json").exists()
    assert (tested.returncode, "no owner" in tested.stdout) == (1, True), tested.stderr
    assert checked.returncode == 0, checked.stderr


def test_a_tag_that_moves_while_it_is_verified_is_read_as_it_was(published):
    """Artifacts are read by the verified digest, and the tag is not resolved again."""
    published.sign()
    registry, repository = published.registry, "team/policies"
    other = registry.put_artifact(repository, "", [])

    async def move(request):
        if request.path.endswith(".sig"):
            registry.manifests[repository, "v1"] = registry.manifests[repository, other]

    registry.instead = move
    (command, _), *_ = published.asks()
    pulled = waddle(*command, *published.verification, *published.near)

    assert pulled.stdout.endswith(f"@{published.digest}\n"), pulled.stderr


def catalogue(folder, *sources, **fields):
    file = folder / "catalogue.json"
    document = {"apiVersion": "waddle.dev/v1alpha1", "kind": "PolicyCatalogue"}
    file.write_text(json.dumps({**document, "sources": list(sources), **fields}))
    return file


def test_a_name_of_a_catalogue_stands_for_its_reference_and_its_signers(published):
    source = {"name": "labels", "image": published.image, "description": "Everybody's."}
    file = catalogue(published.folder, {**source, "verification": ["keys/policy.yaml"]})
    ask = ("policy", "pull", "labels", "--catalogue", file, "-d", published.folder / "out")

    refused = waddle(*ask, *published.near)
    published.sign()
    pulled = waddle(*ask, *published.near)
    checked = waddle("check", "--image", "labels", "--catalogue", file, *published.near)
    mistyped = waddle("check", "--image", "label", "--catalogue", file, *published.near)
    listed = waddle("policy", "list", file)
    as_json = waddle("policy", "list", file, "-o", "json")

    assert (refused.returncode, "missing is release" in refused.stderr) == (2, True)
    assert pulled.stdout == f"{published.image}@{published.digest}\n", pulled.stderr
    assert checked.returncode == 0, checked.stderr
    assert (mistyped.returncode, "there are labels" in mistyped.stderr) == (2, True)
    assert listed.stdout.splitlines() == [
        f"NAME    {'IMAGE'.ljust(len(published.image))}  SIGNED  DESCRIPTION",
        f"labels  {published.image}  yes     Everybody's.",
    ]
    assert json.loads(as_json.stdout)[0]["name"] == "labels"


@pytest.mark.parametrize(
    ("sources", "fields", "message"),
    [
        ([], {}, "sources is not a list of 1 to 1000 entries"),
        ([{"name": "a"}], {}, "sources[0].image is missing"),
        ([{"name": "A b", "image": "x"}], {}, "sources[0].name is 'A b'"),
        ([{"name": "a", "image": "x", "imgae": "y"}], {}, "unknown field sources[0].imgae"),
        ([{"name": "a", "image": "x"}] * 2, {}, "sources has a twice"),
        ([{"name": "a", "image": "x", "verification": "k"}], {}, "verification is not a list"),
        (["a"], {}, "sources[0] is not an object"),
        ([{"name": "a", "image": "x"}], {"kind": "Catalogue"}, "it is not a PolicyCatalogue"),
    ],
)
def test_a_catalogue_that_cannot_be_used_says_where(tmp_path, sources, fields, message):
    file = catalogue(tmp_path, *sources, **fields)

    listed = waddle("policy", "list", file)
    checked = waddle("check", "--image", "a", "--catalogue", file)

    assert listed.returncode == 1
    assert message in listed.stderr
    assert checked.returncode == 2
    assert message in checked.stderr


def test_a_verification_policy_that_cannot_be_used_leaves_nothing_read(published):
    (published.folder / "keys" / "release.pub").unlink()

    (command, code), *_ = published.asks()
    refused = waddle(*command, *published.verification, *published.near)

    assert (refused.returncode, published.registry.requests) == (code, [])
    assert "release.pub" in refused.stderr
