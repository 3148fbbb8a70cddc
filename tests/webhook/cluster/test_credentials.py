"""The identity and trust of a client: from a kubeconfig, or from the Pod."""

import asyncio
import datetime as dt
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kubernetes.config import kube_config

from tests.cluster import write_kubeconfig
from tests.webhook.cluster.fault_server import scripted, status
from webhook.certificates.pairs import self_signed
from webhook.cluster import service_account
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import TOKEN_SECONDS_MAX, CredentialsError, load_credentials
from webhook.cluster.errors import ApiUnreachable
from webhook.log import Log

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


def test_a_token_file_that_is_empty_for_a_moment_makes_nobody_anonymous(
    kubeconfig: Path, tmp_path: Path
) -> None:
    """Anonymous requests end in 403, after which nothing would be read again."""
    token = tmp_path / "token"
    token.write_text("first")
    changed(kubeconfig, "user", tokenFile="token")
    credentials = load_credentials(kubeconfig)
    assert credentials.headers() == {"Authorization": "Bearer first"}
    token.write_text("")
    with pytest.raises(CredentialsError, match="its file is empty, or being written"):
        credentials.reread()
    assert credentials.headers() == {"Authorization": "Bearer first"}
    with pytest.raises(CredentialsError, match=r"its tokenFile .*/token is empty"):
        load_credentials(kubeconfig)
    token.write_text("second")
    credentials.reread()
    assert credentials.headers() == {"Authorization": "Bearer second"}


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


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Pod's service account, and the Pod's variables."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    pair = self_signed(["me"], dt.datetime.now(tz=dt.UTC))
    (folder / "ca.crt").write_bytes(pair.certificate)
    (folder / "token").write_text("first\n")
    monkeypatch.setattr(service_account, "FOLDER", folder)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return folder


def test_a_token_that_cannot_be_read_is_an_outage_too(account: Path, tmp_path: Path) -> None:
    """As where a Pod's token is looked at while it is empty."""

    async def run() -> None:
        async with scripted(tmp_path, (200, [b'{"a": 1}'], "end")) as (_, there):
            credentials = load_credentials()
            credentials.server = there.server
            async with ClusterClient(credentials) as client:
                (account / "token").write_text("")
                with pytest.raises(ApiUnreachable, match="token is empty"):
                    await client.request("GET", "/api")
                (account / "token").write_text("first")
                assert await client.request("GET", "/api") == {"a": 1}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("fe80::1%eth0", "https://[fe80::1%eth0]:443"),
    ],
)
def test_a_pods_account_gives_server_authorities_and_token(
    account: Path, host: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    credentials = load_credentials()
    assert credentials.server == server
    assert credentials.headers() == {"Authorization": "Bearer first"}
    assert credentials.tls is not None
    assert len(credentials.tls.get_ca_certs()) == 1


def test_a_pods_token_is_read_each_minute_and_the_last_is_used_until_it_is_refused(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = load_credentials()
    first = credentials.headers()
    (account / "token").write_text("second")
    assert credentials.headers() == first
    monkeypatch.setattr(credentials, "_read_at", credentials._read_at - TOKEN_SECONDS_MAX - 1)
    assert credentials.headers() == {"Authorization": "Bearer second"}
    (account / "token").unlink()
    monkeypatch.setattr(credentials, "_read_at", credentials._read_at - TOKEN_SECONDS_MAX - 1)
    assert credentials.headers() == {"Authorization": "Bearer second"}
    with pytest.raises(CredentialsError, match=r"token: No such file"):
        credentials.reread()


def test_what_a_pods_account_lacks_is_named(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (account / "token").write_text("\n")
    with pytest.raises(CredentialsError, match="token is empty"):
        load_credentials()
    (account / "token").unlink()
    with pytest.raises(CredentialsError, match="token: No such file"):
        load_credentials()
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    with pytest.raises(CredentialsError, match="KUBERNETES_SERVICE_PORT must both be set"):
        load_credentials()


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_without_usable_authorities_a_pod_trusts_the_systems_and_says_so(
    account: Path, text: str | None
) -> None:
    """As client-go does: some API servers have a certificate of a public authority."""
    path = account / "ca.crt"
    path.unlink() if text is None else path.write_text(text)
    lines: list[bytes] = []
    credentials = load_credentials(log=Log(lines.append).logger("cluster"))
    assert credentials.tls is not None
    assert credentials.tls.verify_mode is ssl.CERT_REQUIRED
    (line,) = lines
    assert b"system's authorities" in line
    assert str(path).encode() in line


def test_a_context_and_the_variable_name_a_kubeconfig_in_a_pod_too(
    account: Path, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pipeline that runs in a Pod and looks at another cluster."""
    monkeypatch.setenv("HOME", str(account))
    with pytest.raises(CredentialsError, match="there is no kubeconfig"):
        load_credentials(context="context")
    assert load_credentials(kubeconfig).server == ADDRESS
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    # The package reads the variable when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    assert load_credentials().server == ADDRESS
    assert load_credentials(context="context").server == ADDRESS


def test_a_pods_account_is_read_without_the_package_that_reads_kubeconfigs(account: Path) -> None:
    """Its import costs every replica 16 MiB."""
    code = (
        "import sys; from pathlib import Path\n"
        "import webhook.cli.main, webhook.app.process, webhook.app.cluster, webhook.app.audit\n"
        "from webhook.cluster import credentials, service_account\n"
        "service_account.FOLDER = Path(sys.argv[1])\n"
        "assert credentials.load_credentials().headers(); print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, account], capture_output=True, text=True, check=True
    )
    assert {"kubernetes", "urllib3", "requests"} & {*run.stdout.split()} == set()
