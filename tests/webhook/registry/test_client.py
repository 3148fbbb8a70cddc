"""The client at a registry that does what it should."""

from __future__ import annotations

import asyncio
import json
import ssl
from urllib.parse import unquote

import pytest
from aiohttp import web

from tests.oci_registry import digest_of, serving
from tests.webhook.registry.answering import (
    INDEX,
    MANIFEST,
    REPOSITORY,
    ask,
    descriptor,
    files_of,
    index,
    manifest,
    named,
    put_files,
)
from webhook.registry.client import RegistryClient
from webhook.registry.credentials import Credential, DockerConfig
from webhook.registry.errors import RegistryError, RegistryRefused, RegistryUnavailable
from webhook.registry.manifest import OciManifest
from webhook.registry.package import fetch_files, packed, push_package
from webhook.registry.transport import RegistryOptions


def test_what_was_pushed_is_pulled_by_tag_and_by_digest(registry):
    package = packed(
        {"a.yaml": b"a: 1\n", "b/c.rego": b"package c\n"},
        {".yaml": "application/yaml", ".rego": "text/plain"},
        artifact_type="application/x",
        config=("application/vnd.oci.empty.v1+json", b"{}"),
    )

    digest = ask(registry, lambda client: push_package(client, named(registry), package))

    files = {"a.yaml": b"a: 1\n", "b/c.rego": b"package c\n"}
    assert files_of(registry) == files
    assert files_of(registry, f"@{digest}") == files
    uploads = [path for method, path in registry.requests if method == "POST"]
    assert len(uploads) == 3


def test_a_blob_that_is_there_is_not_pushed_again(registry):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    package = packed({"a.yaml": b"a: 1\n"}, {".yaml": "x"}, artifact_type="", config=("x", b"{}"))

    ask(registry, lambda client: push_package(client, named(registry), package))

    assert [method for method, _ in registry.requests] == ["HEAD", "HEAD", "PUT"]


def test_a_token_is_asked_for_once_and_sent_until_it_ends(registry):
    registry.users = {"ann": "secret"}
    put_files(registry, {"a.yaml": b"a: 1\n", "b.yaml": b"b: 1\n"})
    config = DockerConfig({registry.host: Credential("ann", "secret")})

    assert len(files_of(registry, configs=(config,))) == 2
    assert sum(path.startswith("/token") for _, path in registry.requests) == 1
    token_path = next(path for _, path in registry.requests if path.startswith("/token"))
    assert "scope=repository:team/policies:pull" in unquote(token_path)


def test_a_token_that_the_registry_takes_no_more_is_renewed(registry):
    registry.users = {"ann": "secret"}
    put_files(registry, {"a.yaml": b"a: 1\n"})
    config = DockerConfig({registry.host: Credential("ann", "secret")})

    async def question(client):
        first = await client.manifest(named(registry))
        registry.tokens.clear()
        return first, await client.manifest(named(registry))

    first, second = ask(registry, question, configs=(config,))

    assert first == second
    assert sum(path.startswith("/token") for _, path in registry.requests) == 2


def test_an_identity_token_is_exchanged(registry):
    registry.users = {"": "refresh"}
    put_files(registry, {"a.yaml": b"a: 1\n"})
    config = DockerConfig({registry.host: Credential(identity_token="refresh")})

    assert files_of(registry, configs=(config,)) == {"a.yaml": b"a: 1\n"}
    assert ("POST", "/token") in registry.requests


def test_basic_authentication_is_answered(registry):
    registry.users, registry.basic = {"ann": "secret"}, True
    put_files(registry, {"a.yaml": b"a: 1\n"})
    config = DockerConfig({registry.host: Credential("ann", "secret")})

    assert files_of(registry, configs=(config,)) == {"a.yaml": b"a: 1\n"}


def test_without_credentials_it_says_that_a_user_is_asked_for(registry):
    registry.users, registry.basic = {"ann": "secret"}, True

    with pytest.raises(RegistryRefused, match="asks for a user, and no credentials name it"):
        files_of(registry)


def test_a_wrong_password_is_refused_and_not_shown(registry):
    registry.users = {"ann": "secret"}
    config = DockerConfig({registry.host: Credential("ann", "wrong-password")})

    with pytest.raises(RegistryRefused, match="gave no token: HTTP status 401") as raised:
        files_of(registry, configs=(config,))

    assert "wrong-password" not in str(raised.value)
    assert "wrong-password" not in repr(config)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_registry_is_asked_again_as_it_says(registry, status):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    left = [2]

    async def busy(request):
        if left[0]:
            left[0] -= 1
            return web.Response(status=status, headers={"Retry-After": "0"})
        return None

    registry.instead = busy

    assert files_of(registry) == {"a.yaml": b"a: 1\n"}


def test_a_registry_that_wants_long_peace_is_reported_with_its_wait(registry):
    async def busy(request):
        return web.json_response(
            {"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}]},
            status=429,
            headers={"Retry-After": "3600"},
        )

    registry.instead = busy

    with pytest.raises(RegistryUnavailable, match=r"429: TOOMANYREQUESTS slow down; .* 3600 s"):
        files_of(registry)
    assert len(registry.requests) == 1


def test_a_mirror_is_asked_first_and_the_registry_where_it_has_nothing(registry):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    with serving() as mirror:
        options = RegistryOptions(
            insecure=frozenset((registry.host, mirror.host)),
            mirrors={registry.host: (mirror.host,)},
        )

        async def pulled():
            async with RegistryClient(options) as client:
                reference = named(registry)
                return await fetch_files(
                    client, reference, await client.manifest(reference), archives=False
                )

        assert asyncio.run(pulled()) == {"a.yaml": b"a: 1\n"}
        assert registry.requests
        registry.requests.clear()
        put_files(mirror, {"a.yaml": b"a: 2\n"})
        assert asyncio.run(pulled()) == {"a.yaml": b"a: 2\n"}
        assert not registry.requests


def test_referrers_are_listed_by_the_registry(registry):
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})
    subject = {"mediaType": MANIFEST, "digest": digest, "size": 1}
    registry.put(REPOSITORY, "", manifest(subject=subject, artifactType="x/signature"), MANIFEST)
    registry.put(REPOSITORY, "", manifest(subject=subject, artifactType="x/sbom"), MANIFEST)

    every = ask(registry, lambda client: client.referrers(named(registry, f"@{digest}")))

    assert {one.artifact_type for one in every} == {"x/sbom", "x/signature"}


def test_referrers_are_read_page_by_page(registry):
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})

    async def pages(request):
        if "/referrers/" not in request.path:
            return None
        page = int(request.query.get("page", "0"))
        entry = descriptor(str(page).encode(), MANIFEST, artifactType="x")
        headers = {"Link": f'<{request.path}?page={page + 1}>; rel="next"'} if page < 2 else {}
        return web.Response(body=index(entry), content_type=INDEX, headers=headers)

    registry.instead = pages

    assert len(ask(registry, lambda client: client.referrers(named(registry, f"@{digest}")))) == 3


def test_referrers_are_found_by_their_tag_where_the_registry_lists_none(registry):
    registry.has_referrers = False
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})
    reference = named(registry, f"@{digest}")
    assert ask(registry, lambda client: client.referrers(reference)) == []
    entry = descriptor(b"signature", MANIFEST, artifactType="x/signature")
    registry.put(REPOSITORY, digest.replace(":", "-"), index(entry), INDEX)

    (found,) = ask(registry, lambda client: client.referrers(reference))

    assert found.digest == digest_of(b"signature")


def test_the_manifest_of_a_platform_is_chosen_of_an_index(registry):
    arm, intel = manifest(annotations={"a": "1"}), manifest(annotations={"a": "2"})
    entries = [
        descriptor(one, MANIFEST, platform={"os": "linux", "architecture": name})
        for one, name in ((arm, "arm64"), (intel, "amd64"))
    ]
    for one in (arm, intel):
        registry.put(REPOSITORY, "", one, MANIFEST)
    registry.put(REPOSITORY, "v1", index(*entries), INDEX)

    chosen = ask(registry, lambda client: client.manifest(named(registry), "linux/amd64"))

    assert isinstance(chosen, OciManifest)
    assert chosen.annotations == {"a": "2"}
    with pytest.raises(RegistryError, match="an index of 2 manifests: name one by its digest"):
        ask(registry, lambda client: client.manifest(named(registry)))


def test_a_registry_with_tls_is_trusted_by_its_authority_alone(tmp_path, registry):
    from tests.webhook.registry.tls import self_signed  # it takes a moment to make

    certificate, context = self_signed(tmp_path)
    with serving(tls=context) as secure:
        put_files(secure, {"a.yaml": b"a: 1\n"})

        def pulled(**more):
            async def run():
                async with RegistryClient(RegistryOptions(**more)) as client:
                    return await client.manifest(named(secure))

            return asyncio.run(run())

        assert pulled(ca_files=(certificate,)).layers
        with pytest.raises(
            RegistryUnavailable, match="for a registry without TLS give --registry-insecure"
        ):
            pulled()


def test_a_proxy_is_gone_by_and_left_out_as_the_environment_says(registry, monkeypatch):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    seen = []

    async def forwarding(request):
        seen.append(str(request.url))
        content, kind = registry.manifests[REPOSITORY, "v1"]
        return web.Response(body=content, headers={"Content-Type": kind})

    with serving() as proxy:
        proxy.instead = forwarding
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        elsewhere = f"registry.example/{REPOSITORY}:v1"

        async def pulled():
            async with RegistryClient(
                RegistryOptions(insecure=frozenset(("registry.example",)))
            ) as client:
                from webhook.registry.reference import parse_reference

                return await client.manifest(parse_reference(elsewhere))

        assert asyncio.run(pulled()).layers
        assert seen == [f"http://registry.example/v2/{REPOSITORY}/manifests/v1"]
        monkeypatch.setenv("NO_PROXY", "registry.example")
        with pytest.raises(RegistryError):
            asyncio.run(pulled())
        assert len(seen) == 1


def test_credentials_stay_with_their_host_where_a_blob_comes_from_elsewhere(registry):
    registry.users = {"ann": "secret"}
    put_files(registry, {"a.yaml": b"a: 1\n"})
    config = DockerConfig({registry.host: Credential("ann", "secret")})
    with serving() as storage:
        storage.blobs = registry.blobs

        async def away(request):
            if "/blobs/" not in request.path or "Authorization" not in request.headers:
                return None
            return web.Response(status=307, headers={"Location": storage.url + request.path})

        registry.instead = away

        assert files_of(registry, configs=(config,)) == {"a.yaml": b"a: 1\n"}
        assert storage.authorizations == [""]


def test_a_manifest_without_a_kind_is_known_by_its_members(registry):
    document = json.loads(manifest())
    del document["mediaType"]
    content = json.dumps(document).encode()

    async def untyped(request):
        return web.Response(body=content, headers={"Content-Type": ""})

    registry.instead = untyped

    assert ask(registry, lambda client: client.fetch(named(registry))).layers == ()


def test_tls_of_old_versions_is_refused():
    from webhook.registry.transport import trust

    assert trust(RegistryOptions()).minimum_version >= ssl.TLSVersion.TLSv1_2
