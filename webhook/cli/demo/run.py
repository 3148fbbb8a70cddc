"""Runs ``waddle demo``: starts the parts in order, watches them, and ends them in reverse."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from webhook import __version__
from webhook.certificates.pairs import self_signed
from webhook.cli import exit_codes
from webhook.cli.cluster_access import NAMESPACE
from webhook.cli.demo.balancer import Balancer, ready
from webhook.cli.demo.build import NoControlPlane, control_plane
from webhook.cli.demo.control_plane import ControlPlane
from webhook.cli.demo.installation import LAB, SHOP, Installation, Occupied
from webhook.cli.demo.processes import Child, NotStarted
from webhook.cli.demo.traffic import Traffic
from webhook.cli.terminal import complain, write
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import CredentialsError, load_credentials
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.decisions.configuration import SOCKET_PATH_BYTES_MAX
from webhook.printable import printable
from webhook.settings.serve import KEY_SECRET

REPLICAS: Final = 3
READY_SECONDS_MAX: Final = 300
"""The longest wait for replicas to enforce the policies, in seconds, on a busy laptop."""

QUIET_SECONDS: Final = 5.0
"""Seconds of traffic with good policies only, before bad ones are tried."""

OURS, THEIRS = "ours", "theirs"
"""The owner of the demo's cluster: the demo ends its own cluster, and leaves the user's as it was.
"""

_PREFIX, _SOCKET = "waddle-demo-", "decisions.sock"

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FAULTS: Final = (
    NoControlPlane,
    NotStarted,
    Occupied,
    CredentialsError,
    ApiError,
    ApiUnreachable,
    TimeoutError,
    OSError,
)


def run(*, api_server: Path | None, kubeconfig: Path | None, address: str, port: int) -> int:
    """Runs until a signal; returns the exit code."""
    folder = _make_folder()
    demonstration = _Demonstration(folder, address, port)
    try:
        event_loop.run(demonstration.serve_until_ended(api_server, kubeconfig))
    except* _FAULTS as faults:
        for error in _leaves(faults):
            complain(str(error) or type(error).__name__)
        return_code = exit_codes.NO
    else:
        return_code = exit_codes.OK
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return return_code


def _make_folder() -> Path:
    """A folder for files and a socket: not below a TMPDIR whose path is too long for the latter."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(os.fsencode(folder / _SOCKET)) <= SOCKET_PATH_BYTES_MAX:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))  # made for us alone


class _Demonstration:
    """The running parts of a demonstration, and their end."""

    def __init__(self, folder: Path, address: str, port: int) -> None:
        self._folder = folder
        self._address = address
        self._port = port
        self._stack = AsyncExitStack()
        self._children: list[Child] = []

    async def serve_until_ended(self, api_server: Path | None, kubeconfig: Path | None) -> None:
        """Starts all parts, and ends them at a signal or a lost control plane."""
        loop, main = asyncio.get_running_loop(), asyncio.current_task()
        assert main is not None
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, main)
        try:
            async with asyncio.TaskGroup() as tasks, self._stack:
                await self._run(tasks, api_server, kubeconfig)
        except asyncio.CancelledError:
            with suppress(OSError):  # the terminal may be closed, which is a signal, too
                write("Ended. The demonstration stopped its processes and removed its objects.")

    def _end(self, main: asyncio.Task[None]) -> None:
        """Lets a part finish its end: all its waits are bounded."""
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        main.cancel()
        with suppress(OSError):
            write("\nEnding ...")

    async def _run(
        self, tasks: asyncio.TaskGroup, api_server: Path | None, kubeconfig: Path | None
    ) -> None:
        write(f"Waddle {__version__}: a demonstration on this machine. Control-C ends all of it.")
        owner = THEIRS
        if kubeconfig is None:
            program = api_server or await control_plane(write)
            plane = ControlPlane(program, self._folder / "cluster")
            await self._stack.enter_async_context(plane)
            self._stack.callback(tasks.create_task(_watch_over(plane)).cancel)
            owner, kubeconfig = OURS, plane.kubeconfig
        credentials = load_credentials(kubeconfig)
        client = await self._stack.enter_async_context(ClusterClient(credentials))
        installation = Installation(client)
        await installation.refuse_occupied()
        if owner == THEIRS:
            self._stack.push_async_callback(_quietly, lambda: _remove(installation, kubeconfig))
        await installation.make()
        replicas = await self._start(tasks, installation, kubeconfig)
        traffic = Traffic(client, _notify)
        await traffic.leave_some()
        await self._serve(tasks, installation, replicas, everywhere=owner == OURS)
        await self._console(tasks, kubeconfig)
        self._introduce(kubeconfig, credentials.server, everywhere=owner == OURS)
        asking = tasks.create_task(traffic.run())
        self._stack.callback(asking.cancel)
        await asyncio.sleep(QUIET_SECONDS)
        await _apply_bad_policies(installation)
        await asyncio.Event().wait()

    # --- its parts, each with its end -----------------------------------------------------------

    async def _start(
        self, tasks: asyncio.TaskGroup, installation: Installation, kubeconfig: Path
    ) -> list[Mapping[str, int]]:
        """Starts replicas, an audit, and the decision log.

        Returns the replicas' ports.
        """
        folder = self._folder
        (folder / "sidecar.json").write_text(json.dumps(self._sidecar()), encoding="utf-8")
        exporter = {"sidecarURL": f"unix://{folder}/{_SOCKET}", "includeObjects": True}
        (folder / "exporter.json").write_text(json.dumps(exporter), encoding="utf-8")
        pair = self_signed([self._address, "localhost"], dt.datetime.now(tz=dt.UTC))
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        sidecar = await self._child(tasks, "sidecar", "sidecar", f"--config={folder}/sidecar.json")
        tasks.create_task(_report_end(sidecar, "Decisions are no longer recorded."))
        common = (
            *("serve", f"--kubeconfig={kubeconfig}", f"--cert-dir={folder}", "--host=127.0.0.1"),
            *("--port=0", "--health-addr=127.0.0.1:0", "--prometheus-host=127.0.0.1"),
            *("--prometheus-port=0", "--shutdown-delay=0", "--reports"),
            *(
                f"--decision-log-config={folder}/exporter.json",
                f"--revision-key-secret-name={KEY_SECRET}",
            ),
        )
        work = ("--operation=webhook,status,generate",)
        named: list[tuple[str, bool, tuple[str, ...]]]
        named = [(f"waddle-{number}", False, work) for number in range(REPLICAS)]
        named.append(("waddle-audit", True, ("--operation=audit", "--audit-interval=15")))
        started = []
        for name, audits, flags in named:
            uid = await installation.pod(name, audit=audits)
            environment = {"POD_NAME": name, "POD_NAMESPACE": "waddle-system", "POD_UID": uid}
            child = await self._child(tasks, name, *common, *flags, environment=environment)
            started.append(child)
            tasks.create_task(_follow(child, installation, audits=audits))
        return [await child.ports() for child in started[:REPLICAS]]

    async def _serve(
        self,
        tasks: asyncio.TaskGroup,
        installation: Installation,
        replicas: list[Mapping[str, int]],
        *,
        everywhere: bool,
    ) -> None:
        """Applies policies before the webhooks are registered, as an installation does."""
        await installation.apply_policies("policies")
        async with asyncio.timeout(READY_SECONDS_MAX):
            for ports in replicas:
                await ready(ports["health"])
        balancer = Balancer(tasks, replicas)
        self._stack.callback(balancer.close)
        port = await balancer.listen(self._address)
        self._stack.push_async_callback(_quietly, installation.unregister)
        certificate = (self._folder / "tls.crt").read_bytes()
        await installation.register(self._address, port, certificate, everywhere=everywhere)

    async def _console(self, tasks: asyncio.TaskGroup, kubeconfig: Path) -> None:
        console = await self._child(
            *(tasks, "console", "console", f"--kubeconfig={kubeconfig}", f"--port={self._port}"),
            f"--decisions={self._folder}/decisions.jsonl",
        )
        self._port = (await console.ports())["address"]
        tasks.create_task(_report_end(console, "The console's pages are no longer served."))

    async def _child(
        self,
        tasks: asyncio.TaskGroup,
        name: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        child = await Child.start(tasks, name, self._folder, *arguments, environment=environment)
        self._children.append(child)
        self._stack.push_async_callback(child.end)
        return child

    def _sidecar(self) -> dict[str, object]:
        """Writes decisions to one file, for the console's page."""
        kept = self._folder / "decisions.jsonl"
        kept.touch()
        settings = {"path": str(kept)}
        sink = {"name": "file", "type": "file", "format": "decision", "settings": settings}
        return {
            "listen": [{"url": f"unix://{self._folder}/{_SOCKET}"}],
            "queue": {"directory": str(self._folder / "queue")},
            "sinks": [sink],
        }

    def _introduce(self, kubeconfig: Path, server: str, *, everywhere: bool) -> None:
        enforced = f"all but {NAMESPACE} and kube-system" if everywhere else f"{SHOP} and {LAB}"
        pids = {child.name: child.pid for child in self._children}
        write(
            f"""
  console      http://127.0.0.1:{self._port}/
  API server   {server}
  kubectl      export KUBECONFIG={kubeconfig}
  namespaces   policies hold in {enforced}
  replicas     3, as processes {", ".join(str(pids[f"waddle-{n}"]) for n in range(REPLICAS))}: end one, and see
  logs         {self._folder}/*.log
"""
        )


async def _follow(child: Child, installation: Installation, *, audits: bool) -> None:
    """Updates a replica's Pod as a kubelet would: ready, or ended."""
    try:
        ports = await child.ports()
    except NotStarted:
        if child.ending:
            return
        raise
    if not audits:
        await ready(ports["health"], until=lambda: not child.running)
    if child.running:
        await _quietly(lambda: installation.mark(child.name, ready=True))
    await _report_end(child, "The other replicas go on answering.")
    if not child.ending:
        await _quietly(lambda: installation.remove_pod(child.name))


async def _report_end(child: Child, effect: str) -> None:
    """Reports an unexpected end of a process, and its consequences."""
    code = await child.ended()
    if not child.ending:
        _notify(f"{child.name} has ended ({code}). {effect} Its log: {child.log}")


async def _apply_bad_policies(installation: Installation) -> None:
    """Applies two bad policies: one is refused, the other cannot be refused."""
    try:
        await installation.apply_policies("typo")
    except ApiError as error:
        _notify(f"A policy with a typo is refused: {error.message}")
    try:
        await installation.apply_policies("endless")
    except (ApiError, ApiUnreachable, TimeoutError) as error:
        _notify(f"A policy that never ends could not be applied: {str(error) or 'never served'}")
        return
    _notify(
        "A policy that never ends is in force; its trial on samples did not show that. "
        "Requests that it matches are refused after its time budget, from the third time on "
        "at once. All others are answered as before."
    )


async def _watch_over(plane: ControlPlane) -> None:
    """Without it there is nothing to show."""
    await plane.ended()
    raise NoControlPlane("the control plane has ended")


async def _remove(installation: Installation, kubeconfig: Path) -> None:
    """Removes all written objects from a user's cluster; replicas have ended by now."""
    for name in (*(f"waddle-{number}" for number in range(REPLICAS)), "waddle-audit"):
        await installation.remove_pod(name)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "webhook", "uninstall", "--webhooks", "--policies", "--yes"),
        f"--kubeconfig={kubeconfig}",
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    await process.wait()
    await installation.remove_rest()


async def _quietly(step: Callable[[], Awaitable[None]]) -> None:
    """Runs a step of the end; ignores errors of a lost cluster."""
    try:
        await step()
    except (ApiError, ApiUnreachable) as error:
        complain(f"not removed: {error}")


def _notify(text: str) -> None:
    now = dt.datetime.now().astimezone()
    write(f"{now:%H:%M:%S} {printable(text)}")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
