"""The provider that tests ask: what it answers, whom it asks for a certificate, what it notes."""

import datetime as dt
import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.provider_process import ProviderProcess, make_authority
from webhook.certificates.pairs import self_signed


def ask(provider: ProviderProcess, keys: list[str], certificate: Path | None = None) -> Any:
    """The status and the answer of one request."""
    assert provider.authority
    context = ssl.create_default_context(cadata=provider.authority.certificate.decode())
    if certificate:
        context.load_cert_chain(certificate)
    connection = http.client.HTTPSConnection(
        "127.0.0.1", provider.port, context=context, timeout=PATIENCE_SECONDS
    )
    try:
        body = {"apiVersion": "v", "kind": "ProviderRequest", "request": {"keys": keys}}
        connection.request("POST", "/validate", json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["response"]
    finally:
        connection.close()


def test_each_key_says_what_comes_of_it(tmp_path: Path) -> None:
    with ProviderProcess(tmp_path, authority=make_authority()) as provider:
        keys = ["nginx", "error/nginx", "missing/nginx", "null/nginx", "status500/nginx"]
        status, response = ask(provider, keys)
        assert status == 500
        assert response["idempotent"]
        assert response["items"] == [
            {"key": "nginx", "value": "nginx is known"},
            {"key": "error/nginx", "error": "error/nginx is refused"},
            {"key": "null/nginx"},
            {"key": "status500/nginx", "value": "status500/nginx is known"},
        ]
        _, response = ask(provider, ["nginx", "system/nginx"])
        assert response == {"idempotent": True, "systemError": "system/nginx cannot be looked up"}
        provider.restart()
        assert ask(provider, ["nginx"])[0] == 200
        assert [one["keys"] for one in provider.requests()] == [
            keys,
            ["nginx", "system/nginx"],
            ["nginx"],
        ]
        assert {one["tls"] for one in provider.requests()} == {"TLSv1.3"}


def test_who_must_show_a_certificate_is_asked_for_it_and_noted(tmp_path: Path) -> None:
    pair = self_signed(["waddle"], dt.datetime.now(tz=dt.UTC))
    clients, certificate = tmp_path / "clients.pem", tmp_path / "client.pem"
    clients.write_bytes(pair.certificate)
    certificate.write_bytes(pair.certificate + pair.key)
    with ProviderProcess(
        tmp_path / "provider", authority=make_authority(), client_authority=clients
    ) as provider:
        with pytest.raises(OSError, match=r"."):
            ask(provider, ["nginx"])
        assert ask(provider, ["nginx"], certificate)[0] == 200
        assert [one["client"] for one in provider.requests()] == ["waddle"]


def test_a_certificate_that_has_ended_is_not_taken(tmp_path: Path) -> None:
    with (
        ProviderProcess(tmp_path, authority=make_authority(days=-1)) as provider,
        pytest.raises(ssl.SSLCertVerificationError, match="expired"),
    ):
        ask(provider, ["nginx"])
