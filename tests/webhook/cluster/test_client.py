"""The client at a real API server."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import yaml

from tests.cluster import write_kubeconfig
from tests.patience import PATIENCE_SECONDS
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.certificates.pairs import self_signed
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable

CONFIG_MAP = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def with_client(credentials, work):
    async def run():
        async with ClusterClient(credentials) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.fixture
def credentials(cluster):
    return load_credentials(cluster.kubeconfig)


def test_the_import_reads_no_authorities_of_the_system(tmp_path):
    """It would take aiohttp 40 ms of each start, and no session of ours needs them."""
    program = """
import ssl
from webhook.cluster import client
from aiohttp import connector
contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
print(*(len(context.get_ca_certs()) for context in contexts))
print(len(ssl.create_default_context().get_ca_certs()))
"""
    pair = self_signed(["localhost"], datetime.now(UTC))
    (tmp_path / "authorities").write_bytes(pair.certificate)
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SSL_CERT_FILE": str(tmp_path / "authorities")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert finished.stdout.split() == ["0", "0", "1"]


def test_kinds_are_found_with_their_plural_and_scope(credentials):
    async def work(client):
        discovery = Discovery(client)
        found = await discovery.resource(GroupVersionKind("apps", "v1", "Deployment"))
        assert (found.plural, found.namespaced) == ("deployments", True)
        assert found.path("x", "y", subresource="status") == (
            "/apis/apps/v1/namespaces/y/deployments/x/status"
        )
        namespace = await discovery.resource(GroupVersionKind("", "v1", "Namespace"))
        assert (namespace.plural, namespace.namespaced) == ("namespaces", False)
        before = client.requests
        await discovery.resource(GroupVersionKind("apps", "v1", "StatefulSet"))
        assert client.requests == before
        for missing in (
            GroupVersionKind("apps", "v1", "Nothing"),
            GroupVersionKind("no.such", "v1", "Thing"),
        ):
            with pytest.raises(UnknownKind):
                await discovery.resource(missing)

    with_client(credentials, work)


def test_many_who_ask_for_kinds_of_one_group_at_once_are_one_request(credentials):
    async def work(client):
        discovery = Discovery(client)
        async with asyncio.TaskGroup() as tasks:
            for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet") * 10:
                tasks.create_task(discovery.resource(GroupVersionKind("apps", "v1", kind)))
        assert client.requests == 1

    with_client(credentials, work)


def test_of_two_writers_that_swap_one_gets_the_conflict(credentials):
    async def work(client):
        made = await client.create(CONFIG_MAP, config_map("swap", a="1"), "default")
        await client.replace(CONFIG_MAP, made | {"data": {"a": "2"}})
        with pytest.raises(ApiError) as caught:
            await client.replace(CONFIG_MAP, made | {"data": {"a": "3"}})
        assert caught.value.is_conflict
        assert caught.value.reason == "Conflict"
        assert (await client.get(CONFIG_MAP, "swap", "default"))["data"] == {"a": "2"}
        await client.delete(CONFIG_MAP, "swap", "default")

    with_client(credentials, work)


def test_updates_of_many_writers_are_all_kept(credentials):
    async def work(client):
        await client.create(CONFIG_MAP, config_map("many"), "default")

        async def add(name):
            def change(current):
                return current | {"data": {**current.get("data", {}), name: "x"}}

            await client.update(CONFIG_MAP, "many", "default", change)

        async with asyncio.TaskGroup() as tasks:
            for name in "abcd":
                tasks.create_task(add(name))
        assert (await client.get(CONFIG_MAP, "many", "default"))["data"].keys() == set("abcd")

        def nothing(_current):
            return None

        before = client.requests
        assert await client.update(CONFIG_MAP, "many", "default", nothing) is None
        assert client.requests == before + 1
        await client.delete(CONFIG_MAP, "many", "default")

    with_client(credentials, work)


def test_fields_that_are_applied_belong_to_waddle(credentials):
    async def work(client):
        first = await client.apply(CONFIG_MAP, config_map("ours", a="1"))
        again = await client.apply(CONFIG_MAP, config_map("ours", a="1"))
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert [one["manager"] for one in again["metadata"]["managedFields"]] == ["waddle"]
        patched = await client.merge(CONFIG_MAP, "ours", "default", {"data": {"b": "2"}})
        assert patched["data"] == {"a": "1", "b": "2"}
        await client.delete(CONFIG_MAP, "ours", "default", uid=first["metadata"]["uid"])
        await client.delete(CONFIG_MAP, "ours", "default")

    with_client(credentials, work)


def test_an_object_that_was_made_anew_or_changed_is_not_deleted_as_what_it_was(credentials):
    async def work(client):
        made = await client.create(CONFIG_MAP, config_map("anew"), "default")
        with pytest.raises(ApiError) as caught:
            await client.delete(CONFIG_MAP, "anew", "default", uid="another")
        assert caught.value.is_conflict
        await client.replace(CONFIG_MAP, {**made, "data": {"changed": "since"}})
        version = made["metadata"]["resourceVersion"]
        with pytest.raises(ApiError) as caught:
            await client.delete(CONFIG_MAP, "anew", "default", version=version)
        assert caught.value.is_conflict
        await client.delete(CONFIG_MAP, "anew", "default")

    with_client(credentials, work)


def service_account(cluster, folder, name):
    """A kubeconfig whose token stands in a file, and what writes a new token there."""
    namespace = "/api/v1/namespaces/default"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    cluster.api.apply(f"{namespace}/serviceaccounts/{name}", account)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}"
    cluster.api.apply(path, binding)
    token_file = folder / "token"
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token_file)}
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))

    def renew(bound_to):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": bound_to}}
        made = cluster.api.apply(f"{namespace}/secrets/{bound_to}", secret)
        reference = {
            "kind": "Secret",
            "apiVersion": "v1",
            "name": bound_to,
            "uid": made["metadata"]["uid"],
        }
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": reference},
        }
        answer = cluster.api.request("POST", f"{namespace}/serviceaccounts/{name}/token", request)
        token_file.write_text(answer["status"]["token"])

    return folder / "kubeconfig", renew


async def may_read(client):
    """Whether the API server goes by the account's rights, which were written a moment ago."""
    try:
        await client.request("GET", "/api/v1/namespaces/default")
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return False
    return True


@pytest.fixture
def rotated(cluster, tmp_path):
    """The kubeconfig of an account that ends with the test, and what renews its token."""
    yield service_account(cluster, tmp_path, "rotated")
    core = "/api/v1/namespaces/default"
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    for path in (f"{core}/secrets", f"{core}/serviceaccounts/rotated", f"{bindings}/rotated"):
        cluster.api.request("DELETE", path)


def test_a_token_that_was_revoked_is_replaced_by_the_one_in_the_file(cluster, rotated):
    """Deleting the object that a token is bound to revokes it; the file has a new one by then."""
    kubeconfig, renew = rotated
    renew("first")
    credentials = load_credentials(kubeconfig)

    async def work(client):
        while not await may_read(client):  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0.02)
        renew("second")
        cluster.api.request("DELETE", "/api/v1/namespaces/default/secrets/first")
        # The API server believes a token that it knows for some seconds.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not client.unauthorized:
                await client.request("GET", "/api/v1/namespaces/default")
                await asyncio.sleep(0.2)
        assert credentials.rereads == 1

    with_client(credentials, work)


def test_a_server_that_is_not_there_is_unreachable(cluster, tmp_path):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    async def work(client):
        with pytest.raises(ApiUnreachable):
            await client.request("GET", "/version")

    with_client(load_credentials(path), work)


@pytest.mark.parametrize(("name", "trusted"), [("kubernetes", True), ("other.invalid", False)])
def test_the_certificate_is_held_against_the_name_in_the_kubeconfig(
    cluster, tmp_path, name, trusted
):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["tls-server-name"] = name
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    async def work(client):
        if trusted:
            assert "gitVersion" in await client.request("GET", "/version")
        else:
            with pytest.raises(ApiUnreachable, match="certificate"):
                await client.request("GET", "/version")

    with_client(load_credentials(path), work)


def test_a_busy_server_is_asked_again_as_it_says(tmp_path):
    """The real one is not easily made busy: a socket plays it."""
    answers = [
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ]

    async def work():
        async def serve(reader, writer):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answers.pop(0))
                if not answers:
                    break
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            path = write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}")
            async with ClusterClient(load_credentials(path)) as client:
                assert await client.request("GET", "/x") == {}
                assert client.requests == 2

    asyncio.run(work())


def test_credentials_that_are_missing_or_unsafe_say_so(cluster, tmp_path):
    with pytest.raises(CredentialsError, match=r"there is no kubeconfig .*nothing"):
        load_credentials(tmp_path / "nothing")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(CredentialsError, match="insecure-skip-tls-verify"):
        load_credentials(path)


def test_a_kind_that_is_not_served_is_reported_in_words(credentials):
    """Go's server itself says "404 page not found"."""

    async def ask(client):
        with pytest.raises(ApiError, match=r"^404: the API server serves no such kind: its CRD"):
            await client.request("GET", "/apis/nowhere.example/v1/things")

    with_client(credentials, ask)
