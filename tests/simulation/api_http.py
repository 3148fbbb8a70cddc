"""The simulated API server's door: HTTP/1.1 over the world's connections, and what goes wrong there."""

import asyncio
import functools
from typing import Any
from urllib.parse import unquote, unquote_plus

import orjson

from tests.simulation.api_server import Happened, Json, Refusal, Selector, Served, Storage
from tests.simulation.loop import Loop
from tests.simulation.network import Network

ADDRESS = ("10.0.0.1", 80)
URL = "http://10.0.0.1:80"
BOOKMARK_SECONDS = 60.0
DROPPED_SECONDS = 60.0
"""The longest time of a silent watch after its kind's definition was deleted."""


def _parsed(target: str) -> tuple[list[str], dict[str, str]]:
    """The parts of a path, and the query, of a request's target."""
    path, _, query = target.partition("?")
    return unquote(path).split("/")[1:], dict([_pair(pair) for pair in query.split("&") if pair])


@functools.lru_cache
def _pair(text: str) -> tuple[str, str]:
    """A name and a value of a query: most come again and again."""
    name, _, value = text.partition("=")
    return unquote_plus(name), unquote_plus(value)


def _content_length(head: bytes) -> int:
    """Returns the length of a request's body, by its headers."""
    _, found, rest = head.partition(b"\r\nContent-Length: ")
    return int(rest.partition(b"\r\n")[0]) if found else 0


def _merged(item: Any, patch: Any) -> Any:
    """By a JSON merge patch (RFC 7396)."""
    if type(patch) is not dict:
        return patch
    before = item if type(item) is dict else {}
    changed = {key: _merged(before.get(key), value) for key, value in patch.items()}
    return {key: value for key, value in {**before, **changed}.items() if value is not None}


class ApiServer:
    """A start of the API server over its storage."""

    def __init__(self, loop: Loop, network: Network, storage: Storage) -> None:
        self.loop = loop
        self.network = network
        self.storage = storage
        self.process = loop.process("api server")
        self.busy = 0.0
        """The probability of an answer 429 or 503."""
        self.torn = 0.0
        """The probability that a connection breaks instead of an answer, after the work was
        done."""
        self.slow = 0.0
        """The longest time of an answer, in seconds."""
        self.late: dict[str, float] = {}
        """By how much longer objects of a plural are waited for, in seconds."""
        self.forgetful = 0.0
        """The probability that the history is compacted before a list's next page is answered."""
        self.watch_lists = True
        self.requests = 0
        self.watches: dict[_Connection, None] = {}

    def start(self) -> None:
        """Listen."""
        self.process.context.run(self.network.listen, ADDRESS, lambda: _Connection(self))
        self.storage.listeners.append(self._happened)
        self.storage.droppers.append(self._dropped)

    def stop(self) -> None:
        """Removes the listeners of a killed server."""
        self.storage.listeners.remove(self._happened)
        self.storage.droppers.remove(self._dropped)

    def _happened(self, change: Happened) -> None:
        for connection in list(self.watches):
            connection.notify(change)

    def _dropped(self, served: Served) -> None:
        for connection in list(self.watches):
            connection.drop(served)


class _Connection(asyncio.Protocol):
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._transport: Any = None
        self._data = b""
        self._watch: tuple[Served, Selector] | None = None
        self._begun_at = 0
        """The version behind which a watch tells what happens, which may be one that is to come."""
        self._delay_until = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.watches.pop(self, None)

    def end(self) -> None:
        """Close it at once, whatever the other side does."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, separator, rest = self._data.partition(b"\r\n\r\n")
        if not separator:
            return
        length = _content_length(head)
        if len(rest) < length:
            return
        self._data = rest[length:]
        method, target, _ = head.partition(b"\r\n")[0].decode().split(" ")
        server = self._server
        server.requests += 1
        chance = server.loop.random
        delay = chance.random() * (0.002 if chance.random() < 0.8 else server.slow)
        for plural, seconds in server.late.items():
            delay += seconds if method == "GET" and f"/{plural}" in target else 0.0
        server.loop.call_later(
            delay, self._answer, method, target, rest[:length], context=server.process.context
        )

    # --- plain requests ------------------------------------------------------------------------

    def _answer(self, method: str, target: str, body: bytes) -> None:
        if self._transport.is_closing():
            return
        server, chance = self._server, self._server.loop.random
        path, query = _parsed(target)
        try:
            if server.busy and chance.random() < server.busy:
                raise Refusal(
                    *chance.choice([(429, "TooManyRequests", "busy", 1), (503, "", "", None)])
                )
            found = self._do(method, path, query, body)
        except Refusal as refusal:
            self._send(refusal.status, refusal.body, refusal.retry_after)
            return
        if found is None:
            return  # a watch
        if server.torn and chance.random() < server.torn:
            self._transport.abort()
            return
        self._send(201 if method == "POST" else 200, found, None)

    def _do(self, method: str, path: list[str], query: dict[str, str], body: bytes) -> Json | None:
        storage = self._server.storage
        if path[0] not in {"api", "apis"}:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if len(path) == 1:
            return storage.groups(is_core=path[0] == "api")
        group, version, *rest = ("", *path[1:]) if path[0] == "api" else path[1:]
        if not rest:
            return storage.resources(group, version)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            _, namespace, *rest = rest
        served = storage.find(group, version, rest[0])
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        match method:
            case "GET" if name:
                return storage.get(served, namespace, name)
            case "GET" if query.get("watch") == "true":
                self._begin_watch(served, Selector.read(namespace, query), query)
                return None
            case "GET":
                return self._page(served, Selector.read(namespace, query), query)
            case "POST":
                if served.namespaced and not namespace:
                    raise Refusal(404, "NotFound", "a namespace is needed")
                return storage.create(served, namespace, orjson.loads(body))
            case "PUT":
                return storage.replace(served, namespace, name, orjson.loads(body), subresource)
            case "PATCH":
                changed = _merged(storage.get(served, namespace, name), orjson.loads(body))
                return storage.replace(served, namespace, name, changed, subresource)
            case "DELETE":
                document = orjson.loads(body) if body else {}
                given = document.get("preconditions") or {}
                uid, version = given.get("uid", ""), given.get("resourceVersion", "")
                return storage.delete(served, namespace, name, uid, version)
        raise Refusal(405, "MethodNotAllowed", method)

    def _page(self, served: Served, selector: Selector, query: dict[str, str]) -> Json:
        server, storage = self._server, self._server.storage
        if "continue" in query and server.loop.random.random() < server.forgetful:
            storage.version += 1  # somebody wrote what is none of ours
            storage.compact()
        return storage.page(served, selector, query)

    def _send(self, status: int, body: Json, retry_after: int | None) -> None:
        data = orjson.dumps(body)
        more = f"Retry-After: {retry_after}\r\n" if retry_after is not None else ""
        self._transport.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(data)}\r\n\r\n".encode()
            + data
        )

    # --- watches -------------------------------------------------------------------------------

    def _begin_watch(self, served: Served, selector: Selector, query: dict[str, str]) -> None:
        server = self._server
        storage = server.storage
        initial = query.get("sendInitialEvents") == "true"
        if initial and not server.watch_lists:
            raise Refusal(422, "Invalid", "sendInitialEvents is forbidden")
        missed = []
        if not initial:
            # As the real one: a place that is forgotten is told by an event.
            self._begun_at = int(query.get("resourceVersion") or 0)
            try:
                missed = list(storage.since(self._begun_at))
            except Refusal as refusal:
                self._head()
                self._watch = served, selector
                self._event("ERROR", refusal.body)
                self._end_watch()
                return
        self._head()
        self._watch = served, selector
        if initial:
            for item in storage.items(served).values():
                if selector.takes(item):
                    self._event("ADDED", item)
            self._bookmark({"k8s.io/initial-events-end": "true"})
        for change in missed:
            self.notify(change)
        server.watches[self] = None
        loop = server.loop
        seconds = float(query.get("timeoutSeconds", 300))
        loop.call_later(seconds, self._end_watch, context=server.process.context)
        loop.call_later(BOOKMARK_SECONDS, self._bookmark_forever, context=server.process.context)

    def _head(self) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def notify(self, change: Happened) -> None:
        """Something happened: tell it, if it is this watch's."""
        assert self._watch is not None
        served, selector = self._watch
        if change.served.kind != served.kind or change.served.group != served.group:
            return
        if change.version <= self._begun_at:
            return  # as the real one: it was asked for what comes behind
        found = change.event(selector)
        if found is None:
            return
        loop = self._server.loop
        delay = loop.random.random() * self._server.slow if loop.random.random() < 0.1 else 0.0
        when = max(self._delay_until, loop.time() + delay)
        self._delay_until = when
        if when <= loop.time():
            self._event(*found)
        else:  # late, and yet in order
            loop.call_at(when, self._event, *found, context=self._server.process.context)

    def drop(self, served: Served) -> None:
        """A kind's definition went: its watches tell of no other by that name, and end in a while."""
        assert self._watch is not None
        if self._watch[0] != served:
            return
        loop = self._server.loop
        self._server.watches.pop(self)
        seconds = loop.random.choice([0.0, 0.05, DROPPED_SECONDS])
        when = max(self._delay_until, loop.time() + seconds)  # not before what is late
        loop.call_at(when, self._end_watch, context=self._server.process.context)

    def _event(self, kind: str, item: Json) -> None:
        if self._transport.is_closing() or self._watch is None:
            return
        line = orjson.dumps({"type": kind, "object": item}) + b"\n"
        self._transport.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def _bookmark(self, annotations: dict[str, str] | None = None) -> None:
        assert self._watch is not None
        served = self._watch[0]
        metadata: Json = {"resourceVersion": str(self._server.storage.version)}
        if annotations:
            metadata["annotations"] = annotations
        bookmark = {"kind": served.kind, "apiVersion": served.group_version, "metadata": metadata}
        self._event("BOOKMARK", bookmark)

    def _bookmark_forever(self) -> None:
        if self in self._server.watches:
            # Never before an event that is late: a bookmark says that all before it were told.
            is_late = self._delay_until > self._server.loop.time()
            if not is_late and self._server.storage.version >= self._begun_at:
                self._bookmark()
            self._server.loop.call_later(
                BOOKMARK_SECONDS, self._bookmark_forever, context=self._server.process.context
            )

    def _end_watch(self) -> None:
        self._server.watches.pop(self, None)
        if not self._transport.is_closing():
            self._transport.write(b"0\r\n\r\n")
            self._watch = None
