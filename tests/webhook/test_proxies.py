"""Proxies of requests: the tables of Go's httpproxy, and each client at a real proxy."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.conftest.fetched import update
from webhook.conftest.policies import ConftestPolicyError
from webhook.console.provider import Provider
from webhook.console.visitor import SignInRefused
from webhook.decisions.sinks.http_client import Endpoint, Poster
from webhook.decisions.sinks.sink import SinkUnavailable
from webhook.proxies import InvalidProxy, grpc_options, proxy_for, read_proxy
from webhook.rego.builtins.http.client import HttpClient, NetworkError
from webhook.rego.builtins.http.request import HttpRequest
from webhook.telemetry.delivery import CollectorAddress, CollectorUnavailable, HTTPDelivery

PROXY = "http://proxy:3128"


def by(url: str, no_proxy: str = "", **more: str) -> str:
    """The proxy of a URL, or an empty text."""
    environment = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": "plain:80", "NO_PROXY": no_proxy, **more}
    found = proxy_for(url, environment)
    return "" if found is None else found.url


@pytest.mark.parametrize(
    ("host", "no_proxy", "is_direct"),
    [
        ("localhost", "", True),
        ("127.0.0.1", "", True),
        ("127.0.0.2", "", True),
        ("[::1]", "", True),
        ("[::2]", "", False),
        ("192.168.1.1", "", False),
        ("local.localhost", "", False),
        ("example.com", "", False),
        ("example.com", "*", True),
        ("10.0.0.1", "*", True),
        ("example.com", "a, * ,b", True),
        ("example.com", "example.com", True),
        ("EXAMPLE.com", "example.COM", True),
        ("www.example.com", "example.com", True),
        ("myexample.com", "example.com", False),
        ("example.com", ".example.com", False),
        ("www.example.com", ".example.com", True),
        ("example.com", "*.example.com", False),
        ("a.b.example.com", "*.example.com", True),
        ("aexample.com", "*example.com", False),
        ("example.com:8443", "example.com:8443", True),
        ("example.com", "example.com:8443", False),
        ("example.com", "example.com:443", True),
        ("a.example.com:80", ".example.com:80", True),
        ("10.96.0.1", "10.96.0.0/12", True),
        ("10.112.0.1", "10.96.0.0/12", False),
        ("10.96.0.1", "10.96.0.1", True),
        ("10.96.0.1:6443", "10.96.0.1:6443", True),
        ("10.96.0.1", "10.96.0.1:6443", False),
        ("10.96.0.10", "10.96.0.1", False),
        ("[fd00::1]", "fd00::/8", True),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]:6443", "[fd00::1]:6443", True),
        ("[fd00::1]", "[fd00::1]:6443", False),
        ("[::ffff:10.96.0.1]", "10.96.0.0/12", True),
        ("example.com", "10.0.0.0/8", False),
        ("a.svc", ".svc,.cluster.local", True),
        ("example.com", ",, ,", False),
        ("example.com", ":443", False),
        ("a", "/8", False),
    ],
)
def test_no_proxy_names_what_is_asked_directly(host: str, no_proxy: str, is_direct: bool) -> None:
    assert by(f"https://{host}/x", no_proxy) == ("" if is_direct else PROXY)


def test_each_scheme_has_its_variable_in_capital_or_small_letters() -> None:
    assert by("http://example.com") == "http://plain:80"
    assert by("http://example.com", REQUEST_METHOD="GET") == ""
    assert by("ftp://example.com") == ""
    assert by("https://example.com", HTTPS_PROXY="", https_proxy="small:1") == "http://small:1"
    assert by("https://example.com", no_proxy="example.com") == ""
    assert proxy_for("https://example.com", {}) is None


def test_a_proxy_has_credentials_apart_and_what_is_none_is_reported_without_them() -> None:
    proxy = read_proxy("http://user:p%40ss@[fd00::1]:3128")
    assert proxy.url == "http://[fd00::1]:3128"
    assert proxy.headers == {"Proxy-Authorization": "Basic dXNlcjpwQHNz"}
    assert read_proxy("proxy").url == "http://proxy:80"
    for text in ("socks5://user:secret@proxy", "http://user:secret@proxy:port", "http://:80"):
        with pytest.raises(InvalidProxy) as found:
            read_proxy(text)
        assert "secret" not in str(found.value)


def test_a_channel_of_grpc_goes_by_the_same_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://u:p@proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert grpc_options("10.1.2.3", 4317) == [("grpc.enable_http_proxy", 0)]
    assert grpc_options("collector", 4317) == [("grpc.http_proxy", "http://u:p@proxy:3128")]


class RefusingProxy:
    """A proxy that notes what it is asked for and answers 502 to everything."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (part := connection.recv(65536)):
                    head += part
                self.requests.append(" ".join(head.decode().split("\r\n")[0].split(" ")[:2]))
                connection.sendall(
                    b"HTTP/1.1 502 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )

    def close(self) -> None:
        """Listen no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[RefusingProxy]:
    """Yields a proxy that the environment names."""
    for name in ("https_proxy", "http_proxy", "no_proxy", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    made = RefusingProxy()
    monkeypatch.setenv("HTTPS_PROXY", made.url)
    monkeypatch.setenv("HTTP_PROXY", made.url)
    try:
        yield made
    finally:
        made.close()


def post(url: str) -> None:
    """Sends as a sink does."""
    with pytest.raises(SinkUnavailable):
        Poster(Endpoint(url)).post(b"{}", {})


def deliver(url: str) -> None:
    """Sends as telemetry does."""
    tls, host = url.startswith("https"), url.split("/")[2]
    collector = CollectorAddress("http", tls, host, 443 if tls else 80)
    with pytest.raises(CollectorUnavailable):
        HTTPDelivery(collector).send("traces", b"")


def send(url: str) -> None:
    """Sends as http.send does."""
    client = HttpClient(None)
    request = HttpRequest("GET", url, {}, b"")
    try:
        answer = client.send(request, None)
    except NetworkError:
        return
    assert answer.status_code == 502


def download(url: str, folder: Path) -> None:
    """Downloads as ``--update`` does."""
    with pytest.raises(ConftestPolicyError):
        update(str(folder), [url])


def ask_provider(url: str) -> None:
    """Requests the provider as the console does during a sign-in."""

    async def ask() -> Any:
        provider = Provider.__new__(Provider)
        provider.options = type("Options", (), {"tls": None})()
        return await provider._ask("GET", url)

    try:
        status, _ = asyncio.run(ask())
    except SignInRefused:
        return
    assert status == 502


def kubeconfig(folder: Path, server: str, **cluster: str) -> Path:
    """Of nobody, at a server."""
    config = {
        "clusters": [{"name": "a", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    return folder / "kubeconfig"


def ask_api_server(url: str, folder: Path, **cluster: str) -> None:
    """Requests the API server as each follower of a cluster does."""

    async def ask() -> None:
        credentials = load_credentials(kubeconfig(folder, url, **cluster))
        async with ClusterClient(credentials) as client:
            await client.request("GET", "/version", deadline_seconds=5.0)

    with pytest.raises(Exception, match=r"502|Cannot connect|no answer"):
        asyncio.run(ask())


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "client",
    [post, deliver, send, download, ask_provider, ask_api_server],
    ids=lambda one: one.__name__,
)
def test_each_client_asks_by_the_proxy_what_no_proxy_does_not_name(
    client: Any, scheme: str, proxy: RefusingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [tmp_path] if client in (download, ask_api_server) else []
    client(f"{scheme}://a.waddle.invalid/x", *more)
    port = 443
    expected = (
        f"CONNECT a.waddle.invalid:{port}" if scheme == "https" else "http://a.waddle.invalid"
    )
    assert proxy.requests
    assert all(expected in line for line in proxy.requests)
    proxy.requests.clear()
    monkeypatch.setenv("NO_PROXY", ".waddle.invalid")
    client(f"{scheme}://a.waddle.invalid/x", *more)
    assert proxy.requests == []


def test_the_kubeconfigs_own_proxy_holds_whatever_the_environment_says(
    proxy: RefusingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    ask_api_server("http://a.waddle.invalid", tmp_path, **{"proxy-url": proxy.url})
    assert proxy.requests
    with pytest.raises(CredentialsError, match="the proxy to the API server: socks5"):
        load_credentials(kubeconfig(tmp_path, "http://a", **{"proxy-url": "socks5://b:1"}))
