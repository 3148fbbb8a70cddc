"""``waddle provider images`` as a process: TLS with client certificates, a registry, one question each."""

import concurrent.futures
import contextlib
import signal
import ssl
import subprocess
import sys
from collections import Counter

import pytest
from aiohttp import web

from tests.patience import PATIENCE_SECONDS, until
from tests.webhook.images.served import POLICY, running
from tests.webhook.images.signing import public_pem


@pytest.fixture
def images(tmp_path):
    with running(tmp_path) as made:
        yield made


@pytest.mark.slow(6)
def test_each_key_is_answered_with_what_is_known(images):
    signed, digest = images.push("1")
    unsigned, other = images.push("2", signed=False)
    host = images.registry.host
    status, response = images.ask(signed, unsigned, f"{host}/app:none", "UPPER", signed)
    assert status == 200
    assert response["idempotent"]
    assert response["systemError"] == ""
    items = {item["key"]: item for item in response["items"]}
    assert items[signed]["value"] == {
        "image": f"{host}/app@{digest}",
        "digest": digest,
        "verified": True,
        "by": ["release"],
        "attestations": [],
        "mutable": True,
        "signedAt": "",
        "why": [],
    }
    assert items[unsigned]["value"]["verified"] is False
    assert items[unsigned]["value"]["why"] == [
        "it is not signed by the authority of ours: missing is release"
    ]
    for key in (f"{host}/app:none", "UPPER"):
        assert items[key]["value"] is None
        assert items[key]["error"]
    _, response = images.ask(signed, unsigned, path="/digest")
    assert [item["value"] for item in response["items"]] == [
        f"{host}/app@{digest}",
        f"{host}/app@{other}",
    ]
    assert images.ask(path="/other")[0] == 404
    for body in ("{", "[]", '{"request": {"keys": [1]}}'):
        status, response = images.ask(body=body)
        assert (status, response["items"]) == (400, [])
        assert response["systemError"]

    images.process.send_signal(signal.SIGTERM)
    assert images.process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.slow(6)
def test_who_shows_no_certificate_or_speaks_older_tls_is_not_answered(images):
    for options in ({"certificate": False}, {"newest": ssl.TLSVersion.TLSv1_2}):
        with pytest.raises(OSError):
            ask_with(images, options)


def ask_with(images, options):
    with contextlib.closing(images.connect(**options)) as connection:
        connection.request("POST", "/", "{}")
        connection.getresponse()


@pytest.mark.slow(8)
def test_a_burst_asks_the_registry_once_for_each_image(images):
    references = [images.push(str(number))[0] for number in range(5)]
    images.registry.requests.clear()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(images.ask, references * 20))
    assert all(one["items"][0]["value"]["verified"] for _, one in answers)
    counts = Counter(path for _, path in images.registry.requests)
    assert {count for path, count in counts.items() if "/manifests/sha256-" in path} == {1}
    assert {counts[f"/v2/app/manifests/{number}"] for number in range(5)} == {1}


def answered(images, key):
    """The value of a key, asked for until there is one."""
    values = []

    def is_there():
        values[:] = [item["value"] for item in images.ask(key)[1]["items"]]
        return values[0] is not None

    until(is_there, f"a value of {key}")
    return values[0]


@pytest.mark.slow(8)
def test_a_registry_that_hangs_costs_its_own_images_alone_and_is_taken_up_again(tmp_path):
    with running(tmp_path, answer_within="1") as images:
        good, _ = images.push("1")
        slow, _ = images.push("2")
        hanging = [True]

        async def hang(request):
            if request.path.endswith("/manifests/2") and hanging:
                raise web.HTTPServiceUnavailable(headers={"Retry-After": "1"})

        images.registry.instead = hang
        (item,) = images.ask(slow)[1]["items"]
        assert item["value"] is None
        assert item["error"]
        assert answered(images, good)["verified"]
        hanging.clear()
        assert answered(images, slow)["verified"]


def test_what_it_cannot_begin_with_is_said(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY % "registry.example")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "webhook", "provider", "images", "--port", "0"),
            *("-f", tmp_path, "--cert-dir", tmp_path, "--layout", tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    assert "spec.authorities[0].key.file: release.pub" in ended.stderr


@pytest.mark.slow(8)
def test_what_it_knows_outlives_a_kill_and_a_registry_that_is_gone(tmp_path):
    with running(tmp_path, "--cache", tmp_path / "known.db") as images:
        signed, digest = images.push("1")
        assert answered(images, signed)["verified"]
        until(lambda: b"sha256:" in kept_in(tmp_path / "known.db"), "the file has it")
        images.end()
        images.registry.requests.clear()

        async def gone(request):
            raise web.HTTPServiceUnavailable

        images.registry.instead = gone
        images.start()
        (item,) = images.ask(f"{images.registry.host}/app@{digest}")[1]["items"]
        assert item["value"]["verified"]
        assert images.registry.requests == []
        images.process.send_signal(signal.SIGTERM)
        assert images.process.wait(PATIENCE_SECONDS) == 0


def kept_in(path):
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.slow(6)
def test_probes_and_metrics_have_a_port_without_tls(tmp_path):
    with running(tmp_path, "--metrics-port", "0") as images:
        signed, _ = images.push("1")
        unsigned, _ = images.push("2", signed=False)
        images.ask(signed, unsigned, "UPPER")
        images.ask(signed)
        status, text = images.get("/metrics")
        assert status == 200
        for line in (
            'waddle_image_answers_total{answer="verified",kept="fresh"} 2.0',
            'waddle_image_answers_total{answer="unverified",kept="fresh"} 1.0',
            'waddle_image_answers_total{answer="error",kept="none"} 1.0',
            'waddle_image_registry_questions_total{asked="tag",outcome="answered"} 2.0',
            'waddle_image_registry_questions_total{asked="signatures",outcome="answered"} 2.0',
            'waddle_image_policies{status="active"} 1.0',
            'waddle_image_policies{status="error"} 0.0',
            'waddle_images_kept{kind="facts"} 2.0',
        ):
            assert line in text
        assert images.get("/healthz")[0] == images.get("/readyz")[0] == 200
        (tmp_path / "policies" / "release.pub").write_text("no key")
        until(
            lambda: 'waddle_image_policies{status="error"} 1.0' in images.get("/metrics")[1],
            "the policies that cannot be used are counted",
        )
        assert images.ask(signed)[1]["items"][0]["value"]["verified"]


def test_secrets_that_policies_name_lie_in_a_folder(tmp_path):
    (tmp_path / "secrets" / "release").mkdir(parents=True)
    with running(tmp_path, "--secrets", tmp_path / "secrets") as images:
        (tmp_path / "secrets" / "release" / "cosign.pub").write_bytes(public_pem(images.key))
        policy = tmp_path / "policies" / "policy.yaml"
        named = "key: {secret: {name: release, key: cosign.pub}}"
        policy.write_text(policy.read_text().replace("key: {file: release.pub}", named))
        (tmp_path / "policies" / "release.pub").unlink()
        images.end()
        images.start()
        assert answered(images, images.push("1")[0])["verified"]
        images.end()
        for wrong in ("{name: ../certs, key: tls.key}", "{name: .., key: tls.key}", "{name: a}"):
            policy.write_text(policy.read_text().replace(named, f"key: {{secret: {wrong}}}"))
            with pytest.raises(AssertionError, match=r"no (name|key) of a Secret"):
                images.start()
            named = f"key: {{secret: {wrong}}}"
