"""The certificates' world: replicas that keep one Secret and the webhook configuration's CA bundle.

Authorities and serving pairs live for minutes, so that each is replaced several times while
connections break, replicas hang and API servers restart. What holds: no replica that was ever ready
serves a pair that has ended, or that an API server would not trust which is a while behind; once all
rests, every replica serves the Secret's pair and nothing is written but what time asks for.
"""

import asyncio
import base64
import dataclasses
import datetime as dt
import functools
from types import SimpleNamespace

import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from tests.simulation.api_http import URL, ApiServer
from tests.simulation.api_server import NAMESPACES, Happened, Served, Storage
from tests.simulation.control_plane import ControlPlane
from tests.simulation.doors import EPOCH
from tests.simulation.ends import killed
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from tests.simulation.process import Process
from webhook import log as product_log
from webhook.certificates.keeper import ServingCertificate
from webhook.certificates.pairs import CERTIFICATE
from webhook.certificates.plan import CertificatePlace, Lifetimes
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import Credentials

SECRETS = Served("", "v1", "secrets", "Secret", namespaced=True)
CONFIGURATIONS = Served(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
)
PLACE = CertificatePlace("waddle", "cert", "waddle", ("waddle.waddle.svc",))

LIFETIMES = Lifetimes(
    authority=dt.timedelta(minutes=20),
    serving=dt.timedelta(minutes=9),
    lookahead=dt.timedelta(minutes=7),
)
"""Short, so that little time passes in which nothing happens; and yet a pair is replaced 135 s
before its end, which is more than the silence of a watch."""

STORY_SECONDS = 2400.0
"""In which an authority is replaced about three times, and a serving pair about six."""

BEHIND_SECONDS = 30.0
"""How far an API server may be behind the bundle that is written: half of what a new authority is
trusted before it signs anything (``TRUST_SECONDS``)."""

LOOK_SECONDS = 10.0
"""The interval of looks at the served pair without an event: it may end."""

MEND_SECONDS = 300.0
"""In which all serve one pair after the last misfortune: beyond the silence of a watch."""


@dataclasses.dataclass
class Replica:
    """A replica: its process, and the pair that it serves."""

    name: str
    process: Process
    keeper: ServingCertificate | None = None
    served: bytes = b""
    was_ready: bool = False


class CertificateWorld:
    """A world of certificates; :meth:`main` is its director's."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.network = Network(loop)
        self.network.splitting = 0.01
        self.storage = Storage()
        ControlPlane(loop, self.storage)
        for served in (SECRETS, CONFIGURATIONS):
            self.storage.serve(served)
        self.storage.create(NAMESPACES, "", {"metadata": {"name": PLACE.namespace}})
        webhooks = [{"name": name, "clientConfig": {}} for name in ("one", "two")]
        configuration = {"metadata": {"name": PLACE.configuration}, "webhooks": webhooks}
        self.storage.create(SECRETS, PLACE.namespace, {"metadata": {"name": PLACE.secret}})
        self.storage.create(CONFIGURATIONS, "", configuration)
        self.storage.listeners.append(self._changed)
        self.bundles: list[tuple[float, bytes]] = []
        """The CA bundles of the configuration, with the times since when."""
        self.replicas: list[Replica] = []
        self.made = 0
        self.pairs = 0
        """The number of serving pairs that the Secret has had."""
        self.server: ApiServer | None = None

    # --- replicas ------------------------------------------------------------------------------

    def start_replica(self) -> None:
        """A replica begins, with nothing served."""
        self.made += 1
        name = f"replica-{self.made}"
        replica = Replica(name, self.loop.process(name))
        self.replicas.append(replica)
        replica.process.spawn(self._keep(replica))

    async def _keep(self, replica: Replica) -> None:
        def write(line: bytes) -> None:
            if not replica.process.dead:
                event = orjson.loads(line)
                self.loop.notify(replica.name, event["msg"])

        def install(certificate: bytes, key: bytes) -> None:
            del key
            replica.served = certificate
            self.loop.notify(replica.name, "serves another pair")
            self._look(replica)

        credentials = Credentials(
            lambda: SimpleNamespace(
                host=URL, tls_server_name=None, proxy=None, get_api_key_with_prefix=lambda _: ""
            )
        )
        log = product_log.Log(write).logger("certificate")
        async with ClusterClient(credentials, replica=replica.name, log=log) as client:
            replica.keeper = ServingCertificate(client, PLACE, install, log, lifetimes=LIFETIMES)
            await replica.keeper.run()

    # --- what holds ----------------------------------------------------------------------------

    def _changed(self, change: Happened) -> None:
        after = change.after
        if after is None:
            return
        if change.served == CONFIGURATIONS:
            held = {hook["clientConfig"].get("caBundle", "") for hook in after["webhooks"]}
            trusted = base64.b64decode(held.pop()) if len(held) == 1 else b""
            if not self.bundles or self.bundles[-1][1] != trusted:
                self.bundles.append((self.loop.now(), trusted))
        elif change.served == SECRETS and change.before is not None:
            before = change.before.get("data") or {}
            self.pairs += after["data"].get(CERTIFICATE) != before.get(CERTIFICATE)
        for replica in self.replicas:
            self._look(replica)

    def _trusted_lately(self) -> list[bytes]:
        """Every bundle that an API server may hold now, since there was one."""
        late = self.loop.now() - BEHIND_SECONDS
        lately: list[bytes] = []
        for since, held in reversed(self.bundles):
            if held:
                lately.append(held)
                if since < late:
                    break  # the one before it had been replaced by then
        return lately

    def _look(self, replica: Replica) -> None:
        """Whether every API server could call this replica now."""
        if replica.process.dead or replica.keeper is None:
            return
        replica.was_ready = replica.was_ready or not replica.keeper.not_ready()
        if not replica.was_ready:
            return
        now = EPOCH + self.loop.now()
        if _ends(replica.served) <= now:
            self.loop.fail(f"{replica.name} serves what has ended")
        for held in self._trusted_lately():
            if _trusted_until(held, replica.served) <= now:
                self.loop.fail(f"{replica.name} serves what an API server does not trust")

    def _unsettled(self) -> str:
        data = self.storage.get(SECRETS, PLACE.namespace, PLACE.secret).get("data") or {}
        for replica in self.replicas:
            if replica.keeper is None or replica.keeper.not_ready():
                return f"{replica.name} is not ready"
            if base64.b64encode(replica.served).decode() != data.get(CERTIFICATE):
                return f"{replica.name} serves another pair than the Secret's"
        return ""

    # --- what happens --------------------------------------------------------------------------

    async def main(self) -> None:
        """The whole story."""
        loop, chance = self.loop, self.loop.random
        self._start_server()
        for _ in range(chance.choice([1, 2, 3])):
            self.start_replica()
        happens = sorted(chance.random() * STORY_SECONDS for _ in range(chance.choice([3, 10, 20])))
        while happens:
            while loop.now() < happens[0]:
                await self._pass(min(LOOK_SECONDS, happens[0] - loop.now()))
            happens.pop(0)
            await self._misfortune()
        assert self.server is not None
        self.server.busy = self.server.torn = 0.0
        loop.notify("fate", "all is well from now on")
        until = loop.now() + MEND_SECONDS
        while why := self._unsettled():
            if loop.now() > until:
                loop.fail(f"{MEND_SECONDS:.0f} seconds after the last misfortune: {why}")
                return
            await self._pass(1.0)
        # A pair is replaced when a quarter of its life is left, and with each authority.
        passed = dt.timedelta(seconds=loop.now())
        authorities = passed / (LIFETIMES.authority - LIFETIMES.lookahead)
        if self.pairs > 3 + passed / (LIFETIMES.serving * 3 / 4) + authorities:
            loop.fail(f"the Secret had {self.pairs} pairs within {passed}")

    async def _pass(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for replica in self.replicas:
            self._look(replica)

    def _start_server(self) -> None:
        chance = self.loop.random
        self.server = ApiServer(self.loop, self.network, self.storage)
        self.server.watch_lists = chance.random() < 0.5
        self.server.slow = chance.choice([0.01, 0.5])
        self.server.start()

    async def _misfortune(self) -> None:
        chance, server = self.loop.random, self.server
        assert server is not None
        misfortune = chance.choice(
            [
                *("restart", "compact", "cut", "cut", "silent", "busy", "torn", "well"),
                *("crash", "crash", "new replica", "hang"),
            ]
        )
        replica = chance.choice(self.replicas)
        self.loop.notify("fate", f"{misfortune} {replica.name}")
        match misfortune:
            case "restart":
                await killed(self.loop, server.process)
                server.stop()
                await self._pass(chance.expovariate(0.1))
                self._start_server()
            case "compact":
                self.storage.compact()
            case "crash":
                await killed(self.loop, replica.process)
                self.replicas.remove(replica)
                self.start_replica()
            case "new replica" if len(self.replicas) < 3:
                self.start_replica()
            case "hang":
                replica.process.pause(chance.choice([1.0, 20.0]))
            case "cut" | "silent":
                for link in list(self.network.links):
                    if chance.random() < 0.5:
                        (self.network.reset if misfortune == "cut" else self.network.go_silent)(
                            link
                        )
            case "busy":
                server.busy = chance.choice([0.1, 0.5])
            case "torn":
                server.torn = 0.2
            case _:
                server.busy = server.torn = 0.0


@functools.lru_cache
def _ends(served: bytes) -> float:
    """When what is served ends, in seconds since 1970."""
    return x509.load_pem_x509_certificates(served)[0].not_valid_after_utc.timestamp()


@functools.lru_cache
def _trusted_until(held: bytes, served: bytes) -> float:
    """When the last authority of a bundle ends that has signed what is served; 0 if none has."""
    serving = x509.load_pem_x509_certificates(served)[0]
    signers = [one for one in x509.load_pem_x509_certificates(held) if _has_signed(one, serving)]
    return max((one.not_valid_after_utc.timestamp() for one in signers), default=0.0)


@functools.lru_cache
def _has_signed(authority: x509.Certificate, serving: x509.Certificate) -> bool:
    try:
        serving.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
