"""``waddle wait``: until all replicas enforce what was just applied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import EXTENSIONS, TEMPLATES, cluster_options
from webhook.cli.terminal import complain, write
from webhook.cluster.kinds import PODS
from webhook.controllers.status.convergence import TEMPLATE_KIND, converge, status_kind_of
from webhook.controllers.status_kinds import name_label, status_resource
from webhook.policy_kinds.known import constraints_of
from webhook.printable import printable
from webhook.replicas.pods import WEBHOOK_PODS, replica
from webhook.settings.flags import InvalidFlag, read_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.api.pod_status import StatusKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.reflector import Reflector
    from webhook.cluster.store import Change
    from webhook.controllers.status.convergence import Convergence

_HELP = """Wait until every replica of Waddle enforces each KIND/NAME as it is now.

KIND is ConstraintTemplate, the kind of a constraint or of a mutator, or ExpansionTemplate;
its case does not matter. Every
replica that is ready, or terminating and not yet finished, must say that it enforces
the object's present generation, without errors; one that terminates never does.

\b
  kubectl apply -f constraint.yaml
  waddle wait --for=enforced K8sRequiredLabels/ns-must-have-owner --timeout 60s
"""


@click.command("wait", help=_HELP + exit_codes.paragraph("wait"))
@click.argument("objects", metavar="KIND/NAME...", nargs=-1)
@click.option(
    "--for",
    "condition",
    default="enforced",
    show_default=True,
    help="What to wait for; there is only this.",
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
        wanted = [_named(item) for item in objects]
        seconds = read_duration("timeout", timeout)
    except (InvalidFlag, ValueError) as error:
        complain(str(error))
        return exit_codes.UNKNOWN
    if not wanted:
        complain("nothing to wait for: name KIND/NAME")
        return exit_codes.UNKNOWN
    if condition != "enforced":
        complain(f"--for={condition}: only enforced can be waited for")
        return exit_codes.UNKNOWN
    # Here and not above: they bring aiohttp and the event loop.
    from webhook.cluster import event_loop  # noqa: PLC0415
    from webhook.cluster.client import ClusterClient  # noqa: PLC0415
    from webhook.cluster.credentials import CredentialsError, load_credentials  # noqa: PLC0415

    async def run() -> int:
        async with ClusterClient(load_credentials(kubeconfig, context=context)) as client:
            return await _wait_for_all(client, wanted, namespace, seconds)

    try:
        return event_loop.run(run())
    except CredentialsError as error:
        complain(str(error))
        return exit_codes.UNKNOWN


def _named(text: str) -> tuple[Resource, str]:
    """The resource and name of ``KIND/NAME``; the kind may carry its group, as kubectl prints it."""
    kind, slash, name = text.partition("/")
    kind, _, group = kind.partition(".")
    if not slash or not kind or not name or "/" in name:
        raise ValueError(f"expected KIND/NAME, got {text!r}")
    if kind.lower() in {TEMPLATE_KIND.lower(), "constrainttemplates"}:
        return TEMPLATES, name
    if group.partition(".")[0] != "constraints":
        for resource in EXTENSIONS:
            if kind.lower() == resource.gvk.kind.lower():
                return resource, name
    return constraints_of(kind), name


async def _wait_for_all(
    client: ClusterClient, wanted: Sequence[tuple[Resource, str]], namespace: str, seconds: float
) -> int:
    """The exit code; each object's last state has been told."""
    waits = [_Wait(client, resource, name, namespace) for resource, name in wanted]
    results: list[int] = []
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(wait.run()) for wait in waits]
        results = [task.result() for task in running]
    except TimeoutError:
        results = [wait.tell_timeout(seconds) for wait in waits]
    return max(results)


class _Wait:
    """One object, followed until it is enforced."""

    def __init__(
        self, client: ClusterClient, resource: Resource, name: str, namespace: str
    ) -> None:
        self._client = client
        self._resource = resource
        self._name = name
        self._namespace = namespace
        self._news = asyncio.Event()
        self._watches: dict[str, Reflector] = {}
        self._shown = f"{resource.gvk.kind}/{name}"
        self._fault = "the API server has not answered"
        self._result: int | None = None

    def change(self, changes: Iterable[Change]) -> None:
        """A store changed."""
        del changes
        self._news.set()

    def synced(self) -> None:
        """A store is whole."""
        self._news.set()

    def tell_timeout(self, seconds: float) -> int:
        """What was missing at the end; the exit code."""
        if self._result is not None:
            return self._result
        complain(f"{self._shown}: not enforced within {seconds:g} s: {self._why()}")
        return exit_codes.NO

    def _why(self) -> str:
        errors = [watch.statistics().last_error for watch in self._watches.values()]
        unsynced = [watch for watch in self._watches.values() if not watch.statistics().synced]
        return next((error for error in errors if error), self._fault) if unsynced else self._fault

    async def run(self) -> int:
        """The exit code, once it is known."""
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
        """An object that does not exist is not waited for: what is misspelt never comes."""
        from webhook.backoff import Backoff  # noqa: PLC0415  # see command
        from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415

        backoff = Backoff(initial_seconds=0.2, max_seconds=5.0)
        while True:
            try:
                await self._client.get(self._resource, self._name)
            except (ApiError, ApiUnreachable) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    absent = "there is no such object" if error.is_absent else str(error)
                    complain(f"{self._shown}: {absent}")
                    return exit_codes.UNKNOWN
                self._fault = str(error)
                await asyncio.sleep(backoff.next_seconds())
            else:
                return None

    def _make_watches(self) -> dict[str, Reflector]:
        from webhook.cluster.reflector import ObjectSelection, Reflector  # noqa: PLC0415  # see command

        kind = _status_kind(self._resource)
        statuses, label = status_resource(kind), name_label(kind)
        selections = {
            "object": (self._resource, ObjectSelection(fields=f"metadata.name={self._name}")),
            "pods": (PODS, ObjectSelection(self._namespace, labels=WEBHOOK_PODS)),
            "statuses": (
                statuses,
                ObjectSelection(self._namespace, labels=f"{label}={self._name}"),
            ),
        }
        return {
            name: Reflector(self._client, resource, self, selection=selection)
            for name, (resource, selection) in selections.items()
        }

    async def _follow(self) -> int:
        for watch in self._watches.values():
            await watch.wait_synced()
        while True:
            self._news.clear()
            state = self._look()
            if state is None:
                complain(f"{self._shown}: it was deleted")
                return exit_codes.UNKNOWN
            if state.enforced:
                count = len(state.counted)
                write(printable(f"{self._shown}: enforced by {count} of {count} replicas"))
                return 0
            self._fault = _faults(state)
            await self._news.wait()

    def _look(self) -> Convergence | None:
        document = self._watches["object"].store.get("", self._name)
        if document is None:
            return None
        uid_field = _status_kind(self._resource).uid_field
        uid = document["metadata"]["uid"]
        # Constraints of other kinds may have this name; the UID tells them apart.
        statuses = [
            item
            for item in self._watches["statuses"].store
            if (item.get("status") or {}).get(uid_field) == uid
        ]
        return converge(document, statuses, [replica(pod) for pod in self._watches["pods"].store])


def _status_kind(resource: Resource) -> StatusKind:
    gvk = resource.gvk
    return status_kind_of({"apiVersion": gvk.group_version, "kind": gvk.kind})


def _faults(state: Convergence) -> str:
    """What each replica lacks that does not enforce the object."""
    if state.is_deleted:
        return "it is being deleted"
    lacking = [standing for standing in state.counted if standing.state != "enforced"]
    if not lacking:
        return "no replica is ready"
    return "; ".join(f"{standing.replica.name}: {standing.reason}" for standing in lacking)
