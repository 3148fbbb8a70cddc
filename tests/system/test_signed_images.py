"""Signed images at a real API server: admitted by their digest, or refused with who has not signed."""

from __future__ import annotations

import base64
import concurrent.futures
import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from aiohttp import web

from tests import policies
from tests.cluster import ApiError
from tests.oci_registry import OciRegistry, serving
from tests.patience import until
from tests.policy_library import POLICIES
from tests.system.mutating import OBJECTS, PLACE, clean, enforced, refused, three
from tests.system.providers import PROVIDERS, put_provider
from tests.system.replicas import CONSTRAINTS, Plane, Replica, try_request
from tests.webhook.images.served import Images
from tests.webhook.images.signing import public_pem
from webhook.images.known_facts import TAG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERIFICATION = "/apis/waddle.dev/v1alpha1/verificationpolicies"
LIBRARY = POLICIES / "supply-chain"
KIND = "RequireSignedImages"
DRY = f"{OBJECTS}/pods?dryRun=All"
VERIFIED_SECONDS = 15
"""The provider's timeout: a busy machine may take several seconds to verify an image."""


@pytest.fixture(scope="module")
def images(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """The provider, which follows the policies of the API server, with keys from a mounted Secret."""
    folder: Path = tmp_path_factory.mktemp("images")
    (folder / "secrets" / "release").mkdir(parents=True)
    with serving() as registry:
        made = Images(
            folder,
            registry,
            *("--kubernetes", "--kubeconfig", str(plane.cluster.kubeconfig)),
            *("--secrets", folder / "secrets", "--cache", folder / "known.db"),
            *("--metrics-port", "0"),
            answer_within=str(VERIFIED_SECONDS - 1),
            clients=(plane.certificates / "tls.crt").read_bytes(),
            files=False,
        )
        (folder / "secrets" / "release" / "cosign.pub").write_bytes(public_pem(made.key))
        try:
            yield made
        finally:
            made.end()


def verification(registry: OciRegistry, **spec: Any) -> dict[str, Any]:
    """A VerificationPolicy of the registry."""
    key = {"secret": {"name": "release", "key": "cosign.pub"}}
    authority = {"name": "release", "key": key, "transparencyLog": "Ignored"}
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "VerificationPolicy",
        "metadata": {"name": "ours"},
        "spec": {"images": [f"{registry.host}/*"], "authorities": [authority], **spec},
    }


@pytest.fixture(scope="module")
def replicas(plane: Plane, images: Images) -> Iterator[list[Replica]]:
    """Three replicas with the library's policies: digests are written in, and signatures required."""
    plane.api.apply(f"{VERIFICATION}/ours", verification(images.registry))
    template = yaml.safe_load((LIBRARY / "signed-images" / "template.yaml").read_text())
    mutators = LIBRARY / "digests" / "samples" / "digests" / "mutators.yaml"
    with three(plane) as (started, _):
        for name, path in (("images", ""), ("image-digests", "digest")):
            provider = {
                "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
                "kind": "Provider",
                "metadata": {"name": name},
                "spec": {
                    "url": f"https://127.0.0.1:{images.port}/{path}",
                    "timeout": VERIFIED_SECONDS,
                    "caBundle": base64.b64encode(images.server.certificate).decode(),
                },
            }
            put_provider(plane, provider, started)
        for document in yaml.safe_load_all(mutators.read_text()):
            enforced(plane, document, started)
        plane.put_template(template)
        match = {"namespaces": [PLACE], "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
        plane.put_constraint(policies.constraint(KIND, "signed", match=match))
        names = {replica.name for replica in started}
        until(
            lambda: (
                names
                <= {
                    entry["id"]
                    for entry in plane.by_pod(f"{CONSTRAINTS}/{KIND.lower()}/signed")
                    if entry["enforced"]
                }
            ),
            "the constraint is enforced by all",
        )
        until(lambda: images.get("/readyz")[0] == 200, "the provider knows the policies")
        accounts = f"{OBJECTS}/serviceaccounts/default"
        until(lambda: try_request(plane.api, "GET", accounts), "accounts")
        yield started
        clean(plane, started)
        plane.delete_template(KIND.lower())
        for name in ("images", "image-digests"):
            plane.api.request("DELETE", f"{PROVIDERS}/{name}")
        plane.api.request("DELETE", f"{VERIFICATION}/ours")


def pod(*images: str) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    return {"metadata": {"name": "signed"}, "spec": {"containers": containers}}


def admitted(plane: Plane, *images: str) -> list[str]:
    """The images of a Pod as it was admitted."""
    made = plane.api.request("POST", DRY, pod(*images))
    return [one["image"] for one in made["spec"]["containers"]]


def is_admitted(plane: Plane, image: str) -> bool:
    try:
        return bool(admitted(plane, image))
    except ApiError:
        return False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 2}, "count is more than there are authorities"),
        ({"signatures": "Ignored"}, "signatures is Ignored, and attestations is empty"),
        ({"images": []}, "spec.images"),
        ({"authorities": []}, "spec.authorities"),
        ({"authorities": [{"name": "a", "transparencyLog": "Ignored"}]}, "it has one of key"),
        ({"authorities": [{"name": "a", "key": {"data": "x"}}]}, "needs a log of trustedRoot"),
        (
            {"authorities": [{"name": "a", "transparencyLog": "Ignored", "key": {}}]},
            "it has one of data and secret",
        ),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_by_the_api_server(
    plane: Plane, images: Images, changes: dict[str, Any], message: str
) -> None:
    document = verification(images.registry, **changes)
    document["metadata"]["name"] = "wrong"
    with pytest.raises(ApiError) as refusal:
        plane.api.request("POST", VERIFICATION, document)
    assert refusal.value.status == 422
    assert message in refusal.value.body


@pytest.mark.slow(60)
def test_signed_images_are_admitted_by_their_digest_and_others_are_refused(
    plane: Plane, images: Images, replicas: list[Replica]
) -> None:
    signed, digest = images.push("1")
    unsigned, _ = images.push("2", signed=False)

    by_digest = f"{images.registry.host}/app@{digest}"
    assert admitted(plane, signed) == [by_digest]
    assert admitted(plane, by_digest) == [by_digest]

    message = refused(plane, DRY, pod(signed, unsigned))
    assert "denied the request" in message
    assert "must be signed" in message
    assert "it is not signed by the authority of ours: missing is release" in message
    assert "404" in refused(plane, DRY, pod(f"{images.registry.host}/app:none"))

    # Another policy that cannot be used verifies none of its images, and spoils no other's.
    broken = verification(images.registry, images=[f"{images.registry.host}/app"])
    broken["metadata"]["name"] = "broken"
    broken["spec"]["authorities"][0]["key"]["secret"]["name"] = "absent"
    plane.api.apply(f"{VERIFICATION}/broken", broken)
    try:
        third, _ = images.push("3")
        until(
            lambda: 'waddle_image_policies{status="error"} 1.0' in images.get("/metrics")[1],
            "it is counted",
        )
        assert "VerificationPolicy broken" in refused(plane, DRY, pod(third))
    finally:
        plane.api.request("DELETE", f"{VERIFICATION}/broken")
    fourth, digest = images.push("4")
    until(lambda: is_admitted(plane, fourth), "images are verified again")


@pytest.mark.slow(60)
def test_a_burst_of_pods_asks_the_registry_once_for_each_image(
    plane: Plane, images: Images, replicas: list[Replica]
) -> None:
    names = [images.push(f"burst{number}")[0] for number in range(20)]
    images.registry.requests.clear()
    begun = time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda name: admitted(plane, name)[0], names * 25))

    assert len(found) == 500
    assert all("@sha256:" in image for image in found)
    counts = Counter(path for _, path in images.registry.requests)
    tags = {path: count for path, count in counts.items() if "/manifests/burst" in path}
    others = {path: count for path, count in counts.items() if path not in tags}
    assert set(others.values()) == {1}
    assert len(tags) == 20
    # A tag is resolved anew after a while: a burst that takes longer has each once more.
    assert max(tags.values()) <= 1 + (time.monotonic() - begun) // TAG_SECONDS


@pytest.mark.slow(90)
def test_a_provider_that_is_killed_slow_or_restarted_gives_the_documented_verdict(
    plane: Plane, images: Images, replicas: list[Replica]
) -> None:
    """Images that cannot be verified are refused; a restarted provider keeps its results."""
    known, _ = images.push("known")
    assert is_admitted(plane, known)
    until(lambda: b"known" in kept(images), "the provider's file has it")

    images.end()
    fresh, _ = images.push("fresh")
    assert not is_admitted(plane, fresh)

    async def gone(request: web.Request) -> web.StreamResponse:
        raise web.HTTPServiceUnavailable

    images.registry.instead = gone
    images.start()
    until(lambda: is_admitted(plane, known), "it is known from before, with its registry gone")
    assert not is_admitted(plane, fresh)
    images.registry.instead = None
    until(lambda: is_admitted(plane, fresh), "the registry answers again")

    os.kill(images.process.pid, signal.SIGSTOP)
    try:
        slow, _ = images.push("slow")
        assert not is_admitted(plane, slow)
    finally:
        os.kill(images.process.pid, signal.SIGCONT)
    until(lambda: is_admitted(plane, slow), "the provider goes on")


def kept(images: Images) -> bytes:
    return b"".join(file.read_bytes() for file in images.folder.glob("known.db*"))
