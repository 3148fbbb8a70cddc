"""The certificate kept by several replicas at a real API server, and trusted at every moment."""

import asyncio
import base64
import dataclasses
import datetime as dt
import ssl
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.patience import PATIENCE_SECONDS
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.certificates import pairs
from webhook.certificates.keeper import ServingCertificate
from webhook.certificates.pairs import CertificatePair, SwappedContext
from webhook.certificates.plan import CertificatePlace, Lifetimes, is_trusted
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.kinds import MUTATING_CONFIGURATIONS, SECRETS, WEBHOOK_CONFIGURATIONS
from webhook.log import open_log

NAMESPACE = Resource(GroupVersionKind("", "v1", "Namespace"), "namespaces", namespaced=False)
REPLICAS = 3

# An authority follows another every 4 seconds or so: long before its end, and trusted for one.
SHORT = Lifetimes(
    authority=dt.timedelta(seconds=243),
    serving=dt.timedelta(seconds=243),
    lookahead=dt.timedelta(seconds=240),
    trust_seconds=1.0,
)


@dataclass
class Replica:
    """A keeper, and a TLS server that serves what the keeper says."""

    keeper: ServingCertificate | None = None
    pairs: list[bytes] = field(default_factory=list)
    context: SwappedContext | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    def install(self, certificate, key):
        made = pairs.make_context(CertificatePair(certificate, key))
        if self.context is None:
            self.context = SwappedContext(made)
        self.context.install(made)
        self.pairs.append(certificate)
        self.news.set()

    async def until_pairs(self, count):
        while len(self.pairs) < count:
            self.news.clear()
            await self.news.wait()

    async def serve(self, stack):
        async def greet(reader, writer):
            writer.write(b"hello")
            writer.close()

        server = await asyncio.start_server(
            greet, "127.0.0.1", 0, ssl=self.context.listening, ssl_handshake_timeout=10
        )
        self.port = server.sockets[0].getsockname()[1]
        stack.callback(server.close)


def configuration(name, webhooks=("one", "two")):
    """Registered for a group that does not exist: the API server never calls."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{webhook}.{name}.test",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "apiGroups": [f"{name}.test"],
                        "apiVersions": ["v1"],
                        "resources": ["nothing"],
                        "operations": ["CREATE"],
                    }
                ],
            }
            for webhook in webhooks
        ],
    }


@pytest.fixture
def place():
    name = f"certificate-{uuid.uuid4().hex[:8]}"
    return CertificatePlace(name, "server-cert", name, (f"webhook.{name}.svc", "localhost"))


async def prepare(client, place):
    """Creates the manifests' objects: an empty Secret and a configuration without a bundle."""
    await client.apply(
        NAMESPACE,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}},
    )
    metadata = {"name": place.secret, "namespace": place.namespace, "labels": {"kept": "yes"}}
    await client.create(
        SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, place.namespace
    )
    await client.create(WEBHOOK_CONFIGURATIONS, configuration(place.configuration))
    if place.mutating_configuration:
        name = place.mutating_configuration
        mutating = {**configuration(name), "kind": "MutatingWebhookConfiguration"}
        await client.create(MUTATING_CONFIGURATIONS, mutating)


def with_replicas(cluster, place, log_file, work, count=REPLICAS, **options):
    """Run ``work(client, replicas)`` beside keepers that have a session each, started at once."""

    async def run():
        log = open_log(str(log_file)).logger("certificate")
        async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE_SECONDS):
            client = await stack.enter_async_context(
                ClusterClient(load_credentials(cluster.kubeconfig))
            )
            await prepare(client, place)
            try:
                replicas = []
                async with asyncio.TaskGroup() as tasks:
                    running = []
                    for _ in range(count):
                        own = await stack.enter_async_context(
                            ClusterClient(load_credentials(cluster.kubeconfig))
                        )
                        replica = Replica()
                        replica.keeper = ServingCertificate(
                            own, place, replica.install, log, **options
                        )
                        replicas.append(replica)
                    running = [tasks.create_task(item.keeper.run()) for item in replicas]
                    await work(client, replicas, stack)
                    for task in running:
                        task.cancel()
            finally:
                await client.delete(NAMESPACE, place.namespace)
                await client.delete(WEBHOOK_CONFIGURATIONS, place.configuration)
                if place.mutating_configuration:
                    await client.delete(MUTATING_CONFIGURATIONS, place.mutating_configuration)

    event_loop.run(run())


async def data_of(client, place):
    document = await client.get(SECRETS, place.secret, place.namespace)
    return {name: base64.b64decode(value) for name, value in document["data"].items()}


async def bundles_of(client, place):
    document = await client.get(WEBHOOK_CONFIGURATIONS, place.configuration)
    return {
        base64.b64decode(item["clientConfig"].get("caBundle", "")) for item in document["webhooks"]
    }


async def until(condition):
    """Wait for what the API server and the keepers will make true."""
    while not await condition():  # noqa: ASYNC110  # the API server has no event for this
        await asyncio.sleep(0.02)


def all_ready(replicas):
    async def ready():
        return not any(replica.keeper.not_ready() for replica in replicas)

    return ready


def counted_writes(replicas):
    """Waits for a write of each; a watch may report the object before its writer has the answer."""

    async def counted():
        statistics = [replica.keeper.statistics() for replica in replicas]
        return all(
            any(getattr(item, name) for item in statistics)
            for name in ("secret_writes", "bundle_writes")
        )

    return counted


def test_replicas_that_start_at_once_agree_on_one_pair_and_one_bundle(cluster, place, tmp_path):
    async def work(client, replicas, _stack):
        assert "holds no certificate" in replicas[0].keeper.not_ready()
        await until(all_ready(replicas))
        data = await data_of(client, place)
        (bundle,) = await bundles_of(client, place)
        await until(counted_writes(replicas))
        statistics = [replica.keeper.statistics() for replica in replicas]

        assert [replica.pairs for replica in replicas] == [[data["tls.crt"]]] * REPLICAS
        assert bundle == data["ca.crt"]
        assert sum(item.secret_writes for item in statistics) == 1
        assert sum(item.bundle_writes for item in statistics) == 1
        assert sum(item.failures for item in statistics) == 0
        secret = await client.get(SECRETS, place.secret, place.namespace)
        assert secret["metadata"]["labels"] == {"kept": "yes"}

    with_replicas(cluster, place, tmp_path / "log", work)


def test_keys_are_made_once_for_a_secret_that_is_written(cluster, place, tmp_path, monkeypatch):
    """An authority's and a pair's: a plan that is carried out is not made again for the write."""
    generate, made = ec.generate_private_key, []

    def counted(curve):
        made.append(curve)
        return generate(curve)

    monkeypatch.setattr(ec, "generate_private_key", counted)

    async def work(client, replicas, _stack):
        await until(all_ready(replicas))
        await until(counted_writes(replicas))
        assert replicas[0].keeper.statistics().secret_writes == 1
        assert len(made) == 2

    with_replicas(cluster, place, tmp_path / "log", work, count=1)


def test_a_mutating_configuration_has_the_bundle_too_before_a_replica_is_ready(
    cluster, place, tmp_path
):
    both = dataclasses.replace(place, mutating_configuration=f"{place.configuration}-mutating")

    async def work(client, replicas, _stack):
        await until(all_ready(replicas))
        data = await data_of(client, place)
        assert await bundles_of(client, place) == {data["ca.crt"]}
        document = await client.get(MUTATING_CONFIGURATIONS, both.mutating_configuration)
        bundles = {item["clientConfig"]["caBundle"] for item in document["webhooks"]}
        assert bundles == {base64.b64encode(data["ca.crt"]).decode()}

    with_replicas(cluster, both, tmp_path / "log", work)


def test_what_others_do_to_secret_and_bundle_is_put_right(cluster, place, tmp_path):
    async def work(client, replicas, _stack):
        (replica,) = replicas
        await until(all_ready(replicas))
        first = await data_of(client, place)

        def without_bundle(document):
            for item in document["webhooks"]:
                item["clientConfig"].pop("caBundle", None)
            return document

        await client.update(WEBHOOK_CONFIGURATIONS, place.configuration, "", without_bundle)

        async def trusted():
            return await bundles_of(client, place) == {first["ca.crt"]}

        await until(trusted)
        assert not replica.keeper.not_ready()

        await client.merge(SECRETS, place.secret, place.namespace, {"data": {"tls.key": ""}})
        await replica.until_pairs(2)
        second = await data_of(client, place)
        assert second["ca.crt"] == first["ca.crt"]
        assert second["tls.crt"] != first["tls.crt"]

    with_replicas(cluster, place, tmp_path / "log", work, count=1)


def test_a_missing_secret_is_reported_and_then_found(cluster, place, tmp_path):
    async def work(client, replicas, _stack):
        (replica,) = replicas
        await until(all_ready(replicas))
        assert "does not exist" not in (tmp_path / "log").read_text()
        await client.delete(SECRETS, place.secret, place.namespace)

        async def logged():
            return "does not exist" in (tmp_path / "log").read_text()

        await until(logged)
        assert not replica.keeper.not_ready(), "what is served goes on being served"
        metadata = {"name": place.secret, "namespace": place.namespace}
        await client.create(
            SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, place.namespace
        )
        await replica.until_pairs(2)

    with_replicas(cluster, place, tmp_path / "log", work, count=1)


def test_a_ready_replica_says_what_is_missing_until_it_is_back(cluster, place, tmp_path):
    """The Secret comes back as it was, as a GitOps tool applies it: nothing is installed anew."""

    async def work(client, replicas, _stack):
        (replica,) = replicas
        await until(all_ready(replicas))
        assert replica.keeper.faults() == ()

        def faults(*parts):
            async def found():
                texts = replica.keeper.faults()
                return len(texts) == len(parts) and all(
                    part in text for part, text in zip(parts, texts, strict=True)
                )

            return found

        secret = await client.get(SECRETS, place.secret, place.namespace)
        await client.delete(SECRETS, place.secret, place.namespace)
        await until(faults("Secret"))
        await client.delete(WEBHOOK_CONFIGURATIONS, place.configuration)
        missing = f"the webhook configuration {place.configuration} does not exist"
        await until(faults("Secret", missing))
        assert all("apply the manifests" in text for text in replica.keeper.faults())
        assert not replica.keeper.not_ready(), "what is served goes on being served"

        metadata = {"name": place.secret, "namespace": place.namespace}
        kind = {"apiVersion": "v1", "kind": "Secret"}
        await client.create(
            SECRETS, {**kind, "metadata": metadata, "data": secret["data"]}, place.namespace
        )
        await client.create(WEBHOOK_CONFIGURATIONS, configuration(place.configuration))
        await until(faults())
        assert missing.partition(" does")[0] not in " ".join(replica.keeper.faults())

    with_replicas(cluster, place, tmp_path / "log", work, count=1)
    assert "the webhook configuration does not exist" in (tmp_path / "log").read_text()


def test_the_writer_of_a_foreign_bundle_is_named(cluster, place, tmp_path):
    log = tmp_path / "log"

    async def work(client, replicas, _stack):
        await until(all_ready(replicas))
        foreign = configuration(place.configuration)
        for item in foreign["webhooks"]:
            item["clientConfig"]["caBundle"] = base64.b64encode(b"foreign").decode()
        path = WEBHOOK_CONFIGURATIONS.path(place.configuration)
        await asyncio.to_thread(cluster.api.apply, f"{path}", foreign, manager="argocd-controller")

        async def logged():
            return "another writer replaced the CA bundle" in log.read_text()

        await until(logged)
        assert '"writer":"argocd-controller"' in log.read_text().replace('": "', '":"')

    with_replicas(cluster, place, log, work, count=1)


def test_two_rotations_fail_no_client_that_trusts_the_configuration_alone(cluster, place, tmp_path):
    """Clients connect all the time with the bundle that stands in the configuration just then.

    A new authority signs once it was trusted for a while: who took longer than that from reading
    the bundle to the handshake, on a busy machine, was promised nothing.
    """
    calls, failures = 0, []

    async def call(client, replica):
        nonlocal calls
        began = time.monotonic()
        (bundle,) = await bundles_of(client, place)
        context = ssl.create_default_context(cadata=bundle.decode())
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", replica.port, ssl=context, server_hostname=place.names[0]
            )
            assert await reader.read() == b"hello"
            writer.close()
            calls += 1
        except (OSError, AssertionError) as error:
            if time.monotonic() - began < SHORT.trust_seconds:
                failures.append(f"{error}")

    async def call_forever(client, replica):
        while True:
            await call(client, replica)

    async def work(client, replicas, stack):
        await until(all_ready(replicas))
        for replica in replicas:
            await replica.serve(stack)
        async with asyncio.TaskGroup() as tasks:
            callers = [tasks.create_task(call_forever(client, replica)) for replica in replicas]
            for replica in replicas:
                await replica.until_pairs(3)
            for _ in range(2):  # the present pair is called too
                for replica in replicas:
                    await call(client, replica)
            for caller in callers:
                caller.cancel()
        authorities = {
            x509.load_pem_x509_certificates(pair)[0].issuer for pair in replicas[0].pairs
        }

        assert len(authorities) >= 3, "the authority was not replaced twice"
        assert failures == []
        assert calls >= 2 * REPLICAS

        async def trusted():  # but for the moment between a Secret's write and the bundle's
            data, now = await data_of(client, place), dt.datetime.now(tz=dt.UTC)
            return [is_trusted(item, data, now) for item in await bundles_of(client, place)] == [
                True
            ]

        await until(trusted)

    options = {"lifetimes": SHORT, "check_seconds": 0.2}
    with_replicas(cluster, place, tmp_path / "log", work, **options)
    assert "another writer" not in (tmp_path / "log").read_text()


def test_providers_find_our_authorities_in_a_secret_of_their_own(cluster, place, tmp_path):
    """Copied by whoever is first, put right, and beside whatever else stands there."""
    copied = dataclasses.replace(place, provider_secret=(place.namespace, "trusted-by-provider"))

    async def work(client, replicas, _stack):
        await until(all_ready(replicas))
        metadata = {"name": "trusted-by-provider", "namespace": place.namespace}
        kind = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await client.create(SECRETS, {**kind, "data": {"other": "eA=="}}, place.namespace)
        expected = base64.b64encode((await data_of(client, place))["ca.crt"]).decode()

        async def held():
            document = await client.get(SECRETS, "trusted-by-provider", place.namespace)
            return document["data"] == {"other": "eA==", "ca.crt": expected}

        await until(held)
        change = {"data": {"ca.crt": "eA=="}}
        await client.merge(SECRETS, "trusted-by-provider", place.namespace, change)
        await until(held)

    with_replicas(cluster, copied, tmp_path / "log", work)
