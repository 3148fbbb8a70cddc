"""A provider of external data as a process: HTTPS on loopback, answers by rules, an account of questions.

``python -m tests.provider_process`` prints its port; :class:`ProviderProcess` runs it, with an
authority of its own. What comes of a key is said by the key, up to its first slash::

    nginx             a value, "nginx is known"       error/nginx       the item's error
    missing/nginx     no item                         null/nginx        an item without a value
    slow300/nginx     a value after 300 ms            system/nginx      systemError for all keys

``ITEM_RULES`` has all that concern one item, ``ANSWER_RULES`` all that concern the whole answer: of
several in one request the first key's counts.
"""

import argparse
import asyncio
import base64
import contextlib
import datetime as dt
import ipaddress
import json
import re
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.patience import PATIENCE_SECONDS

Item = Any
"""An object mostly."""

LARGE_BYTES: Final = 10 * 1024 * 1024
"""Of an answer that nobody should keep."""

_RULE: Final = re.compile(r"([a-z]+)(\d*)/")


def _rule(key: str) -> tuple[str, int]:
    """A key's rule and its number, "" where it has none."""
    matched = _RULE.match(key)
    return (matched[1], int(matched[2] or 0)) if matched else ("", 0)


def value_of(key: str) -> str:
    """Returns the value of a key without a rule."""
    return f"{key} is known"


def _item(key: str, **fields: Any) -> list[Item]:
    return [{"key": key, **fields}]


def _next_in_chain(key: str, number: int) -> str:
    """The key to ask next; the last one says so."""
    rest = key.partition("/")[2]
    return f"chain{number - 1}/{rest}" if number else f"the end of {rest}"


ItemRule = Callable[[str, int, int], list[Item]]
"""The items for a key, by the rule's number and by how often the key was asked."""

ITEM_RULES: Final[Mapping[str, ItemRule]] = {
    "": lambda key, *_: _item(key, value=value_of(key)),
    "error": lambda key, *_: _item(key, error=f"{key} is refused"),
    "missing": lambda *_: [],
    "null": lambda key, *_: _item(key),
    "explicit": lambda key, *_: _item(key, value=None, error=""),
    "empty": lambda key, *_: _item(key, value=""),
    "both": lambda key, *_: _item(key, value="a value", error=f"{key} has both"),
    "number": lambda key, *_: _item(key, value=7),
    "float": lambda key, *_: _item(key, value=1.5),
    "integral": lambda key, *_: _item(key, value=2.0),
    "large": lambda key, *_: _item(key, value=2**53 + 1),
    "huge": lambda key, *_: _item(key, value=10**25),
    "whole": lambda key, *_: _item(key, value=2**60),
    "small": lambda key, *_: _item(key, value=1.234e-5),
    "negative": lambda key, *_: _item(key, value=-0.25e-7),
    "true": lambda key, *_: _item(key, value=True),
    "list": lambda key, *_: _item(key, value=["a", None, 1]),
    "object": lambda key, *_: _item(key, value={"b": {"c": 1}, "a": []}),
    "twice": lambda key, *_: [*_item(key, value="first"), *_item(key, value="second")],
    "corrected": lambda key, *_: [*_item(key, error="refused first"), *_item(key, value="second")],
    "withdrawn": lambda key, *_: [*_item(key, value="first"), *_item(key, error="refused later")],
    "other": lambda key, *_: _item(f"instead of {key}", value="other"),
    "extra": lambda key, *_: [*_item(f"besides {key}", value="more"), *_item(key, value="own")],
    "keyless": lambda *_: [{"value": "of no key"}],
    "mixed": lambda key, *_: [{"KEY": key, "Value": "mixed case"}],
    "strange": lambda key, *_: _item(key, value="known", unknown={"field": 1}),
    "nothing": lambda *_: [None],
    "numbered": lambda key, *_: [{"key": 5, "value": key}],
    "typed": lambda key, *_: _item(key, error={"is": "an object"}),
    "text": lambda *_: ["an item"],
    "counted": lambda key, _, times: _item(key, value=str(times)),
    "once": lambda key, _, times: (
        _item(key, error="not yet") if times == 1 else _item(key, value="by now")
    ),
    "chain": lambda key, number, _: _item(key, value=_next_in_chain(key, number)),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the provider, with its delay."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_seconds: float = 0
    """Before anything is sent."""
    body_wait_seconds: float = 0
    """Between the head and the body."""
    is_silent: bool = False
    """Whether the provider never answers."""
    is_dropped: bool = False
    """The connection ends instead."""
    is_cut: bool = False
    """Whether the answer ends in the middle of the body."""


def _enveloped(response: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
            "kind": "ProviderResponse",
            "response": response,
        }
    ).encode()


AnswerRule = Callable[[Answer, str, int, list[Item]], Answer]
"""The answer as another one, by a key, its rule's number, and the items."""


def _as_response(**fields: Any) -> AnswerRule:
    return lambda answer, _key, _number, items: replace(
        answer, body=_enveloped({"idempotent": True, "items": items, **fields})
    )


def _as_body(text: str) -> AnswerRule:
    return lambda answer, *_: replace(answer, body=text.encode())


ANSWER_RULES: Final[Mapping[str, AnswerRule]] = {
    "slow": lambda answer, _key, number, _items: replace(answer, wait_seconds=number / 1000),
    "late": lambda answer, _key, number, _items: replace(answer, body_wait_seconds=number / 1000),
    "hang": lambda answer, *_: replace(answer, is_silent=True),
    "drop": lambda answer, *_: replace(answer, is_dropped=True),
    "cut": lambda answer, *_: replace(answer, is_cut=True),
    "status": lambda answer, _key, number, _items: replace(answer, status=number),
    "html": lambda answer, *_: replace(
        answer, body=b"<html>no</html>", status=500, headers={"Content-Type": "text/html"}
    ),
    "redirect": lambda answer, *_: replace(
        answer, body=b"", status=307, headers={"Location": "/redirected"}
    ),
    "system": lambda answer, key, *_: replace(
        answer, body=_enveloped({"idempotent": True, "systemError": f"{key} cannot be looked up"})
    ),
    "partly": lambda answer, key, _number, items: replace(
        answer, body=_enveloped({"idempotent": True, "items": items, "systemError": f"{key} fails"})
    ),
    "blank": _as_response(systemError="  "),
    "unsteady": _as_response(idempotent=False),
    "big": lambda answer, key, _number, items: replace(
        answer,
        body=_enveloped(
            {"idempotent": True, "items": [*items, *_item("pad", value="x" * LARGE_BYTES)]}
        ),
    ),
    "plain": _as_body("no JSON"),
    "none": _as_body(""),
    "array": _as_body("[]"),
    "nulled": _as_body("null"),
    "bare": _as_body("{}"),
    "trailing": lambda answer, *_: replace(answer, body=answer.body + b" more"),
    "wrongitems": _as_response(items="text"),
    "wrongerror": _as_response(systemError=["an", "array"]),
    "wrongresponse": _as_body('{"response": "text"}'),
    "wrongflag": _as_response(idempotent="yes"),
    "upper": lambda answer, _key, _number, items: replace(
        answer, body=json.dumps({"RESPONSE": {"Items": items, "IDEMPOTENT": True}}).encode()
    ),
    "folded": lambda answer, _key, _number, items: replace(
        # The long s and the sign of Kelvin fold to s and k.
        answer,
        body=json.dumps({"re\u017fpon\u017fe": {"item\u017f": items, "idempotent": True}}).encode(),
    ),
    "kindless": lambda answer, _key, _number, items: replace(
        answer,
        body=json.dumps({"kind": 5, "response": {"idempotent": True, "items": items}}).encode(),
    ),
    "version": lambda answer, _key, _number, items: replace(
        answer,
        body=json.dumps(
            {
                "apiVersion": "other/v9",
                "kind": "Other",
                "response": {"idempotent": True, "items": items},
            }
        ).encode(),
    ),
}


def answer_to(keys: Sequence[str], counts: Counter[str]) -> Answer:
    """Returns the answer to a request; ``counts`` counts the requests of each key."""
    items: list[Item] = []
    chosen: tuple[AnswerRule, str, int] | None = None
    for key in keys:
        counts[key] += 1
        name, number = _rule(key)
        items += ITEM_RULES.get(name, ITEM_RULES[""])(key, number, counts[key])
        if chosen is None and name in ANSWER_RULES:
            chosen = ANSWER_RULES[name], key, number
    answer = Answer(_enveloped({"idempotent": True, "items": items}))
    if chosen is None:
        return answer
    change, key, number = chosen
    return change(answer, key, number, items)


# --- the process ---------------------------------------------------------------------------------


class _Served:
    """Connections, one request after another on each."""

    def __init__(self, record: Path | None) -> None:
        self._record = record.open("a") if record else None
        self._times_requested: Counter[str] = Counter()
        self._connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the caller leaves."""
        self._connections += 1
        number = self._connections
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while await self._answer(reader, writer, number):
                pass
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> bool:
        """Answer one request; whether another may come."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, version = first.split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        try:
            request = json.loads(body)
            keys = request["request"].get("keys") or []
        except (ValueError, KeyError, AttributeError):
            request, keys = None, []
        self._note(
            writer,
            method=method,
            path=path,
            host=headers.get("host"),
            version=version,
            content_type=headers.get("content-type"),
            connection=connection,
            keys=keys,
            envelope={name: request.get(name) for name in ("apiVersion", "kind")}
            if request
            else None,
        )
        answer = answer_to(keys, self._times_requested)
        if path == "/redirected":
            answer = Answer(
                _enveloped({"idempotent": True, "items": _item(keys[0], value="there")})
            )
        return await _send(answer, reader, writer)

    def _note(self, writer: asyncio.StreamWriter, **facts: Any) -> None:
        if self._record is None:
            return
        certificate = writer.get_extra_info("peercert") or {}
        subject = {name: value for part in certificate.get("subject", ()) for name, value in part}
        tls = writer.get_extra_info("ssl_object")
        facts |= {
            "at": time.time(),
            "client": subject.get("commonName"),
            "tls": tls.version() if tls else None,
        }
        self._record.write(f"{json.dumps(facts)}\n")
        self._record.flush()


async def _send(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection may go on."""
    if answer.is_silent:
        await reader.read()  # until the caller leaves
        return False
    await asyncio.sleep(answer.wait_seconds)
    if answer.is_dropped:
        writer.transport.abort()
        return False
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(answer.body)),
        **answer.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} Said\r\n{lines}\r\n".encode())
    if answer.body_wait_seconds:
        await writer.drain()
        await asyncio.sleep(answer.body_wait_seconds)
    writer.write(answer.body[: len(answer.body) // 2] if answer.is_cut else answer.body)
    await writer.drain()
    return not answer.is_cut


async def _run(arguments: argparse.Namespace) -> None:
    context = None
    if arguments.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(arguments.certificate)
        if arguments.client_ca:
            context.load_verify_locations(arguments.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    served = _Served(arguments.record)
    server = await asyncio.start_server(
        served.serve, "127.0.0.1", arguments.port, ssl=context, limit=1024 * 1024, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--certificate", type=Path, help="chain and key in one file; without, no TLS"
    )
    parser.add_argument("--client-ca", type=Path, help="callers must have a certificate of these")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--record", type=Path, help="a line of JSON for each request")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


# --- who runs it -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority for providers."""

    certificate: bytes
    chain: bytes
    """A server's certificate of this authority with its key, as a server reads it."""


def make_authority(names: Sequence[str] = ("127.0.0.1", "localhost"), days: int = 30) -> Authority:
    """An authority, and a server's certificate that ends in so many days: negative, it has ended."""
    now = dt.datetime.now(tz=dt.UTC)
    begin = min(now, now + dt.timedelta(days=days)) - dt.timedelta(days=1)
    signing, serving = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "provider authority")])
    server = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, names[0])])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
        )

    root = (
        builder(authority, signing)
        .not_valid_after(now + dt.timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(signing, hashes.SHA256())
    )
    leaf = (
        builder(server, serving)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), False)
        .sign(signing, hashes.SHA256())
    )
    private = serving.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = serialization.Encoding.PEM
    return Authority(root.public_bytes(pem), leaf.public_bytes(pem) + private)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class ProviderProcess:
    """The process on a port that stays its own when it is started again.

    ``client_authority`` is a file of certificates: callers must show one of theirs. ``authority``
    None is a provider without TLS.
    """

    def __init__(
        self,
        folder: Path,
        *,
        authority: Authority | None,
        client_authority: Path | None = None,
    ) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.authority = authority
        self._record = folder / "asked.jsonl"
        self._record.touch()
        self._command = [sys.executable, "-m", "tests.provider_process"]
        self._command.append(f"--record={self._record}")
        if authority:
            certificate = folder / "provider.pem"
            certificate.write_bytes(authority.chain)
            self._command.append(f"--certificate={certificate}")
        if client_authority:
            self._command.append(f"--client-ca={client_authority}")
        self.port = 0
        self.start()

    def start(self) -> None:
        """Run it, also again after `stop`; it listens then."""
        self.process = subprocess.Popen(
            [*self._command, f"--port={self.port}"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the provider did not start: exit code {self.process.wait(PATIENCE_SECONDS)}"
        self.port = int(line)

    def stop(self) -> None:
        """End it at once, with its connections."""
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def restart(self) -> None:
        """End it and start it again, on the same port."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()

    @property
    def url(self) -> str:
        """Returns the address of the provider."""
        return f"https://127.0.0.1:{self.port}/validate"

    @property
    def ca_bundle(self) -> str:
        """Returns the ``caBundle`` of a Provider."""
        assert self.authority is not None
        return base64.b64encode(self.authority.certificate).decode()

    def manifest(self, name: str, *, timeout: int = 1, **spec: Any) -> dict[str, Any]:
        """A Provider object that is this process; ``spec`` replaces fields."""
        return {
            "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
            "kind": "Provider",
            "metadata": {"name": name},
            "spec": {
                "url": self.url,
                "timeout": timeout,
                **({"caBundle": self.ca_bundle} if self.authority else {}),
                **spec,
            },
        }

    def requests(self) -> list[dict[str, Any]]:
        """Each request so far: its keys, path, client's name, TLS version, connection, and when."""
        *lines, _ = self._record.read_text().split("\n")
        return [json.loads(line) for line in lines]

    def forget(self) -> None:
        """Count requests from here on."""
        self._record.write_text("")  # the process appends


if __name__ == "__main__":
    main()
