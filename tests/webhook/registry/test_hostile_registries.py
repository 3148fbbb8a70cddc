"""Registries that hang, lie, flood and send elsewhere: each refused, with its reason."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import tarfile
import tracemalloc

import pytest
from aiohttp import web

from tests.oci_registry import OciRegistry, digest_of, serving
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
from webhook.registry.credentials import Credential, DockerConfig
from webhook.registry.errors import (
    RegistryError,
    RegistryRefused,
    RegistryUnavailable,
    UntrustedContent,
)
from webhook.registry.manifest import ENTRIES_MAX
from webhook.registry.package import PACKAGE_BYTES_MAX
from webhook.registry.transport import REDIRECTS_MAX, TRIES_MAX

TITLE = "org.opencontainers.image.title"


def answering(registry: OciRegistry, part: str, answer) -> None:
    """Have the registry answer so where a path has a part."""

    async def instead(request):
        return (await answer(request)) if part in request.path else None

    registry.instead = instead


# --- time ---------------------------------------------------------------------------------------


def test_a_registry_that_hangs_is_left_at_the_deadline(registry):
    async def hang(request):
        await asyncio.sleep(3600)

    registry.instead = hang

    with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.2 s"):
        files_of(registry, deadline_seconds=0.2)


def test_a_registry_that_drips_is_left_at_the_deadline(registry):
    async def drip(request):
        response = web.StreamResponse(headers={"Content-Type": MANIFEST})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    registry.instead = drip

    with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.3 s"):
        files_of(registry, deadline_seconds=0.3)


def test_a_registry_that_closes_each_connection_is_asked_a_few_times(registry):
    async def close(request):
        request.transport.abort()
        return web.Response()

    registry.instead = close

    with pytest.raises(RegistryUnavailable, match=registry.host):
        files_of(registry)
    assert len(registry.requests) >= TRIES_MAX
    assert len(registry.requests) <= 2 * TRIES_MAX  # aiohttp itself tries an idle connection twice


def test_a_registry_that_is_busy_for_good_is_asked_a_few_times(registry):
    async def busy(request):
        return web.Response(status=503, headers={"Retry-After": "0"})

    registry.instead = busy

    with pytest.raises(RegistryUnavailable, match="HTTP status 503"):
        files_of(registry)
    assert len(registry.requests) == TRIES_MAX


# --- size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("says_its_length", [True, False])
def test_a_manifest_of_100_mb_is_not_held(registry, says_its_length):
    async def flood(request):
        response = web.StreamResponse(headers={"Content-Type": MANIFEST})
        if says_its_length:
            response.content_length = 100 << 20
        await response.prepare(request)
        for _ in range(1600):
            await response.write(b" " * (64 << 10))
        return response

    registry.instead = flood
    tracemalloc.start()
    try:
        with pytest.raises(UntrustedContent, match="answered with more than 4194304 bytes"):
            files_of(registry)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 << 20


def test_a_refusal_of_100_mb_is_cut(registry):
    async def flood(request):
        return web.Response(status=403, body=b'{"errors": [' + b" " * (100 << 20))

    registry.instead = flood

    with pytest.raises(RegistryRefused, match="HTTP status 403"):
        files_of(registry)


def test_a_blob_that_is_larger_than_the_manifest_says_is_not_held(registry):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    answering(registry, "/blobs/", lambda _: _later(web.Response(body=b"x" * 100_000)))

    with pytest.raises(UntrustedContent, match="answered with more than 5 bytes"):
        files_of(registry)


def test_an_artifact_that_is_too_large_is_not_begun(registry):
    huge = descriptor(b"x", annotations={TITLE: "a.yaml"}) | {"size": PACKAGE_BYTES_MAX + 1}
    registry.put(REPOSITORY, "v1", manifest(huge), MANIFEST)

    with pytest.raises(UntrustedContent, match="policies have at most 64"):
        files_of(registry)
    assert not any("/blobs/" in path for _, path in registry.requests)


def test_a_manifest_of_too_many_layers_is_refused(registry):
    layers = [descriptor(b"x")] * (ENTRIES_MAX + 1)
    registry.put(REPOSITORY, "v1", manifest(*layers), MANIFEST)

    with pytest.raises(UntrustedContent, match="4097 layers in one manifest"):
        files_of(registry)


def test_more_referrers_than_an_image_has_are_refused(registry):
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})

    async def endless(request):
        entries = [descriptor(b"x", MANIFEST)] * 1000
        link = f'<{request.path}?n={len(registry.requests)}>; rel="next"'
        return web.Response(body=index(*entries), content_type=INDEX, headers={"Link": link})

    answering(registry, "/referrers/", endless)

    with pytest.raises(UntrustedContent, match="more than 4096 referrers"):
        ask(registry, lambda client: client.referrers(named(registry, f"@{digest}")))
    assert len(registry.requests) < 10


def test_compressed_content_is_not_inflated(registry):
    body = gzip.compress(b" " * (64 << 20))

    async def bomb(request):
        return web.Response(
            body=body, headers={"Content-Type": MANIFEST, "Content-Encoding": "gzip"}
        )

    registry.instead = bomb

    with pytest.raises(UntrustedContent, match="compressed content"):
        files_of(registry)


# --- other content ------------------------------------------------------------------------------


def test_a_manifest_with_another_digest_is_refused(registry):
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})
    registry.manifests[REPOSITORY, digest] = manifest(annotations={"a": "b"}), MANIFEST

    with pytest.raises(UntrustedContent, match=f"not {digest}"):
        files_of(registry, f"@{digest}")


def test_a_header_with_another_digest_is_refused(registry):
    async def lie(request):
        headers = {"Content-Type": MANIFEST, "Docker-Content-Digest": f"sha256:{'0' * 64}"}
        return web.Response(body=manifest(), headers=headers)

    registry.instead = lie

    with pytest.raises(UntrustedContent, match="says sha256:0000"):
        files_of(registry)


def test_a_blob_with_another_digest_is_refused(registry):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    registry.blobs[digest_of(b"a: 1\n")] = b"a: 2\n"

    with pytest.raises(UntrustedContent, match="gave a blob with sha256:"):
        files_of(registry)


def test_indexes_within_indexes_come_to_an_end(registry):
    inner = manifest()
    registry.put(REPOSITORY, "", inner, MANIFEST)
    for _ in range(12):
        entry = descriptor(inner, INDEX)
        inner = index(entry)
        registry.put(REPOSITORY, "v1", inner, INDEX)

    with pytest.raises(UntrustedContent, match="indexes within indexes, more than 3"):
        files_of(registry)


def test_an_index_that_names_itself_is_found_out_by_its_digest(registry):
    async def loop(request):
        return web.Response(body=index(descriptor(b"me", INDEX)), content_type=INDEX)

    registry.instead = loop

    with pytest.raises(UntrustedContent, match="gave a manifest with the digest"):
        files_of(registry)
    assert len(registry.requests) == 2


WRONG = {
    "another kind than it says": (manifest(), INDEX, "was sent as"),
    "an unknown kind": (
        json.dumps({"schemaVersion": 2, "mediaType": "text/html"}).encode(),
        "text/html",
        "is not a kind of manifest",
    ),
    "a page": (b"<html>", MANIFEST, "not JSON"),
    "nested without end": (b"[" * 100_000, MANIFEST, "not JSON"),
    "an array": (b"[]", MANIFEST, "not an object of schemaVersion 2"),
    "the old schema": (b'{"schemaVersion": 1}', MANIFEST, "not an object of schemaVersion 2"),
    "two kinds at once": (manifest(manifests=[]), MANIFEST, "read in two ways"),
    "no config": (b'{"schemaVersion": 2}', MANIFEST, "no config"),
    "layers of text": (
        manifest().replace(b'"layers": []', b'"layers": "a"'),
        MANIFEST,
        "layers of a manifest is not an array",
    ),
    "a size below nothing": (
        manifest({"mediaType": "a", "digest": digest_of(b""), "size": -1}),
        MANIFEST,
        r"layers\[0\] of a manifest has no size",
    ),
    "a size that is true": (
        manifest({"mediaType": "a", "digest": digest_of(b""), "size": True}),
        MANIFEST,
        "has no size",
    ),
    "a digest that nobody can check": (
        manifest({"mediaType": "a", "digest": "md5:00", "size": 1}),
        MANIFEST,
        "no digest that can be checked",
    ),
    "annotations of numbers": (manifest(annotations={"a": 1}), MANIFEST, "are not strings"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_manifest_of_the_wrong_kind_is_refused(registry, name):
    content, kind, reason = WRONG[name]
    registry.put(REPOSITORY, "v1", content, kind)

    with pytest.raises(UntrustedContent, match=reason):
        files_of(registry)


# --- other hosts --------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["/manifests/", "/referrers/"])
def test_only_blobs_may_come_from_another_host(registry, part):
    digest = put_files(registry, {"a.yaml": b"a: 1\n"})
    with serving() as other:
        answering(registry, part, lambda _: _later(_redirect(f"{other.url}/elsewhere")))

        def listed():
            return ask(registry, lambda client: client.referrers(named(registry, f"@{digest}")))

        with pytest.raises(UntrustedContent, match="redirects to another host"):
            files_of(registry) if part == "/manifests/" else listed()
        assert not other.requests


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("ftp://files.example/a", "not https"),
        ("file:///etc/passwd", "redirects to no address"),
        ("", "redirects to no address"),
        ("http://user:word@files.example/", "redirects to no address"),
    ],
)
def test_a_blob_s_redirect_must_lead_to_https(registry, location, reason):
    put_files(registry, {"a.yaml": b"a: 1\n"})
    answering(registry, "/blobs/", lambda _: _later(_redirect(location)))

    with pytest.raises(UntrustedContent, match=reason):
        files_of(registry)


def test_no_redirect_leads_from_a_public_registry_into_the_network():
    from webhook.registry.transport import RegistryRequest, _redirected

    request = RegistryRequest("registry.example", "a", "/v2/a/blobs/x", leaves=True)
    origin = "https://registry.example"

    for host in ("169.254.169.254", "127.0.0.1:6443", "10.0.0.1", "[::1]", "localhost"):
        with pytest.raises(UntrustedContent, match="an internal address"):
            _redirected(f"{origin}{request.path}", f"https://{host}/", origin, request)
    with pytest.raises(UntrustedContent, match="not https"):
        _redirected(f"{origin}{request.path}", "http://files.example/", origin, request)
    assert _redirected(f"{origin}/a", "https://files.example/b", origin, request)


def test_redirects_come_to_an_end(registry):
    put_files(registry, {"a.yaml": b"a: 1\n"})

    async def around(request):
        return _redirect(f"{registry.url}{request.path}")

    answering(registry, "/blobs/", around)

    with pytest.raises(UntrustedContent, match="more than 5 times"):
        files_of(registry)
    assert len(registry.requests) == REDIRECTS_MAX + 2


@pytest.mark.parametrize("part", ["POST", "PUT"])
def test_a_blob_is_sent_to_no_other_host(registry, part):
    from webhook.registry.manifest import described

    with serving() as other:

        async def away(request):
            if request.method != part:
                return None
            if part == "PUT":
                return web.Response(status=307, headers={"Location": f"{other.url}/upload"})
            return web.Response(status=202, headers={"Location": f"{other.url}/upload"})

        registry.instead = away

        with pytest.raises(UntrustedContent, match=r"another host|redirects PUT: not followed"):
            ask(
                registry,
                lambda client: client.push_blob(named(registry), described(b"a", "x"), b"a"),
            )
        assert not other.requests


# --- tokens -------------------------------------------------------------------------------------


def test_a_token_that_is_never_taken_is_asked_for_once(registry):
    registry.users = {"ann": "secret"}
    config = DockerConfig({registry.host: Credential("ann", "secret")})

    async def expired(request):
        if request.path == "/token":
            return None
        challenge = f'Bearer realm="{registry.url}/token",service="a"'
        return web.json_response(
            {"errors": [{"code": "UNAUTHORIZED", "message": "token expired"}]},
            status=401,
            headers={"WWW-Authenticate": challenge},
        )

    registry.instead = expired

    with pytest.raises(RegistryRefused, match="401: UNAUTHORIZED token expired"):
        files_of(registry, configs=(config,))
    assert len(registry.requests) == 3


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("", "asks for 'no' authentication"),
        ("Negotiate", "asks for 'Negotiate' authentication"),
        ('Bearer realm="ftp://a"', "is not an https URL"),
        ('Bearer realm="/token"', "is not an https URL"),
        ("Bearer " + 'a="b",' * 10_000, "is not an https URL"),
    ],
)
def test_a_challenge_that_cannot_be_met_is_refused(registry, header, reason):
    async def challenge(request):
        return web.Response(status=401, headers={"WWW-Authenticate": header[:8000]})

    registry.instead = challenge

    with pytest.raises(UntrustedContent, match=reason):
        files_of(registry)


def test_no_password_is_sent_to_a_service_without_tls_for_a_registry_with_it():
    from webhook.registry.authorization import read_challenge

    header = 'Bearer realm="http://auth.example/token"'

    with pytest.raises(UntrustedContent, match="not an https URL"):
        read_challenge(header, "registry.example", is_plain=False)
    assert read_challenge(header, "registry.example", is_plain=True).realm


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"token": 1}', b'{"token": "a\\r\\nX: y"}', b'{"token": ""}'],
)
def test_an_answer_without_a_token_is_refused(registry, body):
    registry.users = {"ann": "secret"}

    async def answer(request):
        return web.Response(body=body) if request.path == "/token" else None

    registry.instead = answer

    with pytest.raises(UntrustedContent, match="without a token"):
        files_of(registry)


def test_who_asks_for_a_token_is_sent_nowhere_else(registry):
    registry.users = {"ann": "secret"}
    config = DockerConfig({registry.host: Credential("ann", "secret")})
    with serving() as other:

        async def answer(request):
            return _redirect(f"{other.url}/token") if request.path == "/token" else None

        registry.instead = answer

        with pytest.raises(UntrustedContent, match="not followed"):
            files_of(registry, configs=(config,))
        assert not other.requests


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "title",
    [
        "../a.yaml",
        "/etc/a.yaml",
        "a/../../b.yaml",
        "..\\a.yaml",
        "a\n.yaml",
        "a\0.yaml",
        ".",
        "a" * 2000,
    ],
)
def test_a_file_outside_of_its_folder_is_refused(registry, title):
    put_files(registry, {title: b"a: 1\n"})

    with pytest.raises(UntrustedContent, match="a file outside of its folder"):
        files_of(registry)


def put_archive(registry: OciRegistry, content: bytes) -> None:
    registry.blobs[digest_of(content)] = content
    layer = descriptor(content, "application/vnd.oci.image.layer.v1.tar+gzip")
    registry.put(REPOSITORY, "v1", manifest(layer), MANIFEST)


def archive(*members: tuple[str, bytes, bytes]) -> bytes:
    """A gzipped archive; of each member its name, its type and what it holds or links to."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as opened:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                opened.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content.decode()
                opened.addfile(info)
    return file.getvalue()


def test_a_bundle_of_opa_is_opened(registry):
    put_archive(
        registry,
        archive(
            ("/a/b.rego", tarfile.REGTYPE, b"package a.b\n"),
            ("/data.json", tarfile.REGTYPE, b"{}"),
            ("/program", tarfile.REGTYPE, b"\x7fELF"),
        ),
    )

    assert files_of(registry) == {"a/b.rego": b"package a.b\n", "data.json": b"{}"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (archive(("a.yaml", tarfile.SYMTYPE, b"/etc/passwd")), "an entry that is not a file"),
        (archive(("a.yaml", tarfile.LNKTYPE, b"b.yaml")), "an entry that is not a file"),
        (archive(("a.yaml", tarfile.FIFOTYPE, b"")), "an entry that is not a file"),
        (archive(("../a.yaml", tarfile.REGTYPE, b"a")), "outside of its folder"),
        (gzip.compress(b"\0" * (PACKAGE_BYTES_MAX + (32 << 20))), "too large"),
        (b"not gzip", "not gzip"),
        (archive(("a.yaml", tarfile.REGTYPE, b"a"))[:-20], "cut short"),
    ],
    ids=["link", "hard link", "pipe", "above", "bomb", "text", "short"],
)
def test_an_archive_with_anything_but_files_below_is_refused(registry, content, reason):
    put_archive(registry, content)

    with pytest.raises(UntrustedContent, match=reason):
        files_of(registry)


def test_no_file_is_written_through_a_link(tmp_path):
    from webhook.registry.package import write_files

    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (folder / "sub").symlink_to(outside)
    (folder / "a.yaml").symlink_to(outside / "a.yaml")

    for name in ("sub/a.yaml", "a.yaml"):
        with pytest.raises(UntrustedContent, match="leads out of"):
            write_files({name: b"a"}, folder)
    assert not list(outside.iterdir())


def test_what_a_registry_says_is_shown_without_its_control_codes(registry):
    async def shout(request):
        errors = {"errors": [{"code": "DENIED", "message": "\x1b[31mred\n::error::x"}]}
        return web.json_response(errors, status=403)

    registry.instead = shout

    with pytest.raises(RegistryError) as raised:
        files_of(registry)
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_password_is_no_part_of_any_text():
    shown = repr(Credential("ann", "secret", "identity"))

    assert "secret" not in shown
    assert base64.b64encode(b"ann:secret").decode() not in shown


def _redirect(location: str) -> web.Response:
    return web.Response(status=302, headers={"Location": location})


async def _later(response: web.StreamResponse) -> web.StreamResponse:
    return response
