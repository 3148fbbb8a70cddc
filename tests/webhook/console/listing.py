"""A small API server that lists and watches what a test puts into it, for consoles alone.

What the real one does beyond that, `test_the_console_shows_a_cluster` sees at the real one.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.cluster import write_kubeconfig
from tests.patience import until
from webhook.api.resource import Resource
from webhook.cli.cluster_access import EXTENSIONS, TEMPLATES
from webhook.cluster.kinds import NAMESPACES, PODS
from webhook.controllers.status_kinds import status_resource
from webhook.policy_kinds.known import STATUS_KINDS, constraints_of
from webhook.policy_kinds.table import (
    ADMISSION_POLICY_KINDS,
    ANSWERS,
    CONSTRAINT_GROUPS,
    EXCEPTION_KINDS,
    KYVERNO_KINDS,
)
from webhook.reports.report_api import WGPOLICY

RESOURCES = (
    *(TEMPLATES, *EXTENSIONS, *map(status_resource, STATUS_KINDS), PODS, NAMESPACES),
    *WGPOLICY.resources,
    *(CONSTRAINT_GROUPS.resource, *(row.resource for row in (*EXCEPTION_KINDS, *KYVERNO_KINDS))),
    *(row.resource for row in ADMISSION_POLICY_KINDS if row is not ANSWERS),
)

Object = dict[str, Any]


class Listing:
    """Objects by kind, served on a loop and a thread of its own."""

    def __init__(self, folder: Path, *kinds: str) -> None:
        """``kinds`` are those of constraints."""
        served = [*RESOURCES, *map(constraints_of, kinds)]
        self._resources = {(one.gvk.group, one.plural): one for one in served}
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
        self._version = 0
        self.granted: set[tuple[str, str, str, str]] = set()
        """User or group, then group, plural and namespace: "" is all of them."""
        self.reviews: list[Object] = []
        """Reviews of somebody's access."""
        self.reports: dict[str, str] = {}
        """Answers of Pods to ``/readyz?verbose``; a Pod without an entry does not answer yet."""
        self.reported: list[str] = []
        """The Pods whose reports were read."""
        self._watching: dict[asyncio.Queue[bytes], tuple[str, str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        routes = [
            Route("/version", lambda _: JSONResponse({"major": "1"})),
            Route(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews", self._may, methods=["POST"]
            ),
            Route("/api/v1/namespaces/{namespace}/pods/{pod}/proxy/readyz", self._report),
            Route("/{rest:path}", self._answer, methods=["GET", "PUT"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), port=0, log_config=None, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._folder = folder
        self.kubeconfig = folder / "config"

    def serve(self, resource: Resource) -> None:
        """Serves one more kind."""
        self._resources[resource.gvk.group, resource.plural] = resource

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve()

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: self._server.started, "the listing serves")
        port = self._server.servers[0].sockets[0].getsockname()[1]
        write_kubeconfig(self.kubeconfig, f"http://127.0.0.1:{port}")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def put(self, resource: Resource, *objects: Object) -> None:
        """Have these objects, new or changed."""
        self._run(resource, "MODIFIED", objects)

    def delete(self, resource: Resource, obj: Object) -> None:
        """Have this object no more."""
        self._run(resource, "DELETED", [obj])

    def _run(self, resource: Resource, kind: str, objects: Iterable[Object]) -> None:
        assert self._loop is not None
        done = threading.Event()

        def change() -> None:
            for item in objects:
                self._change((resource.gvk.group, resource.plural), resource, kind, item)
            done.set()

        self._loop.call_soon_threadsafe(change)
        assert done.wait(60)

    def _change(self, where: tuple[str, str], resource: Resource, kind: str, item: Object) -> None:
        self._version += 1
        item = {"apiVersion": resource.gvk.group_version, "kind": resource.gvk.kind, **item}
        metadata = item["metadata"]
        item["metadata"] = {
            "uid": f"u-{metadata['name']}",
            "generation": 1,
            **metadata,
            "resourceVersion": str(self._version),
        }
        key = metadata.get("namespace", ""), metadata["name"]
        known = self._objects.setdefault(where, {})
        if kind == "DELETED":
            known.pop(key, None)
        else:
            known[key] = item
        line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        for queue, of in self._watching.items():
            if of == where:
                queue.put_nowait(line)

    async def _may(self, request: Request) -> Response:
        """Whether somebody may, by what is ``granted``; the real rules are RBAC's."""
        spec = (await request.json())["spec"]
        self.reviews.append(spec)
        attributes = spec["resourceAttributes"]
        namespace = attributes.get("namespace", "")
        allowed = any(
            (subject, attributes.get("group", ""), attributes["resource"], where) in self.granted
            for subject in (spec["user"], *spec["groups"])
            for where in {namespace, ""}
        )
        return JSONResponse({"status": {"allowed": allowed}}, 201)

    async def _report(self, request: Request) -> Response:
        name = request.path_params["pod"].partition(":")[0]
        self.reported.append(name)
        while name not in self.reports:  # noqa: ASYNC110  # a test gives it on another thread
            await asyncio.sleep(0.01)
        return PlainTextResponse(self.reports[name])

    async def _answer(self, request: Request) -> Response:
        parts = request.url.path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if not rest:
            listed = [
                {"name": one.plural, "kind": one.gvk.kind, "namespaced": one.namespaced}
                for one in self._resources.values()
                if one.gvk.group == group
            ]
            return JSONResponse({"resources": listed}, 200 if listed else 404)
        where = group, rest[-1]
        if len(rest) > 1 and (resource := self._resources.get((group, rest[-2]))):
            return await self._single(request, resource, rest)
        if where not in self._resources:
            return JSONResponse({"kind": "Status", "code": 404}, 404)
        query = request.query_params
        if query.get("sendInitialEvents"):
            return JSONResponse({"kind": "Status", "code": 422}, 422)
        if query.get("watch"):
            return StreamingResponse(self._watch(where), media_type="application/json")
        items = list(self._objects.get(where, {}).values())
        first, limit = int(query.get("continue") or 0), int(query.get("limit") or len(items) or 1)
        more = str(first + limit) if first + limit < len(items) else ""
        metadata = {"resourceVersion": str(self._version), "continue": more}
        return JSONResponse({"items": items[first : first + limit], "metadata": metadata})

    async def _single(self, request: Request, resource: Resource, rest: list[str]) -> Response:
        """Answers with one object, after its replacement by a PUT."""
        where = resource.gvk.group, resource.plural
        if request.method == "PUT":
            self._change(where, resource, "MODIFIED", await request.json())
        known = self._objects.get(where, {})
        found = known.get((rest[1] if rest[0] == "namespaces" else "", rest[-1]))
        return JSONResponse(found or {"kind": "Status", "code": 404}, 200 if found else 404)

    async def _watch(self, where: tuple[str, str]) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watching[queue] = where
        try:
            while True:
                yield await queue.get()
        finally:
            del self._watching[queue]
