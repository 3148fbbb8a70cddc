"""The webhook's certificate, as who connects to it sees it: real handshakes on loopback."""

import asyncio
import base64
import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.webhook.console.pictures import picture
from webhook.certificates import pairs
from webhook.console import pages, serving_certificate
from webhook.console.picture import ShownCertificate

NOW = dt.datetime.now(dt.UTC)


def configuration(url: str, bundle: bytes) -> dict[str, Any]:
    client = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return {"metadata": {"name": "waddle"}, "webhooks": [{"clientConfig": client}]}


async def seen(folder: Path, served: Any, bundle: bytes) -> ShownCertificate:
    """Returns the certificate that a console sees at a server with this pair."""
    (folder / "pair").write_bytes(served.certificate + served.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair")
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "localhost", 0, ssl=context
    )
    async with server:
        port = server.sockets[0].getsockname()[1]
        found = await serving_certificate.seen(
            configuration(f"https://localhost:{port}/v1/admit", bundle)
        )
    assert found is not None
    return found


def test_its_end_is_shown_and_that_the_api_server_would_trust_it(tmp_path: Path):
    pair = pairs.self_signed(["localhost"], NOW)
    found = asyncio.run(seen(tmp_path, pair, pair.certificate))
    assert (found.is_trusted, found.why) == (True, "")
    assert found.ends == found.authority_ends != ""
    [shown] = pages.overview(picture(certificates=(found,)), {})["certificates"]
    assert shown["state"] == "active"
    assert shown["endsInDays"] > 7


def test_one_that_is_over_or_of_another_authority_is_reported(tmp_path: Path):
    over = pairs.self_signed(["localhost"], NOW - dt.timedelta(days=pairs.SELF_SIGNED_DAYS + 1))
    found = asyncio.run(seen(tmp_path, over, over.certificate))
    assert found.is_trusted is False
    assert "expired" in found.why
    [shown] = pages.overview(picture(certificates=(found,)), {})["certificates"]
    assert (shown["state"], shown["endsInDays"] < 0) == ("error", True)
    other = pairs.self_signed(["localhost"], NOW)
    found = asyncio.run(seen(tmp_path, pairs.self_signed(["localhost"], NOW), other.certificate))
    assert "the API server cannot trust it" in found.why
    found = asyncio.run(seen(tmp_path, other, b""))
    assert "no caBundle" in found.why


def test_one_that_cannot_be_reached_from_here_is_not_called_wrong():
    bundle = pairs.self_signed(["localhost"], NOW).certificate
    found = asyncio.run(
        serving_certificate.seen(configuration(f"https://localhost:{free_port()}", bundle))
    )
    assert found is not None
    assert (found.is_trusted, found.ends) == (None, "")
    assert "cannot be reached from this console" in found.why
    assert found.authority_ends
    [shown] = pages.overview(picture(certificates=(found,)), {})["certificates"]
    assert shown["state"] == "pending"


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ({"service": {"name": "a", "namespace": "b"}}, ("a.b.svc", 443, b"")),
        ({"service": {"name": "a", "namespace": "b", "port": 8}}, ("a.b.svc", 8, b"")),
        ({"url": "https://h/x", "caBundle": "!"}, ("h", 443, b"")),
        ({"url": "https://[::1]:9"}, ("::1", 9, b"")),
        ({"url": "https://h:99999"}, None),
        ({"url": 7}, None),
        ("x", None),
    ],
)
def test_the_address_is_that_by_which_the_api_server_asks(client: Any, place: Any):
    found = serving_certificate.address_of({"webhooks": [{"clientConfig": client}]})
    assert found == place
