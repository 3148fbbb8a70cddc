"""``waddle wait``: waits until all replicas enforce the applied objects."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from webhook.api import pod_status, revision
from webhook.api.shapes import is_deleted
from webhook.cli import exit_codes
from webhook.cli.cluster_access import EXTENSIONS, TEMPLATES, cluster_options
from webhook.cli.terminal import complain, write
from webhook.cluster.kinds import PODS
from webhook.controllers.status.convergence import (
    IN_FORCE,
    TEMPLATE_KIND,
    UNSEEN,
    Convergence,
    ExceptionStanding,
    converge,
)
from webhook.controllers.status_kinds import name_label, status_resource
from webhook.kyverno.kinds import GROUP as KYVERNO_GROUP
from webhook.policy_kinds.known import constraints_of, kind_of
from webhook.policy_kinds.table import EXCEPTION_KINDS, KYVERNO_KINDS
from webhook.printable import printable, quantity
from webhook.replicas.pods import WEBHOOK_PODS, replica
from webhook.settings.flags import InvalidFlag, read_duration
from webhook.webhook_rules.coverage import REASON, CoverageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.api.pod_status import StatusKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.errors import ApiError
    from webhook.cluster.reflector import Reflector
    from webhook.cluster.store import Change, Object
    from webhook.policies.request_coverage import RequestCoverage

READ_SECONDS: Final = 1.0
"""The interval of reading what is not watched, in seconds: webhook configurations that send no
request of the object, and an unfinished trial."""

TRIED: Final = (pod_status.TEMPLATE, pod_status.CONSTRAINT)
"""Kinds that a replica tries before any enforces them."""

_HELP = """Wait until every replica of Waddle enforces each KIND/NAME as it is now.

KIND is ConstraintTemplate, the kind of a constraint, of a mutator or of an exception, or
ExpansionTemplate; its case does not matter. Every
replica that is ready, or terminating and not yet finished, must say that it enforces
the object's present generation, without errors; one that terminates never does. The rules of the
webhook configuration must send something that the object is for: else it is NotAsked.
At the end of the time it names each replica that lacks, with the reason, and the replica that
still tries the policy before any enforces it.

An exception has one status for all replicas, and is waited for until that says Active (or Unused).

Replicas write nothing into Kyverno's policies. Such a policy is waited for until it can be used, the
replicas' flag is --kyverno-policies=enforce, and the webhook configuration sends something it is for.

\b
  kubectl apply -f constraint.yaml
  waddle wait --for=enforced K8sRequiredLabels/ns-must-have-owner --timeout 60s
  waddle wait PolicyException/shop/agent
"""


@click.command("wait", help=_HELP + exit_codes.paragraph("wait"))
@click.argument("objects", metavar="KIND/NAME...", nargs=-1)
@click.option(
    "--for",
    "condition",
    default="enforced",
    show_default=True,
    help="The condition to wait for; only enforced is possible.",
)
@click.option("--timeout", default="30s", show_default=True, help="How long: 30s, 2m, 1m30s …")
@cluster_options
def command(
    objects: tuple[str, ...],
    *,
    condition: str,
    timeout: str,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> int:
    """Watch the objects, their statuses and the Pods."""
    try:
        named = [_named(item) for item in objects]
        seconds = read_duration("timeout", timeout)
    except (InvalidFlag, ValueError) as error:
        complain(str(error))
        return exit_codes.UNKNOWN
    if not named:
        complain("give at least one KIND/NAME to wait for")
        return exit_codes.UNKNOWN
    if condition != "enforced":
        complain(f"--for={condition}: the only condition is enforced")
        return exit_codes.UNKNOWN
    # Imported here: they load aiohttp and the event loop.
    from webhook.cluster import event_loop  # noqa: PLC0415
    from webhook.cluster.client import ClusterClient  # noqa: PLC0415
    from webhook.cluster.credentials import CredentialsError, load_credentials  # noqa: PLC0415

    async def run() -> int:
        async with ClusterClient(load_credentials(kubeconfig, context=context)) as client:
            return await _wait_for_all(client, named, namespace, seconds)

    try:
        return event_loop.run(run())
    except CredentialsError as error:
        complain(str(error))
        return exit_codes.UNKNOWN


class _Named(NamedTuple):
    """An object to wait for; ``namespace`` is empty for a cluster-scoped kind."""

    resource: Resource
    namespace: str
    name: str

    @property
    def shown(self) -> str:
        return "/".join(filter(None, (self.resource.gvk.kind, self.namespace, self.name)))


def _refusal(error: ApiError, named: _Named) -> str:
    """Returns why an object was not read; an absent kind is not an absent object."""
    if not error.is_absent:
        return str(error)
    if f'"{named.name}" not found' in error.message:
        return "there is no such object"
    return (
        f"the API server serves no {named.resource.gvk.kind}: correct the kind, or apply its "
        "CustomResourceDefinition"
    )


def _named(text: str) -> _Named:
    """Reads ``KIND/NAME``; the kind may include its group, as kubectl prints it."""
    kind, _, name = text.partition("/")
    kind, _, group = kind.partition(".")
    rows = KYVERNO_KINDS if group.lower() == KYVERNO_GROUP else (*EXCEPTION_KINDS, *KYVERNO_KINDS)
    row = next((row for row in rows if row.kind.lower() == kind.lower()), None)
    namespace = ""
    if row is not None and row.namespaced:
        namespace, _, name = name.partition("/")
        if not namespace or not name or "/" in name:
            raise ValueError(f"expected {row.kind}/NAMESPACE/NAME, got {text!r}")
    if not kind or not name or "/" in name:
        raise ValueError(f"expected KIND/NAME, got {text!r}")
    resource = _resource(kind, group) if row is None else row.resource
    return _Named(resource, namespace, name)


def _resource(kind: str, group: str) -> Resource:
    if kind.lower() in {TEMPLATE_KIND.lower(), "constrainttemplates"}:
        return TEMPLATES
    if group.partition(".")[0] != "constraints":
        for resource in EXTENSIONS:
            if kind.lower() == resource.gvk.kind.lower():
                return resource
    return constraints_of(kind)


async def _wait_for_all(
    client: ClusterClient, awaited: Sequence[_Named], namespace: str, seconds: float
) -> int:
    """Waits, prints each object's last state, and returns the exit code."""
    waits = [_Wait(client, named, namespace) for named in awaited]
    results: list[int] = []
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(wait.run()) for wait in waits]
        results = [task.result() for task in running]
    except TimeoutError:
        results = [wait.report_timeout(seconds) for wait in waits]
    return max(results)


class _Wait:
    """One object, watched until it is enforced."""

    def __init__(self, client: ClusterClient, named: _Named, namespace: str) -> None:
        """``namespace`` is the namespace of Waddle."""
        self._client = client
        self._named = named
        self._namespace = namespace
        self._changed = asyncio.Event()
        self._watches: dict[str, Reflector] = {}
        self._shown = named.shown
        self._fault = "the API server has not answered"
        self._result: int | None = None

    def change(self, changes: Iterable[Change]) -> None:
        """Notes a change of a store."""
        del changes
        self._changed.set()

    def synced(self) -> None:
        """Notes that a store is complete."""
        self._changed.set()

    def report_timeout(self, seconds: float) -> int:
        """Reports the missing replicas at the end; returns the exit code."""
        if self._result is not None:
            return self._result
        complain(f"{self._shown}: not enforced within {seconds:g} s: {self._why()}")
        return exit_codes.NO

    def _why(self) -> str:
        errors = [watch.statistics().last_error for watch in self._watches.values()]
        unsynced = [watch for watch in self._watches.values() if not watch.statistics().synced]
        return next((error for error in errors if error), self._fault) if unsynced else self._fault

    async def run(self) -> int:
        """Returns the exit code, once it is known."""
        code = await self._first_look()
        if code is None:
            self._watches = self._make_watches()
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(watch.run()) for watch in self._watches.values()]
                code = await self._follow()
                for task in running:
                    task.cancel()
        self._result = code
        return code

    async def _first_look(self) -> int | None:
        """Refuses an object that does not exist: a misspelt name never appears."""
        from webhook.backoff import Backoff  # noqa: PLC0415  # see command
        from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415

        backoff = Backoff(initial_seconds=0.2, max_seconds=5.0)
        while True:
            try:
                await self._find_version()
                await self._client.get(
                    self._named.resource, self._named.name, self._named.namespace
                )
            except (ApiError, ApiUnreachable) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    complain(f"{self._shown}: {_refusal(error, self._named)}")
                    return exit_codes.UNKNOWN
                if self._fault != str(error):
                    self._fault = str(error)
                    complain(f"{self._shown}: {error}. Trying again")
                await asyncio.sleep(backoff.next_seconds())
            else:
                return None

    async def _find_version(self) -> None:
        """Chooses the served version of a Kyverno kind; raises the errors of requests."""
        from webhook.cluster.discovery import Discovery, UnknownKind  # noqa: PLC0415  # see command

        resource = self._named.resource
        row = kind_of(resource.gvk)
        if row is not None and row in KYVERNO_KINDS:
            with contextlib.suppress(UnknownKind):
                served = await Discovery(self._client).of_versions(resource.gvk, row.versions)
                self._named = self._named._replace(resource=served)

    def _make_watches(self) -> dict[str, Reflector]:
        from webhook.cluster.reflector import ObjectSelection, Reflector  # noqa: PLC0415  # see command

        resource, namespace, name = self._named
        chosen = ObjectSelection(namespace, fields=f"metadata.name={name}")
        selections = {"object": (resource, chosen)}
        if kind_of(resource.gvk) in KYVERNO_KINDS:
            selections["pods"] = (PODS, ObjectSelection(self._namespace, labels=WEBHOOK_PODS))
        if (kind := _status_kind(resource)) is not None:
            statuses, label = status_resource(kind), name_label(kind)
            selections["pods"] = (PODS, ObjectSelection(self._namespace, labels=WEBHOOK_PODS))
            selections["statuses"] = (
                statuses,
                ObjectSelection(self._namespace, labels=f"{label}={name}"),
            )
        return {
            name: Reflector(self._client, resource, self, selection=selection)
            for name, (resource, selection) in selections.items()
        }

    async def _follow(self) -> int:
        for watch in self._watches.values():
            await watch.wait_synced()
        while True:
            self._changed.clear()
            document = self._watches["object"].store.get(self._named.namespace, self._named.name)
            if document is None:
                complain(f"{self._shown}: it was deleted")
                return exit_codes.UNKNOWN
            kind = _status_kind(self._named.resource)
            asking, may_be_tried = None, False
            if kind_of(self._named.resource.gvk) in KYVERNO_KINDS:
                progress, self._fault = await self._of_kyverno(document)
                if self._fault:
                    await self._pause()
                    continue
            elif kind is None:
                progress, self._fault = _of_exception(document)
            else:
                state = self._look(document, kind)
                if may_be_tried := kind in TRIED and _waits(state):
                    self._fault = _faults(state)
                    state = self._look(document, kind, await self._trials(document))
                asking = await self._asking(document) if state.enforced else None
                count = len(state.counted)
                progress = f"enforced by {count} of {quantity(count, 'replica')}"
                self._fault = "" if state.enforced else _faults(state)
            if asking is not None and asking.extent == "not at all":
                self._fault = f"{REASON}: {asking.text}"
                await self._pause()
                continue
            if not self._fault:
                write(printable(f"{self._shown}: {progress}"))
                return 0
            await (self._pause() if may_be_tried else self._changed.wait())

    async def _of_kyverno(self, document: Object) -> tuple[str, str]:
        """Returns the state of a Kyverno policy, and the reason against it: one of them is empty.

        Replicas write nothing into Kyverno's policies, so their generation is unknown.
        """
        from webhook.cli.cluster_policies import kyverno_mode, standings_of  # noqa: PLC0415  # see command

        if is_deleted(document):
            return "", "it is being deleted"
        pods = list(self._watches["pods"].store)
        if not any(replica(pod).counted for pod in pods):
            return "", "no replica is ready"
        coverage = await self._coverage()
        (standing,) = standings_of([dict(document)], kyverno_mode(pods), coverage)
        if standing.state != "Usable":
            return "", f"{standing.state}: {'; '.join(standing.notes)}"
        return "usable, and requests are sent for it; replicas do not report its generation", ""

    async def _trials(self, document: Object) -> list[revision.PolicyRevision]:
        """Reads the revision of the object's generation, which names the replica that tries it."""
        from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415  # see command
        from webhook.controllers.revisions.keeper import REVISIONS  # noqa: PLC0415  # see command

        name = revision.name_of(document, revision.digest_of(document))
        # The fault that statuses show stands where the revision is absent or cannot be read.
        with contextlib.suppress(ApiError, ApiUnreachable, revision.InvalidRevision, TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                return [revision.read_revision(await self._client.get(REVISIONS, name))]
        return []

    async def _asking(self, document: Object) -> CoverageState | None:
        """Returns how many of the object's requests the configurations send now."""
        from webhook.policies.request_coverage import is_judged  # noqa: PLC0415  # see command

        if not is_judged(document):
            return None
        return (await self._coverage())(document)

    async def _coverage(self) -> RequestCoverage:
        """Reads the cluster's webhook configurations; without an answer they stay unknown."""
        from webhook.cli.webhook_configurations import read_webhook_configurations  # noqa: PLC0415  # see command
        from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415  # see command
        from webhook.policies.request_coverage import read_coverage  # noqa: PLC0415  # see command

        try:
            standing, read = await read_webhook_configurations(self._client, self._namespace)
        except (ApiError, ApiUnreachable):
            standing, read = [], frozenset()
        return read_coverage(standing, self._namespace, read)

    async def _pause(self) -> None:
        """Waits for an event of the object, or a possible change of what is not watched."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                await self._changed.wait()

    def _look(
        self,
        document: Object,
        kind: StatusKind,
        revisions: Sequence[revision.PolicyRevision] = (),
    ) -> Convergence:
        uid_field = kind.uid_field
        uid = document["metadata"]["uid"]
        # Constraints of other kinds may have this name; the UID distinguishes them.
        statuses = [
            item
            for item in self._watches["statuses"].store
            if (item.get("status") or {}).get(uid_field) == uid
        ]
        replicas = [replica(pod) for pod in self._watches["pods"].store]
        return converge(document, statuses, replicas, revisions)


def _status_kind(resource: Resource) -> StatusKind | None:
    """Returns the status kind of replicas; None for exceptions, which share one status."""
    row = kind_of(resource.gvk)
    return pod_status.CONSTRAINT if row is None else row.status


def _of_exception(document: Object) -> tuple[str, str]:
    """Returns how an exception is in force, or why not: one text is empty."""
    if is_deleted(document):
        return "", "it is being deleted"
    standing = ExceptionStanding.of(document)
    if standing.state in IN_FORCE:
        until = f" until {standing.expires}" if standing.expires else ""
        return f"in force{until}", ""
    message = f": {standing.message}" if standing.message else ""
    return "", f"{standing.state}{message}"


def _waits(state: Convergence) -> bool:
    """Whether a replica has not seen the object's generation, or waits for its trial."""
    return any(standing.state in UNSEEN for standing in state.counted)


def _faults(state: Convergence) -> str:
    """Returns the reasons of each replica that does not enforce the object."""
    if state.is_deleted:
        return "it is being deleted"
    lacking = [standing for standing in state.counted if standing.state != "enforced"]
    if not lacking:
        return "no replica is ready"
    return "; ".join(f"{standing.replica.name}: {standing.reason}" for standing in lacking)
