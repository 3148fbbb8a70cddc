"""A small OCI registry over real sockets, on a thread of its own, that can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    import ssl

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class OciRegistry:
    """The contents of a registry, its requests and its configured answers."""

    host: str = ""
    scheme: str = "http"
    blobs: dict[str, bytes] = field(default_factory=dict)
    uploads: list[bytes] = field(default_factory=list)
    manifests: dict[tuple[str, str], tuple[bytes, str]] = field(default_factory=dict)
    """Bytes and kind by repository and tag or digest."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    """Passwords by name: with any, a token is asked for."""
    basic: bool = False
    token_seconds: int = 300
    has_referrers: bool = True
    tokens: set[str] = field(default_factory=set)
    instead: Handler | None = None
    """Asked first; None from it is the usual answer."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"

    def put(self, repository: str, tag: str, content: bytes, kind: str) -> str:
        digest = digest_of(content)
        self.manifests[repository, digest] = content, kind
        if tag:
            self.manifests[repository, tag] = content, kind
        return digest

    def put_artifact(
        self, repository: str, tag: str, layers: Sequence[tuple[bytes, str, Mapping[str, str]]]
    ) -> str:
        """An artifact of layers: their bytes, kinds and annotations; its digest."""
        descriptors = []
        for content, kind, noted in ((b"{}", _CONFIG, {}), *layers):
            self.blobs[digest_of(content)] = content
            one = {"mediaType": kind, "digest": digest_of(content), "size": len(content)}
            descriptors.append({**one, "annotations": dict(noted)} if noted else one)
        config, *rest = descriptors
        document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": rest}
        return self.put(repository, tag, json.dumps(document).encode(), OCI_MANIFEST)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.authorizations.append(request.headers.get("Authorization", ""))
        if self.instead is not None and (answer := await self.instead(request)) is not None:
            return answer
        if request.path == "/token":
            return await self._token(request)
        if self.users and (refusal := self._refusal(request)) is not None:
            return refusal
        return await self._content(request)

    async def _token(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            form = await request.post()
            known = form["refresh_token"] in self.users.values()
        else:
            known = self._is_user(request)
        if not known:
            return web.json_response({"errors": [{"code": "UNAUTHORIZED"}]}, status=401)
        token = f"token-{len(self.tokens)}"
        self.tokens.add(token)
        return web.json_response({"token": token, "expires_in": self.token_seconds})

    def _is_user(self, request: web.Request) -> bool:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return False
        name, _, password = base64.b64decode(text).decode().partition(":")
        return self.users.get(name) == password

    def _refusal(self, request: web.Request) -> web.Response | None:
        if self.basic:
            if self._is_user(request):
                return None
            challenge = 'Basic realm="tests"'
        else:
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if token in self.tokens:
                return None
            challenge = f'Bearer realm="{self.url}/token",service="tests",scope="x"'
        return web.json_response(
            {"errors": [{"code": "UNAUTHORIZED", "message": "who is it?"}]},
            status=401,
            headers={"WWW-Authenticate": challenge},
        )

    async def _content(self, request: web.Request) -> web.Response:
        for part in ("/manifests/", "/blobs/", "/referrers/"):
            before, found, after = request.path.removeprefix("/v2/").partition(part)
            if found:
                break
        else:
            return web.json_response({})
        if part == "/manifests/":
            return await self._manifest(request, before, after)
        if part == "/referrers/":
            return self._referrers(request, before, after)
        return await self._blob(request, before, after)

    async def _manifest(self, request: web.Request, repository: str, name: str) -> web.Response:
        if request.method == "PUT":
            content, kind = await request.read(), request.headers["Content-Type"]
            self.put(repository, "" if name.startswith("sha256:") else name, content, kind)
            return web.Response(status=201, headers={"Docker-Content-Digest": digest_of(content)})
        if (repository, name) not in self.manifests:
            return _missing("MANIFEST_UNKNOWN")
        content, kind = self.manifests[repository, name]
        headers = {"Content-Type": kind, "Docker-Content-Digest": digest_of(content)}
        return web.Response(body=content, headers=headers)

    async def _blob(self, request: web.Request, repository: str, name: str) -> web.Response:
        if request.method == "POST":
            self.uploads.append(b"")
            place = f"/v2/{repository}/blobs/uploads/{len(self.uploads) - 1}?state=a"
            return web.Response(status=202, headers={"Location": place})
        upload = name.removeprefix("uploads/")
        if request.method == "PATCH":
            self.uploads[int(upload)] += await request.read()
            return web.Response(status=202, headers={"Location": request.path_qs})
        if request.method == "PUT":
            content, digest = await request.read(), request.query["digest"]
            content = self.uploads[int(upload)] + content
            if digest_of(content) != digest:
                return web.json_response({"errors": [{"code": "DIGEST_INVALID"}]}, status=400)
            self.blobs[digest] = content
            return web.Response(status=201)
        if name not in self.blobs:
            return _missing("BLOB_UNKNOWN")
        return web.Response(body=self.blobs[name], content_type="application/octet-stream")

    def _referrers(self, request: web.Request, repository: str, digest: str) -> web.Response:
        if not self.has_referrers:
            return _missing("NOT_FOUND")
        entries = []
        for (of, name), (content, kind) in self.manifests.items():
            document = json.loads(content)
            about = (document.get("subject") or {}).get("digest")
            if of == repository and name.startswith("sha256:") and about == digest:
                entries.append(
                    {
                        "mediaType": kind,
                        "digest": name,
                        "size": len(content),
                        "artifactType": document.get("artifactType", ""),
                    }
                )
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
        return web.Response(body=json.dumps(index).encode(), content_type=OCI_INDEX)


def _missing(code: str) -> web.Response:
    errors = {"errors": [{"code": code, "message": "it is not here"}]}
    return web.json_response(errors, status=404)


@contextlib.contextmanager
def serving(
    tls: ssl.SSLContext | None = None, registry: OciRegistry | None = None
) -> Iterator[OciRegistry]:
    """The registry on a port of the system's choice."""
    made = registry or OciRegistry()
    loop = asyncio.new_event_loop()
    started, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        app = web.Application(client_max_size=256 << 20)
        app.router.add_route("*", "/{path:.*}", made.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        made.host = f"127.0.0.1:{runner.addresses[0][1]}"
        made.scheme = "https" if tls else "http"
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
        loop.close()
