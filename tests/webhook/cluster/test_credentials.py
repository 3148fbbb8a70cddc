"""The identity and trust of a client: from a kubeconfig, or from the Pod."""

import asyncio
import datetime as dt
from pathlib import Path

import pytest
import yaml
from kubernetes.config import ConfigException

from tests.cluster import write_kubeconfig
from tests.webhook.cluster.fault_server import scripted, status
from webhook.certificates.pairs import self_signed
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.cluster.errors import ApiUnreachable

ADDRESS = "https://127.0.0.1:1"


def changed(path: Path, part: str, **fields: object) -> Path:
    """A kubeconfig with other fields of its cluster or user."""
    document = yaml.safe_load(path.read_text())
    document[f"{part}s"][0][part] |= fields
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Writes a nearly empty kubeconfig."""
    return write_kubeconfig(tmp_path / "config", ADDRESS)


def test_a_token_is_sent_and_read_again_when_it_is_refused(kubeconfig: Path) -> None:
    changed(kubeconfig, "user", token="first")
    credentials = load_credentials(kubeconfig)
    assert credentials.headers() == {"Authorization": "Bearer first"}
    changed(kubeconfig, "user", token="second")
    assert credentials.headers() == {"Authorization": "Bearer first"}
    credentials.reread()
    assert credentials.headers() == {"Authorization": "Bearer second"}
    assert (credentials.rereads, credentials.rotations) == (1, 1)


def test_a_client_certificate_needs_no_header(kubeconfig: Path, tmp_path: Path) -> None:
    pair = self_signed(["me"], dt.datetime.now(tz=dt.UTC))
    (tmp_path / "me.crt").write_bytes(pair.certificate)
    (tmp_path / "me.key").write_bytes(pair.key)
    files = {"client-certificate": str(tmp_path / "me.crt"), "client-key": str(tmp_path / "me.key")}
    changed(kubeconfig, "user", **files)
    assert load_credentials(kubeconfig).headers() == {}
    (tmp_path / "me.key").write_text("no key")
    with pytest.raises(CredentialsError, match="cannot load the credentials' certificates"):
        load_credentials(kubeconfig)


def test_an_api_server_that_anyone_can_play_is_refused(kubeconfig: Path) -> None:
    changed(kubeconfig, "cluster", **{"insecure-skip-tls-verify": True})
    with pytest.raises(CredentialsError, match="turns verification off"):
        load_credentials(kubeconfig)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "a: [",
        "- a",
        "text",
        "clusters: 5\ncurrent-context: a",
        "\x00",
        "{current-context: a, contexts: [5]}",
    ],
)
def test_a_kubeconfig_that_is_none_is_refused_with_its_path(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CredentialsError, match=r"config"):
        load_credentials(path)


def test_credentials_that_cannot_be_read_for_a_moment_are_an_outage_that_passes(
    tmp_path: Path,
) -> None:
    """A file that is being written ended the whole session, as a bug would."""

    async def run() -> None:
        script = [status(401), status(401), (200, [b'{"a": 1}'], "end")]
        async with scripted(tmp_path, *script) as (server, credentials):
            path = tmp_path / "kubeconfig"
            whole = path.read_text()
            async with ClusterClient(credentials) as client:
                path.write_text(whole[:40] + "[")
                with pytest.raises(ApiUnreachable, match="401, and cannot read credentials"):
                    await client.request("GET", "/api")
                path.write_text(whole)
                assert await client.request("GET", "/api") == {"a": 1}
            assert len(server.requests) == 3
            assert client.unauthorized == 2

    asyncio.run(run())


def test_a_token_that_cannot_be_read_is_an_outage_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a Pod's token is looked at while it is empty."""

    async def run() -> None:
        async with scripted(tmp_path, (200, [b'{"a": 1}'], "end")) as (_, credentials):

            def hook(_configuration: object) -> None:
                raise ConfigException("Token file exists but empty.")

            monkeypatch.setattr(credentials._configuration, "refresh_api_key_hook", hook)
            async with ClusterClient(credentials) as client:
                with pytest.raises(ApiUnreachable, match="Token file exists but empty"):
                    await client.request("GET", "/api")
                monkeypatch.setattr(credentials._configuration, "refresh_api_key_hook", None)
                assert await client.request("GET", "/api") == {"a": 1}

    asyncio.run(run())
