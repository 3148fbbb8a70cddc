"""Keeps the serving certificate: its Secret, the configurations' CA bundle, and the served pair.

Every replica runs this, without a leader. Each watches the Secret and the configurations, computes
the same plan (:mod:`~webhook.certificates.plan`), and writes the differences by compare-and-swap. A
replica that loses finds no more difference. The served pair comes directly from the Secret's watch,
without the delay of a projected file.

The bundle is written from a Secret read after the configuration, and swapped against that
configuration. So a replica whose watch lags behind cannot undo the write of a faster one.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import random
import time
from typing import TYPE_CHECKING, Final

from webhook.backoff import Backoff
from webhook.certificates import plan as planning
from webhook.certificates.authorities_copy import AuthoritiesCopy
from webhook.certificates.ca_bundle import is_foreign, trusts, with_bundle, writer_of
from webhook.certificates.pairs import CERTIFICATE, KEY
from webhook.certificates.plan import CertificatePlace, CertificatePlan, Lifetimes
from webhook.certificates.reading import NEXT_CA_CERTIFICATE, secret_data
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import MUTATING_CONFIGURATIONS, SECRETS, WEBHOOK_CONFIGURATIONS
from webhook.cluster.reflector import FollowedObject, ReflectorStatistics, Settings
from webhook.cluster.work_queue import WorkQueue
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

CHECK_SECONDS: Final = 30.0
"""How often the plan is made again without an event. It costs a millisecond and no request, and
half of :data:`~webhook.certificates.plan.TRUST_SECONDS` adds little to a rotation."""


@dataclass(slots=True)
class CertificateStatistics:
    """The counts of certificates since the start, and those of the watches."""

    secret: ReflectorStatistics
    configuration: ReflectorStatistics
    secret_writes: int = 0
    bundle_writes: int = 0
    conflicts: int = 0
    failures: int = 0


class ServingCertificate:
    """Keeps and serves the certificate; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        place: CertificatePlace,
        install: Callable[[bytes, bytes], None],
        log: Logger,
        *,
        lifetimes: Lifetimes | None = None,
        check_seconds: float = CHECK_SECONDS,
        settings: Settings | None = None,
    ) -> None:
        """``install`` serves a chain with its key, both in PEM; ValueError refuses them."""
        self._client = client
        self._place = place
        self._install = install
        self._log = log
        stands = dt.timedelta(0) if place.provider_secret is None else planning.STANDS
        self._lifetimes = lifetimes or Lifetimes(stands=stands)
        self._check_seconds = check_seconds
        self._queue: WorkQueue[str] = WorkQueue(
            backoff=lambda: Backoff(initial_seconds=0.1, max_seconds=10.0)
        )
        self._secret = FollowedObject(
            client,
            SECRETS,
            place.secret,
            self._wake,
            namespace=place.namespace,
            settings=settings,
        )
        named = [(WEBHOOK_CONFIGURATIONS, place.configuration)]
        if place.mutating_configuration:
            named.append((MUTATING_CONFIGURATIONS, place.mutating_configuration))
        self._configurations = [
            FollowedObject(client, resource, name, self._wake, settings=settings)
            for resource, name in named
        ]
        self._copy = None
        if place.provider_secret is not None:
            self._copy = AuthoritiesCopy(
                client, *place.provider_secret, self._wake, log, settings=settings
            )
        self._statistics = CertificateStatistics(
            self._secret.reflector.statistics(), self._configurations[0].reflector.statistics()
        )
        self._served: tuple[bytes, bytes] | None = None
        self._was_trusted = False
        self._decoded: tuple[Json, dict[str, bytes]] = ({}, {})
        # The authority to come that every webhook trusts, and since when.
        self._trusted: tuple[bytes, float] | None = None
        self._fault = ""
        self._failure = ""
        self._missing: tuple[str, ...] = ()
        self._reason = ""

    def statistics(self) -> CertificateStatistics:
        """Returns the counts as they are now."""
        self._statistics.secret = self._secret.reflector.statistics()
        self._statistics.configuration = self._configurations[0].reflector.statistics()
        return self._statistics

    def not_ready(self) -> str:
        """Returns why the API server cannot call us yet, or an empty text; any thread may call it.

        Once the API server could call us, the text stays empty. A later change of the configuration
        would not be repaired by taking every replica out of service.
        """
        place = self._place
        if self._served is None:
            where = f"Secret {place.namespace}/{place.secret}"
            if error := self._secret.reflector.statistics().last_error:
                return f"{where} cannot be read: {error}"
            return self._fault or f"{where} holds no certificate that can be served yet"
        if self._was_trusted:
            return ""
        names = " or ".join(item.name for item in self._configurations)
        return f"the webhook configuration {names} does not trust the certificate yet"

    def faults(self) -> tuple[str, ...]:
        """Returns what is wrong in the cluster, and what to do; any thread may call it.

        A replica that serves stays ready: requests that reach it are answered.
        """
        missing = [
            f"the webhook configuration {name} does not exist, so the API server sends no requests "
            "for it: apply the manifests"
            for name in self._missing
        ]
        unread = [
            f"{item.resource.gvk.kind} {item.name} cannot be read: {error}"
            for item in (self._secret, *self._configurations)
            if (error := item.reflector.statistics().last_error)
        ]
        return tuple(filter(None, (self._fault, self._failure, *unread, *missing)))

    async def run(self) -> None:
        """Watch, write and serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._secret.reflector.run())
            for configuration in self._configurations:
                tasks.create_task(configuration.reflector.run())
            if self._copy is not None:
                tasks.create_task(self._copy.run())
            await self._secret.reflector.wait_synced()
            self._wake()
            tasks.create_task(self._queue.run(self._settle, 1))

    def _wake(self) -> None:
        self._queue.add(self._place.secret)

    async def _settle(self, secret: str) -> None:
        """Looks again after a change, or when time may have changed the plan."""
        try:
            await self._step()
        except (ApiError, ApiUnreachable) as error:
            self._note_failure(error)
            self._queue.retry(secret)
        else:
            self._failure = ""
            self._queue.forget(secret)
            # Replicas do not coincide.
            jitter = random.uniform(0.5, 1.0)  # noqa: S311  # no secret
            self._queue.add(secret, self._check_seconds * jitter)

    def _note_failure(self, error: ApiError | ApiUnreachable) -> None:
        if isinstance(error, ApiError) and error.is_conflict:
            self._statistics.conflicts += 1
            return
        self._statistics.failures += 1
        self._failure = f"the certificate or a caBundle is not as it should be: {error}"
        if isinstance(error, ApiError) and error.is_forbidden:
            self._failure += ": give this account the right, as the manifests do"
        self._log.warning(
            "the certificate cannot be kept up to date; trying again", error=str(error)
        )

    async def _step(self) -> None:
        self._note_missing()
        document = self._secret.document
        if document is None:
            self._log_fault(
                f"Secret {self._place.namespace}/{self._place.secret} does not exist: apply the "
                "manifests, which have it empty"
            )
            return
        data = self._decode(document)
        self._note_trust(data)
        plan = self._plan(data)
        if plan.secret is not None:
            written = await self._write_secret(data, plan)
            data = self._decode(written or document)
        self._serve(data)
        for configuration in self._configurations:
            current = configuration.document
            if current is not None and not trusts(current, data):
                await self._write_bundle(configuration)
        self._note_trust(data)
        if self._copy is not None:
            await self._copy.keep(data, planning.bundle(data, _now()))

    # --- the Secret ---------------------------------------------------------------------------

    def _decode(self, document: Json) -> dict[str, bytes]:
        """Decodes the Secret's data; the result for the last document is kept."""
        if document is not self._decoded[0]:
            self._decoded = document, secret_data(document)
        return self._decoded[1]

    def _plan(self, data: Mapping[str, bytes]) -> CertificatePlan:
        return planning.plan(
            data,
            self._place.names,
            _now(),
            trusted_seconds=self._trusted_seconds(data),
            lifetimes=self._lifetimes,
        )

    async def _write_secret(self, seen: dict[str, bytes], plan: CertificatePlan) -> Json | None:
        """Swaps the Secret, unless another replica has; returns the written one.

        ``plan`` is for the data ``seen``: if the Secret still has that data, no new keys are made.
        """

        def planned(document: Json) -> Json | None:
            data = secret_data(document)
            current = plan if data == seen else self._plan(data)
            if current.secret is None:
                return None
            self._reason = current.reason
            encoded = {
                name: base64.b64encode(value).decode() for name, value in current.secret.items()
            }
            return document | {"data": encoded}

        written = await self._secret.update(planned)
        if written is not None:
            self._statistics.secret_writes += 1
            self._log.info("certificate written", secret=self._secret.name, reason=self._reason)
        return written

    def _serve(self, data: Mapping[str, bytes]) -> None:
        pair = (data.get(CERTIFICATE, b""), data.get(KEY, b""))
        if pair == self._served:
            self._fault = ""
        if pair == self._served or not all(pair):
            return
        try:
            self._install(*pair)
        except ValueError as error:
            self._log_fault(f"the certificate cannot be served: {error}")
            return
        self._served, self._fault = pair, ""
        self._log.info("certificate installed", secret=self._place.secret)

    def _note_missing(self) -> None:
        """Records and logs which webhook configurations do not exist."""
        needed = [
            item
            for item in self._configurations
            if self._place.validates or item.resource is not WEBHOOK_CONFIGURATIONS
        ]
        before = self._missing
        self._missing = tuple(
            item.name for item in needed if item.is_known and item.document is None
        )
        for name in self._missing:
            if name not in before:
                self._log.error(
                    "the webhook configuration does not exist: apply the manifests",
                    configuration=name,
                )

    def _log_fault(self, fault: str) -> None:
        before, self._fault = self._fault, fault
        if fault != before:
            self._log.error("the certificate cannot be used", error=fault)

    # --- the webhook configuration ------------------------------------------------------------

    async def _write_bundle(self, seen: FollowedObject) -> None:
        """Writes the authorities into every webhook, from fresh reads instead of the watches."""
        place = self._place
        configuration = await self._client.get(seen.resource, seen.name)
        # Read after the configuration: at least as new as the Secret behind its bundle.
        data = secret_data(await self._client.get(SECRETS, place.secret, place.namespace))
        if trusts(configuration, data):
            return
        updated = with_bundle(configuration, planning.bundle(data, _now()))
        store = seen.reflector.store
        mark = store.mark("", seen.name)
        written = await self._client.replace(seen.resource, updated)
        self._statistics.bundle_writes += 1
        store.take_answer(mark, written)
        if self._was_trusted and is_foreign(configuration, data):
            self._log.warning(
                "another writer replaced the CA bundle, and calls failed until now; have it leave out "
                "caBundle",
                configuration=seen.name,
                writer=writer_of(configuration),
            )
        self._log.info("CA bundle written", configuration=seen.name)

    def _note_trust(self, data: Mapping[str, bytes]) -> None:
        """Records since when the authority to come is trusted, and whether our pair is."""
        if not all(item.is_known for item in self._configurations):
            return
        # Without a configuration there is no API server to turn away.
        documents = [item.document for item in self._configurations]
        trusted = all(item is None or trusts(item, data) for item in documents)
        if trusted and self._served is not None:
            self._was_trusted = True
        coming = data.get(NEXT_CA_CERTIFICATE, b"")
        if not coming or not trusted:
            self._trusted = None
        elif self._trusted is None or self._trusted[0] != coming:
            self._trusted = (coming, time.monotonic())

    def _trusted_seconds(self, data: Mapping[str, bytes]) -> float:
        coming = data.get(NEXT_CA_CERTIFICATE, b"")
        if self._trusted is None or self._trusted[0] != coming:
            return 0.0
        return time.monotonic() - self._trusted[1]


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)
