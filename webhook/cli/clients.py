"""The client of the command line's decisions: the same parts as the server's."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.terminal import complain
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import NEEDS_A_DOOR, RegoDriver
from webhook.constraint.targets.known import TARGETS
from webhook.rego.code_cache import CodeCache, UnsafeDirectory
from webhook.trials.driver import TriedDriver, TriedRegoDriver
from webhook.trials.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from webhook.constraint.driver import Driver
    from webhook.constraint.drivers.rego_trace import RegoTrace
    from webhook.constraint.target import Target

CACHE_VARIABLE: Final = "WADDLE_CACHE"
"""The folder of compiled policies between runs; empty for none."""


def new_client(
    *,
    disabled_builtins: Collection[str] = (),
    http_hosts: Collection[str] = (),
    native_validation: bool = True,
    native_failure_policy: str = "Fail",
    targets: Sequence[Target] = (),
    reviewed_targets: Collection[str] | None = None,
    trace: Callable[[RegoTrace], None] | None = None,
) -> Client:
    """Returns an empty client of every target and driver; ``targets`` are declared ones.

    ``reviewed_targets`` names the targets of reviews, None for all.

    ``http_hosts`` are the hosts that policies may reach with ``http.send``; without any the
    function is absent. Without ``native_validation`` code in CEL is ignored;
    ``native_failure_policy`` is the default failure policy. ``trace`` receives each evaluation in
    Rego.
    """
    disabled = frozenset(disabled_builtins) | (frozenset() if http_hosts else NEEDS_A_DOOR)
    driver = RegoDriver(
        disabled_builtins=disabled,
        services=_services(http_hosts),
        cache=compiled_policies(),
    )
    trials = _trials(disabled) if hasattr(os, "fork") else None  # Windows cannot bound a process so
    drivers: list[Driver] = [driver if trials is None else TriedRegoDriver(driver, trials)]
    if trace is not None:
        from webhook.constraint.drivers.rego_trace import TracingDriver  # noqa: PLC0415  # for few

        drivers = [TracingDriver(drivers[0], driver.options, trace)]
    if native_validation:
        cel = CelDriver(fails=native_failure_policy == "Fail")
        drivers.insert(0, cel if trials is None else TriedDriver(cel, trials))
    return Client(targets=(*TARGETS, *targets), drivers=drivers, reviewed_targets=reviewed_targets)


@cache
def _trials(disabled_builtins: frozenset[str]) -> Trials:
    """Returns the trials of large policies, for all clients of a run.

    Their process ends with it.
    """
    return Trials(disabled_builtins, notify=_notify)


def _notify(message: str, /, *, error: str) -> None:
    complain(f"{message}: {error}")


def _services(http_hosts: Collection[str]) -> dict[str, Any] | None:
    if not http_hosts:
        return None
    from webhook.rego.builtins.http.client import HttpClient  # noqa: PLC0415  # brings TLS

    return {"http": HttpClient(frozenset(http_hosts))}


def compiled_policies() -> CodeCache | None:
    """Returns the compiled policies of earlier runs.

    None without the option, or without a safe folder. Two thirds of the time of a check of one
    object is compiling unchanged policies.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named == "":
        return None
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return CodeCache(Path(named) if named else caches / "waddle" / "policies")
    except (OSError, RuntimeError, UnsafeDirectory):
        return None  # No home, a disk that is full or read-only: it is compiled each time.
