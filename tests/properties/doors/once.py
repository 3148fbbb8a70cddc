"""Work that is the same in many worlds, done once: reading and compiling equal texts.

Each door still reads its files, loads its policies and decides by itself. Plain requests to the
simulated API server pass over HTTP, which the tests of the cluster's client are about.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.simulation.api_http import _Connection
from tests.simulation.api_server import Refusal
from webhook.api import yaml_reader
from webhook.cel import engine
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.errors import api_error
from webhook.constraint import schema, schema_check
from webhook.constraint.drivers import rego
from webhook.exceptions import reading
from webhook.kyverno import compiling, validating_policy
from webhook.policy_kinds import parts
from webhook.rego import engine as engine_of_rego

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.simulation.api_http import ApiServer
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment
    from webhook.cel.engine import Expression

KEPT = 4096
"""Results kept of each function: those of some hundred worlds."""


api_server: tuple[ApiServer, asyncio.AbstractEventLoop] | None = None
"""The API server that answers plain requests, and the loop of its connections."""


@contextmanager
def done_once() -> Iterator[None]:
    """Keep the results of pure functions by their arguments, while it lasts."""
    with pytest.MonkeyPatch.context() as patch:
        compile_checked = _compiled_once(engine.compile_checked)
        for module in (engine, compiling):
            patch.setattr(module, "compile_checked", compile_checked)
        read_exception = _by_text(reading.read_exception)
        for module in (reading, parts):
            patch.setattr(module, "read_exception", read_exception)
        patch.setattr(rego, "modules_of", _by_text(rego.modules_of))
        patch.setattr(rego, "compile_rule", _by_modules(engine_of_rego.compile_rule))
        patch.setattr(validating_policy, "read_kyverno", _by_text(validating_policy.read_kyverno))
        patch.setattr(schema, "schema_faults", _by_schema(schema_check.schema_faults))
        patch.setattr(yaml_reader, "read", _by_file(yaml_reader.read))
        patch.setattr(ClusterClient, "_once", _answered)
        # Nothing here speaks TLS: no connection waits for its peer's goodbye.
        patch.setattr(event_loop, "GOODBYE_SECONDS", 0.0)
        yield


def _by_text(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Keep the values of objects by their JSON text; they are immutable. An error is raised anew."""

    @functools.lru_cache(KEPT)
    def value_of(text: str) -> Any:
        return read(json.loads(text))

    return lambda document: value_of(json.dumps(document))


def _by_modules(compile_rule: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the code of modules, which are the same objects where their text is the same."""
    kept: dict[int, list[tuple[Any, Any, Any]]] = {}

    def call(modules: Any, path: str, *, options: Any, cache: Any) -> Any:
        compiled = kept.setdefault(id(modules), [])
        for _, known, rule in compiled:
            if known == options:
                return rule
        rule = compile_rule(modules, path, options=options, cache=cache)
        compiled.append((modules, options, rule))
        return rule

    return call


def _by_schema(schema_faults: Callable[[Any, Any], list[str]]) -> Callable[[Any, Any], list[str]]:
    """Keep the faults of schemas by the template's names and the schema's JSON text."""

    @functools.lru_cache(KEPT)
    def faults_of(names: str, text: str) -> list[str]:
        del names
        return schema_faults(template.pop(), json.loads(text))

    template: list[Any] = []

    def call(named: Any, schema_: Any) -> list[str]:
        template[:] = [named]
        names = json.dumps((named.kind, named.short_names))
        return list(faults_of(names, json.dumps(schema_)))

    return call


def _by_file(read: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Keep the documents of texts; whoever reads one gets objects and lists of its own."""

    @functools.lru_cache(KEPT)
    def documents_of(text: str | bytes, dialect: Any) -> list[Any]:
        return list(read(text, dialect))

    def call(text: str | bytes, dialect: Any) -> Iterator[Any]:
        for document in documents_of(text, dialect):
            yield dataclasses.replace(document, value=_copied(document.value))

    return call


def _copied(value: Any) -> Any:
    """A JSON value whose objects and lists are new."""
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


def _compiled_once(
    compile_checked: Callable[[str, Environment], tuple[Expression, Checked]],
) -> Callable[[str, Environment], tuple[Expression, Checked]]:
    """Keep expressions by their text and what they may name; the texts of worlds are few."""
    kept: dict[str, list[tuple[Environment, tuple[Expression, Checked]]]] = {}

    def call(source: str, environment: Environment) -> tuple[Expression, Checked]:
        compiled = kept.setdefault(source, [])
        for known, value in compiled:
            if known == environment:
                return value
        compiled.append((environment, compile_checked(source, environment)))
        return compiled[-1][1]

    return call


async def _answered(
    client: ClusterClient,
    method: str,
    path: str,
    query: Mapping[str, str] | None,
    data: bytes | None,
    *_: str,
    bytes_max: int,
) -> bytes:
    """Answer a plain request, in place of :meth:`ClusterClient._once`."""
    assert api_server is not None, client
    del bytes_max
    answer: Future[bytes] = Future()
    parts = path.removeprefix("/").split("/"), dict(query or {})
    server, home = api_server
    handle = functools.partial(_handle, server, method, *parts, data or b"", answer)
    if asyncio.get_running_loop() is home:
        handle()
        await asyncio.sleep(0)
        return answer.result()
    home.call_soon_threadsafe(handle)
    return await asyncio.wrap_future(answer)


def _handle(
    server: ApiServer,
    method: str,
    path: list[str],
    query: dict[str, str],
    data: bytes,
    answer: Future[bytes],
) -> None:
    try:
        answer.set_result(orjson.dumps(_Connection(server)._do(method, path, query, data)))
    except Refusal as refusal:
        again = None if refusal.retry_after is None else str(refusal.retry_after)
        answer.set_exception(api_error(refusal.status, orjson.dumps(refusal.body), again))
