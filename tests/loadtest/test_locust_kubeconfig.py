"""Credentials of a kubeconfig, and the connections that are made with them."""

import base64
import json
import socket
import ssl
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtest.locust.kubeconfig import read
from loadtest.locust.tls import client_context
from webhook.certificates.pairs import self_signed

PAIR = self_signed(["localhost"], datetime.now(UTC))


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "there", "context": {"cluster": "none", "user": "none"}},
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://localhost:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def test_certificates_are_read_inline_and_from_files(tmp_path: Path) -> None:
    """Files are named relative to the kubeconfig, as for kubectl."""
    (tmp_path / "ca.crt").write_bytes(PAIR.certificate)
    (tmp_path / "tls.key").write_bytes(PAIR.key)
    user = {
        "client-certificate-data": base64.b64encode(PAIR.certificate).decode(),
        "client-key": "tls.key",
    }
    found = read(kubeconfig(tmp_path, user, **{"certificate-authority": "ca.crt"}))
    assert found.server == "https://localhost:6443"
    assert found.headers() == {}
    assert found.context().verify_mode == ssl.CERT_REQUIRED
    assert len(found.context().get_ca_certs()) == 1
    assert PAIR.key.strip() in found.pair


def test_tokens_are_read_inline_from_a_file_and_from_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    credential = json.dumps({"status": {"token": "from-plugin"}})
    plugin = {
        "command": sys.executable,
        "args": ["-c", "import os; print(os.environ['CREDENTIAL'])"],
        "env": [{"name": "CREDENTIAL", "value": credential}],
    }
    for user, token in (
        ({"token": "inline"}, "inline"),
        ({"tokenFile": "token"}, "from-file"),
        ({"exec": plugin}, "from-plugin"),
    ):
        found = read(kubeconfig(tmp_path, user))
        assert found.headers() == {"Authorization": f"Bearer {token}"}


def test_what_a_kubeconfig_lacks_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"})
    with pytest.raises(ValueError, match="no 'elsewhere' in contexts"):
        read(path, "elsewhere")
    with pytest.raises(ValueError, match="no 'none' in clusters"):
        read(path, "there")
    path.write_text("- a list")
    with pytest.raises(ValueError, match="not a kubeconfig"):
        read(path)


def test_a_cluster_that_is_not_to_be_verified_is_not(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"}, **{"insecure-skip-tls-verify": True})
    assert read(path).context().verify_mode == ssl.CERT_NONE


def test_connections_send_at_once(tmp_path: Path) -> None:
    """Nagle's algorithm would hold back the last part of each large body for 40 ms."""
    (tmp_path / "pair.pem").write_bytes(PAIR.certificate + PAIR.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "pair.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with serving.wrap_socket(connection, server_side=True) as accepted:
                accepted.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        plain = socket.create_connection(listener.getsockname())
        context = client_context(PAIR.certificate.decode())
        with context.wrap_socket(plain, server_hostname="localhost") as client:
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            client.send(b"x")
        thread.join()
