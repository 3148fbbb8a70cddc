"""Faults of a kubeconfig are reported in words, before its credentials are used."""

import socket

import pytest
import yaml

from tests.webhook.cli.in_process import waddle
from webhook.cli.cluster_access import failure_text
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.cluster.errors import ApiError, ApiUnreachable


def config(**changed):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        **changed,
    }


WRONG = {
    "": "it holds no clusters, users and contexts",
    "a: [": ":2: this is not a kubeconfig, because it is not YAML: ",
    "# Title\n\nText: and more: of it\n": ":3: this is not a kubeconfig, because it is not YAML: ",
    yaml.safe_dump(
        config(**{"current-context": ""})
    ): "it has no current-context, so give --context NAME; its contexts: a",
    yaml.safe_dump(
        config(**{"current-context": "b"})
    ): "current-context b is not in it; its contexts: a",
    yaml.safe_dump(
        config(clusters=[])
    ): "context a names the cluster 'c', which is not in it; its clusters: none",
    yaml.safe_dump(
        config(users=[])
    ): "context a names the user 'u', which is not in it; its users: none",
    yaml.safe_dump(config(clusters=[{"name": "c", "cluster": {"server": "127.0.0.1:1"}}])): (
        "cluster c: its server '127.0.0.1:1' is not an https:// address"
    ),
    yaml.safe_dump(
        config(users=[{"name": "u", "user": {"exec": {"command": "no-such-program"}}}])
    ): ("user u signs in by the program no-such-program, which is not installed or not in $PATH"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_in_words(tmp_path, text):
    file = tmp_path / "kubeconfig"
    file.write_text(text)

    with pytest.raises(CredentialsError) as caught:
        load_credentials(file)

    assert str(caught.value).startswith(str(file))
    assert WRONG[text] in str(caught.value)


def test_a_context_that_is_not_there_is_reported_with_those_that_are(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config()))

    with pytest.raises(CredentialsError, match="context b is not in it; its contexts: a"):
        load_credentials(file, context="b")


def test_a_folder_and_a_file_that_is_missing_are_reported(tmp_path, monkeypatch):
    with pytest.raises(CredentialsError, match="is a folder"):
        load_credentials(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    with pytest.raises(
        CredentialsError, match=r"no kubeconfig .*nothing \(\$KUBECONFIG\): say which"
    ):
        load_credentials()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        CredentialsError, match=r"no kubeconfig .*config \(the default\): say which"
    ):
        load_credentials()


def test_a_port_where_nobody_answers_is_reported_in_words(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    server = {"server": f"https://127.0.0.1:{port}"}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config(clusters=[{"name": "c", "cluster": server}])))

    run = waddle("status", "--kubeconfig", file)

    assert f"no API server answers at 127.0.0.1:{port}: Connection refused" in run.stderr
    assert run.returncode == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CredentialsError("there is no kubeconfig"), "no cluster was read: there is no kubeconfig"),
        (
            ApiUnreachable("refused"),
            "the API server did not answer: refused. Ask what it lacks: kubectl get --raw",
        ),
        (ApiError(403, "no", reason="Forbidden"), "refused the request: 403 Forbidden: no. Have"),
        (ApiError(401, "no", reason="Unauthorized"), "or choose another by --kubeconfig"),
        (ApiError(500, "no"), "the API server answered with an error: 500: no"),
    ],
)
def test_a_failure_names_who_failed_and_what_to_do(error, words):
    """Every failure was called an API server that did not answer, a missing right too."""
    assert words in failure_text(error)
